"""A whole training by a reward: corpora → policy → test summaries → model folder."""

import contextlib
import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.corpora import CorpusOptions, describe_skipped, load_pairs
from negsample.errors import InputError
from negsample.io.files import atomic_json, atomic_text
from negsample.io.run_record import Stopwatch
from negsample.io.write import open_writer
from negsample.models.encoders import make_encoder
from negsample.models.summarizers import Budget, lead
from negsample.models.summarizers.extractor import Extractor, Score
from negsample.models.summarizers.language_model import STAND_INS, LanguageSummarizer, Limits, stand_in
from negsample.negatives.split import SPLITS, Shares
from negsample.records import Source, document_key
from negsample.seeds import digest
from negsample.sentences import headline_of, story_of
from negsample.terminal import say
from negsample.train.data import Parting, corpus_options, reading
from negsample.train.fit.checkpoint import read_epochs
from negsample.train.fit.loop import own_state
from negsample.train.job import WORK, finish, hold_folder, make_accelerator, told_after
from negsample.train.reinforce.config import ReinforceConfig
from negsample.train.reinforce.loop import START, Policy, RewardFunction, Rewarding, fit

# Test documents whose summaries are shown side by side.
_SHOWN = 5


def reinforce(
    config: ReinforceConfig,
    reward: RewardFunction,
    oracle: Score,
    out: Path,
    *,
    resume: bool = False,
    smoke: bool = False,
    say: Callable[[str], None] = say,
) -> dict[str, Any] | None:
    """Train a summarizer by ``reward`` as a resolved ``config`` says, and leave a model folder at ``out``.

    ``oracle`` gives the score of an extract by which the targets of an extractor are looked for. Beside the model the
    folder has ``training.jsonl`` (the curve), ``summaries.jsonl`` (of the test documents: the trained system, ``start``, the
    weights before the first reward (before the training where there is none), ``lead`` and, for an extractor with
    references, ``oracle``), ``samples.md`` (side by side), ``headlines.jsonl`` (with ``headlines``) and ``run.json``.
    Returns the content of ``figures.json``; {} in all processes but the first; None where ``resume`` found
    the run finished. Raises InputError for anything wrong with the configuration, the corpus or the folder.
    """
    watch, work = Stopwatch(), out / WORK
    accelerator = make_accelerator(config)
    with contextlib.ExitStack() as held:
        if not hold_folder(accelerator, out, config, held, what="a training by a reward", resume=resume):
            return None
        held.enter_context(own_state())
        sources, alone, about = read_sources(config)
        if about["skipped"] and accelerator.is_main_process:
            say(about["skipped"])
        if config.ml_epochs and not any(source.references for source in sources["train"]):
            told = "training by maximum likelihood needs references, and no document has one"
            raise InputError(f"{told}; set references=false or give summaries")
        policy = make_policy(config, oracle)
        run = Rewarding(accelerator, config, policy, reward)
        calibrate(config, policy, reward, sources["train"])
        # Language models share weights between layers, of which Accelerate speaks at every checkpoint.
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
        fit(run, sources["train"], alone, sources["validation"], work, say)
        if not accelerator.is_main_process:
            accelerator.wait_for_everyone()
            return {}
        signature, test = getattr(reward, "signature", ""), sources["test"]
        policy.save(out, {"training": config.as_dict(), "reward": signature})
        with told_after(out, "what tells of it"):
            systems = _test_summaries(config, policy, test, work)
            _write_rows(out / "summaries.jsonl", rows_of(test, systems))
            atomic_text(out / "samples.md", samples(test, systems))
            if config.headlines:
                _write_rows(out / "headlines.jsonl", headline_rows(config, policy, test, systems))
            found = {
                "data": about,
                "reward": {name: float(run.score(test, texts).mean()) for name, texts in systems.items()},
                "epochs": read_epochs(work / "training.jsonl"),
                "seconds": watch.seconds,
            }
            atomic_json(out / "figures.json", found)
            finish(accelerator, config, out, watch, smoke=smoke, reward=signature, figures=found)
        accelerator.wait_for_everyone()
        return found


def read_sources(config: ReinforceConfig) -> tuple[dict[str, list[Source]], list[Source], dict[str, Any]]:
    """The documents of each split, those without references (``unsupervised``), and what ``run.json`` says of them.

    A document that comes again with another summary has several references. Raises InputError as ``load_pairs``, and for
    fewer than three documents.
    """
    skipped: Counter[str] = Counter()
    found: dict[str, tuple[str, list[str]]] = {}
    parting, read = Parting(config), reading(config)
    for number, name, options in read:
        for document, summary in _texts(config, name, options, skipped, documents_alone=not config.references):
            if not parting.takes(number, skipped, document, *filter(None, [summary])):
                continue
            references = found.setdefault(document_key(document), (document, []))[1]
            if summary is not None and summary not in references:
                references.append(summary)
    keys = sorted(found)
    shares = Shares(1 - config.validation_share - config.test_share, config.validation_share, config.test_share)
    split = parting.part(np.array([bytes.fromhex(key) for key in keys]), np.arange(len(keys)), shares)
    made = [Source(key, found[key][0], tuple(found[key][1])) for key in keys]
    sources = {name: [made[place] for place in np.flatnonzero(split == n)] for n, name in enumerate(SPLITS)}
    told = ((source.id, SPLITS[part], *source.references) for source, part in zip(made, split, strict=True))
    held_out = {source.id for name in ("validation", "test") for source in sources[name]}
    extra: dict[str, Source] = {}
    # A split by its name, or a corpus of its own.
    alone = [(name, options) for _, name, options in read if options.split and options.split == config.unsupervised]
    if config.unsupervised is not None and not alone:
        alone = [(config.unsupervised, corpus_options(config))]
    for name, options in alone:
        for document, _ in _texts(config, name, options, skipped, documents_alone=not options.split):
            key = document_key(document)
            # Of the test documents too: Scialom et al. 2019 train on those, and so may a user, who then names them.
            extra.setdefault(key, Source(f"{key}-alone", document))
    about = {
        "documents": {name: len(own) for name, own in sources.items()},
        "unsupervised": len(extra),
        "unsupervised_held_out": sum(key in held_out for key in extra),
        "fingerprint": digest(*(text for texts in told for text in texts)).hex(),
        "skipped": describe_skipped(skipped),
    }
    return sources, list(extra.values()), about


def _texts(
    config: ReinforceConfig, name: str, options: CorpusOptions, skipped: Counter[str], documents_alone: bool
) -> list[tuple[str, str | None]]:
    # Where there is no summary field, the document stands in for it and is forgotten.
    field = (config.document_field or "document") if documents_alone else config.summary_field
    options = dataclasses.replace(options, summary_field=field)
    pairs = ((pair.document, None if documents_alone else pair.summary) for pair in load_pairs(name, options, skipped))
    if not config.headlines:
        return list(pairs)
    found = []
    for document, summary in pairs:
        story, headline = story_of(document), None if summary is None else headline_of(summary)
        if not story or headline == "":
            skipped["a story or headline without a sentence"] += 1
        elif headline is not None and len(headline) < config.headline_characters:
            skipped[f"a headline of fewer than {config.headline_characters} characters"] += 1
        else:
            found.append((story, headline))
    return found


def make_policy(config: ReinforceConfig, oracle: Score) -> Policy:
    """The policy that ``config`` names, untrained, or as its language model comes."""
    if config.policy == "extract":
        encoder = make_encoder(config.encoder)
        if encoder.unit != "sentence":
            raise InputError(f"encoder {config.encoder}: gives vectors of words; name one of sentences")
        return Extractor.new(encoder, config.budget, config.seed, oracle)
    limits = Limits(config.document_tokens, config.summary_tokens, config.prompt, config.beams, config.top_k)
    if config.model in STAND_INS:
        return stand_in(config.model, limits)
    return LanguageSummarizer.load(str(config.model), limits)


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with open_writer(path) as writer:
        for row in rows:
            writer.write(row)


def calibrate(config: ReinforceConfig, policy: Policy, reward: RewardFunction, train: Sequence[Source]) -> None:
    """Settle the scales of a reward's parts on what the untrained policy draws for a few training documents."""
    settle = getattr(reward, "calibrate", None)
    if settle is None:
        return
    import torch

    some = list(train[: 4 * config.batch_size][:64])
    torch.manual_seed(config.seed)
    policy.network.eval()
    sets = [policy.texts(some, policy.decode(policy.inputs(some), some, (config.seed, "scale", k))) for k in range(4)]
    policy.network.train()
    texts = [text for own in sets for text in own]
    own = some * len(sets)
    settle([s.document for s in own], texts, [s.references for s in own])


def _test_summaries(
    config: ReinforceConfig, policy: Policy, test: Sequence[Source], work: Path
) -> dict[str, list[str]]:
    """Summaries of the test documents by each system; the first one is what the others are compared with."""
    from safetensors.torch import load_model

    documents = [source.document for source in test]
    trained = policy.summarize(documents)
    systems = {config.system: trained}
    if (work / START).is_file():
        weights = {name: value.clone() for name, value in policy.network.state_dict().items()}
        load_model(policy.network, str(work / START))
        systems = {"start": policy.summarize(documents), **systems}
        policy.network.load_state_dict(weights)
    extractor = policy if isinstance(policy, Extractor) else None
    budget = extractor.budget if extractor else Budget(sentences=1 if config.headlines else 3)
    systems["lead"] = [lead(document, budget) for document in documents]
    if extractor and all(source.references for source in test):
        systems["oracle"] = extractor.texts(test, extractor.targets(test))
    return systems


def rows_of(test: Sequence[Source], systems: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Records as ``score`` and ``compare`` take them, system by system."""
    return [
        {"document_id": s.id, "system": name, "document": s.document, "summary": text, "references": list(s.references)}
        for name, texts in systems.items()
        for s, text in zip(test, texts, strict=True)
    ]


def headline_rows(
    config: ReinforceConfig, policy: Policy, test: Sequence[Source], systems: dict[str, list[str]]
) -> Iterator[dict[str, Any]]:
    """Records as ``negsample.papers.headlines`` reads them. Of the first stories there are ``samples`` headlines where they are
    drawn (Moeed et al. 2020, Table 1, has three); ``draw`` counts them."""
    dataset = "+".join(Path(name).name.partition(".")[0] for name in config.corpora())

    def rows(name: str, texts: Sequence[str], draw: int) -> Iterator[dict[str, Any]]:
        # A test document without a reference has no place in the tables.
        for source, text in zip(test, texts, strict=False):
            if source.references:
                facts = {"document_id": source.id, "dataset": dataset, "system": name, "draw": draw}
                yield facts | {"story": source.document, "generated": text, "reference": source.references[0]}

    for name, texts in systems.items():
        yield from rows(name, texts, 1)
    if config.top_k and isinstance(policy, LanguageSummarizer):
        shown = [source.document for source in test[:_SHOWN]]
        for draw in range(1, config.samples):
            yield from rows(config.system, policy.summarize(shown, draw), draw + 1)


def samples(test: Sequence[Source], systems: dict[str, list[str]]) -> str:
    """The first test documents with their summaries, below one another, as Markdown."""
    parts = []
    for place, source in enumerate(test[:_SHOWN]):
        parts.append(f"## {' '.join(source.document.split())[:80]}…\n")
        parts += [f"**reference** {' '.join(reference.split())}\n" for reference in source.references]
        parts += [f"**{name}** {' '.join(texts[place].split())}\n" for name, texts in systems.items()]
    return "\n".join(parts)

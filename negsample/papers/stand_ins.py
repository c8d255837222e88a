"""``--smoke``, for every command that has it: inputs that stand for the real ones, on which the same code runs; the figures mean
nothing.

Configurations get a few pairs of the embedded sample, packaged encoders and few steps, so that one that runs has no
unknown corpus, recipe, head or setting. What people judged is made of the sample too: summaries with words left out,
docsets of ten articles, first and last sentences as headlines.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from negsample.corpora import DOMAINS, KNOWN, load_pairs
from negsample.eval.judgments import Source
from negsample.models.build import takes
from negsample.models.summarizers.language_model import CAUSAL, SEQ2SEQ
from negsample.papers.headlines import TASKS
from negsample.papers.transfer_config import COMMON, HeadSetting, TransferConfig
from negsample.records import Judged, Row
from negsample.registry import parse
from negsample.seeds import generator
from negsample.sentences import headline_of, split_sentences, story_of
from negsample.settings import Settings
from negsample.text import word_tokens
from negsample.train.config import TrainConfig
from negsample.train.reinforce.config import ReinforceConfig

S = TypeVar("S", bound=Settings)
C = TypeVar("C", bound=TrainConfig)

# Pairs of each corpus: a domain of the sample has no more.
PAIRS = 20
# Training pairs of a source in a transfer experiment: the sizes are spread over these.
_SIZES = (4, int(0.7 * PAIRS))
# The most of what costs time, the first two also where the configuration sets no bound: texts (tokens of a pair and of
# its summary for ``cls``, rows of each for other heads) and steps of a judge (``align``).
_BOUNDS = {"limit": PAIRS, "epochs": 2}
_MOST = dict.fromkeys(("negatives", "redraws", "judge_steps", "support_steps"), 2)
_MOST |= dict.fromkeys(("max_length", "max_document"), 64) | dict.fromkeys(("min_summary", "max_summary"), 32)
# The same of a training by a reward.
_REINFORCED = {"ml_epochs": 1, "epochs": 2, "batch_size": 8, "document_tokens": 64, "summary_tokens": 16, "beams": 2}
# Judged pairs of each data set, and systems by the share of a summary's words that they keep.
JUDGED = 6
KEPT = {"s1": 0.9, "s2": 0.8, "s3": 0.65, "s4": 0.5, "s5": 0.35, "s6": 0.2}

# The domain of the sample that is most like a corpus.
_DOMAINS = {"billsum": "legislation", "big_patent": "patents", "arxiv": "science"}
_DOMAINS |= dict.fromkeys(("cnn_dailymail", "newsroom"), "news")
# Packaged weights that work without a path, and what plays the part of the others: no two of the four of Bao et al. 2021
# get the same.
_PACKAGED = ("glove", "hf", "sentence-transformer", "use-multilingual")
_PARTS = {"use": "use-multilingual", "use-large": "sentence-transformer", "word2vec": "glove"}
_ANY_OTHER = "glove(unit=sentence)"
# The encoder of heads that do not take rows, by what they take.
_WHOLE = {"tokens": "minilm", "align": "sentence-transformer"}


def small_training(config: C, say: Callable[[str], None] = print) -> C:
    """Return ``config`` made small enough for a CPU and seconds: recipe, head, loss, optimiser and batches stay.

    ``say`` gets one line that tells every change, where there is one. Raises InputError for an unknown head.
    """
    changes: dict[str, Any] = {
        **_data(config.corpora(), stand_in_corpora(config.corpora())),
        # None, the head's own default, is a packaged one.
        "encoder": config.encoder and (_WHOLE.get(takes(config.head)) or stand_in_encoder(config.encoder)),
        "lm": None,
    }
    for key, most in {**_BOUNDS, **_MOST}.items():
        value = getattr(config, key)
        if value is not None or key in _BOUNDS:
            changes[key] = most if value is None else min(value, most)
    if config.labels:  # the first few may be of one document
        changes["limit"] = config.limit
    return _replaced(config, changes, say)


def small_reinforce(config: ReinforceConfig) -> ReinforceConfig:
    """The same of a training by a reward, with a tiny language model of random weights in place of a pretrained one; reward,
    mixture and systems stay."""
    stands = stand_in_corpora([*config.corpora(), *filter(None, [config.unsupervised])])
    stand = None if config.model is None else CAUSAL if "gpt" in config.model.lower() else SEQ2SEQ
    changes: dict[str, Any] = {
        **_data(config.corpora(), stands),
        "unsupervised": config.unsupervised and stands[config.unsupervised],
        "encoder": stand_in_encoder(config.encoder) if config.policy == "extract" else config.encoder,
        "model": config.model if config.model and Path(config.model).is_dir() else stand,
        "limit": min(config.limit or PAIRS, _BOUNDS["limit"]),
        # Systems are compared on two documents or more.
        "validation_share": max(0.2, config.validation_share),
        "test_share": max(0.3, config.test_share),
        **{key: min(getattr(config, key), most) for key, most in _REINFORCED.items()},
    }
    return _replaced(config, changes, print)


def small_transfer(config: TransferConfig, say: Callable[[str], None] = print) -> TransferConfig:
    """The same of a transfer experiment: sources, targets, recipes, heads and the number of sizes stay."""
    read = {name: config.domain(name) for name in config.domains}
    stands = stand_in_corpora([name for own in read.values() for name in own.corpora()])
    limit, silent = _BOUNDS["limit"], lambda line: None
    domains = {
        name: {"corpus": _data(own.corpora(), stands)["corpus"], "limit": limit, "on_bad": own.on_bad}
        for name, own in read.items()
    }
    small = small_training(config.common, silent).as_dict()

    def small_head(own: HeadSetting) -> dict[str, Any]:
        before = dataclasses.replace(config.common, **own.settings)
        after = small_training(before, silent).as_dict()
        changed = {key: new for key, new in after.items() if new != getattr(before, key) and key not in COMMON}
        return {"label": own.label, **own.settings, **changed, "sizes": _small_sizes(own.sizes)}

    changes = {
        "sources": {name: domains[name] for name in config.sources},
        "targets": {name: domains[name] for name in config.target_names},
        "heads": tuple(map(small_head, config.labelled_heads)),
        "train": {
            key: small[key] if key in COMMON else value
            for key, value in config.train.items()
            if key not in ("limit", "sample")
        },
        "sizes": _small_sizes(config.sizes),
        "few_shot": _small_sizes(config.few_shot),
        "seeds": config.all_seeds()[:1],
    }
    return _replaced(config, changes, say)


def _data(corpora: Sequence[str], stands: Mapping[str, str]) -> dict[str, Any]:
    """What replaces a configuration's data, and how exactly numbers are kept."""
    names = list(dict.fromkeys(stands[name] for name in corpora))
    splits = ("train_split", "validation_split", "test_split")
    unset = dict.fromkeys(("document_field", "summary_field", "corpus_config", "sample", *splits))
    return {"corpus": names[0] if len(names) == 1 else names, **unset, "mixed_precision": "no"}


def _replaced(config: S, changes: Mapping[str, Any], say: Callable[[str], None]) -> S:
    """Make the ``changes``, and say them in one line: ``key before → after`` for each key that differs."""

    def shown(value: Any) -> str:
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(shown, value))}]"
        return "(unset)" if value is None else str(value)

    before = {key: shown(value) for key, value in config.as_dict().items()}
    told = [f"{key} {before[key]} → {shown(new)}" for key, new in changes.items() if before[key] != shown(new)]
    if told:
        say(f"smoke run, figures mean nothing: {', '.join(told)}")
    return dataclasses.replace(config, **changes)


def _small_sizes(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """As many different sizes, in the same order among themselves, up to what a stand-in has; "all" stays."""
    least, most = _SIZES
    known = sorted({size for size in sizes if isinstance(size, int)})
    step = max(1, (most - least) // max(1, len(known) - 1))
    small = {size: min(size, least + place * step) for place, size in enumerate(known)}
    return tuple(small.get(size, "all") for size in sizes)


def stand_in_corpora(names: Sequence[str]) -> dict[str, str]:
    """Return corpus → ``sample:DOMAIN``: the domain most like it, a different one for each corpus while the four last.

    ``sample`` and ``sample:DOMAIN`` stand for themselves, so that what was replaced may be given again.
    """
    ids = {corpus.id: name for name, corpus in KNOWN.items()}
    likes = {name: _DOMAINS.get(ids.get(name, name).partition(":")[0]) for name in names}
    found = {name: name for name in likes if name.partition(":")[0] == "sample"}
    used = Counter(name.partition(":")[2] for name in found)
    # Those that are like a domain choose first.
    for name in sorted(likes.keys() - found.keys(), key=lambda name: (likes[name] is None, names.index(name))):
        domain = min(DOMAINS, key=lambda domain: (used[domain], domain != (likes[name] or "news")))
        used[domain] += 1
        found[name] = f"sample:{domain}"
    return {name: found[name] for name in likes}


def stand_in_encoder(spec: str) -> str:
    """Return the packaged encoder of rows in place of ``spec``: itself where it is one, else one that plays its part."""
    read = parse(spec, "encoder")
    name = read.name
    if name in _PACKAGED and not read.arguments and not {"model", "path", "vectors", "weights"} & set(read.options):
        return spec
    if name == "glove" and read.options.get("unit") == "sentence":
        return _ANY_OTHER
    return name if name in _PACKAGED else _PARTS.get(name, _ANY_OTHER)


# --- what people judged


def damaged_sources(count: int, human: Sequence[str] = (), seed: int = 0) -> list[Source]:
    """``count`` data sets: a few pairs of a domain of the sample each, their summaries with words left out.

    The first of the ``human`` scores is the share of words kept, every other one the share of neighbouring words that
    stayed neighbours. The whole summary is the reference.
    """
    sources = []
    for place in range(count):
        domain, rows = DOMAINS[place % len(DOMAINS)], []
        for pair in list(load_pairs(f"sample:{domain}"))[:JUDGED]:
            words = pair.summary.split()
            for system, share in KEPT.items():
                size, rng = max(2, round(share * len(words))), generator(seed, "stand-in", pair.id, system)
                kept = np.sort(rng.choice(len(words), size=size, replace=False))
                joined = float((np.diff(kept) == 1).sum()) / (len(words) - 1)
                names = human or ("kept", "joined")
                scores = {name: joined if k else size / len(words) for k, name in enumerate(names)}
                text = " ".join(words[k] for k in kept)
                rows.append(Judged(pair.id, system, (pair.document,), text, (pair.summary,), scores, domain))
        sources.append(Source(domain, f"sample:{domain}", tuple(rows), ()))
    return sources


def permuted_source() -> Source:
    """The three summaries of Clark et al. 2019, Table 1, made of one pair of the sample, each sentence but for its last word
    (which has the mark that ends it): whole; with its halves exchanged; with its second half said twice. The reference is the
    document's beginning.
    """
    pair = next(iter(load_pairs("sample:news")))
    texts: dict[str, list[str]] = {"word-order": [], "repetition": []}
    for words in map(str.split, split_sentences(pair.summary)):
        first, second = words[: len(words) // 2], words[len(words) // 2 :]
        texts["word-order"].append(" ".join([*second[:-1], *first, second[-1]]))
        texts["repetition"].append(" ".join([*first, *second[:-1], *second]))
    damaged = {name: " ".join(text[0].upper() + text[1:] for text in own) for name, own in texts.items()}
    reference = " ".join(split_sentences(pair.document)[:3])
    rows = tuple(
        Judged(pair.id, name, (pair.document,), text, (reference,), {"shown": 1.0}, "news")
        for name, text in {"human": pair.summary, **damaged}.items()
    )
    return Source("news", "sample:news", rows, ())


def docsets(human: Sequence[str]) -> tuple[Source, dict[Any, Any]]:
    """Docsets of ten articles with four references and four systems, in the shape of TAC 2010, without NIST's ROUGE.

    A system gives a share of the words of a docset's first summaries; people (the ``human`` scores) like more of them.
    """
    pairs = list(load_pairs("sample"))
    rows = []
    for number in range(len(pairs) // 10):
        ten = pairs[10 * number : 10 * number + 10]
        documents = tuple(pair.document for pair in ten)
        references = tuple(" ".join(pair.summary for pair in ten[place : place + 2]) for place in range(4))
        words = references[number % 4].split()
        for system, share in enumerate((1.0, 0.7, 0.4, 0.1), start=1):
            scores = {name: share + 0.01 * (number * (k + 1) % 7) for k, name in enumerate(human)}
            summary = " ".join(words[: max(4, round(share * len(words)))])
            rows.append(Judged(f"D{10 * number:04d}-A", str(system), documents, summary, references, scores))
    told = "a stand-in of the embedded sample: the figures mean nothing"
    return Source("tac2010", "sample", tuple(rows), (told,)), {}


def headlines() -> list[Row]:
    """Records of four data sets: two systems, a story's first and its last sentence, and, as people's score from 1 to 5, what
    part of the other text's words stands in the headline."""
    found = []
    for pair in load_pairs("sample"):
        story, reference = story_of(pair.document), headline_of(pair.summary)
        sentences = split_sentences(story)
        for system, sentence in (("first", sentences[0]), ("last", sentences[-1])):
            texts = {"story": story, "generated": sentence, "reference": reference}
            words = {name: set(word_tokens(text)) for name, text in texts.items()}
            scores = {
                score: 1 + 4 * len(words[made] & words[other]) / max(1, len(words[other]))
                for score, made, other in TASKS.values()
            }
            found.append(Row("sample", {**texts, **scores, "dataset": pair.id.partition("-")[0], "system": system}))
    return found

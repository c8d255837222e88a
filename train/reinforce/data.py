"""Documents for training by a reward: read from the corpora, split by document."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from negsample.corpora import describe_skipped, load_pairs
from negsample.errors import InputError
from negsample.negatives.split import SPLITS, Shares, assign
from negsample.records import Source, document_key
from negsample.seeds import digest, generator
from negsample.sentences import headline_of, story_of
from negsample.train.data import corpus_options
from negsample.train.reinforce.config import ReinforceConfig


def read_sources(config: ReinforceConfig) -> tuple[dict[str, list[Source]], list[Source], dict[str, Any]]:
    """The documents of each split, those without references (``unsupervised``), and what ``run.json`` says of them.

    A document that comes again with another summary has several references. Raises InputError as ``load_pairs``, and for
    fewer than three documents.
    """
    skipped: Counter[str] = Counter()
    found: dict[str, tuple[str, list[str]]] = {}
    for name in config.corpora():
        for document, summary in _texts(config, name, skipped, documents_alone=not config.references):
            references = found.setdefault(document_key(document), (document, []))[1]
            if summary is not None and summary not in references:
                references.append(summary)
    keys = sorted(found)
    shares = Shares(1 - config.validation_share - config.test_share, config.validation_share, config.test_share)
    split = assign(np.array([bytes.fromhex(key) for key in keys]), np.arange(len(keys)), config.seed, shares)
    sources = {
        name: [
            Source(key, found[key][0], tuple(found[key][1])) for key, part in zip(keys, split, strict=True) if part == n
        ]
        for n, name in enumerate(SPLITS)
    }
    held_out = {source.id for name in ("validation", "test") for source in sources[name]}
    extra: dict[str, Source] = {}
    if config.unsupervised is not None:
        for document, _ in _texts(config, config.unsupervised, skipped, documents_alone=True):
            key = document_key(document)
            # Of the test documents too: Scialom et al. 2019 train on those, and so may a user, who then names them.
            extra.setdefault(key, Source(f"{key}-alone", document))
    about = {
        "documents": {name: len(own) for name, own in sources.items()},
        "unsupervised": len(extra),
        "unsupervised_held_out": sum(key in held_out for key in extra),
        "fingerprint": digest(*(part for key in keys for part in (key, *found[key][1]))).hex(),
        "skipped": describe_skipped(skipped),
    }
    return sources, list(extra.values()), about


def _texts(
    config: ReinforceConfig, name: str, skipped: Counter[str], documents_alone: bool
) -> list[tuple[str, str | None]]:
    # Where there is no summary field, the document stands in for it and is forgotten.
    field = (config.document_field or "document") if documents_alone else config.summary_field
    options = dataclasses.replace(corpus_options(config), summary_field=field)
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


def epoch_order(train: Sequence[Source], alone: Sequence[Source], share: float, seed: int, epoch: int) -> list[Source]:
    """The documents of an epoch in a random order; ``alone`` make up ``share`` of them where there are any."""
    order = [train[i] for i in generator(seed, "reinforce", "order", epoch).permutation(len(train))]
    if not alone:
        return order
    rng = generator(seed, "reinforce", "alone", epoch)
    wanted = max(1, round(len(order) * share / (1 - share)))
    rounds = [rng.permutation(len(alone)) for _ in range(-(-wanted // len(alone)))]
    order += [alone[i] for i in np.concatenate(rounds)[:wanted]]
    return [order[i] for i in rng.permutation(len(order))]


def need_documents(sources: Sequence[Source], what: str) -> None:
    """Raises InputError where there is no document with a reference for ``what``."""
    if not any(source.references for source in sources):
        raise InputError(f"{what} needs references, and no document has one; set references=false or give summaries")

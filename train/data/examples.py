"""From a configuration's corpora to example files: reading its pairs, and making their negatives."""

import dataclasses
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from negsample.corpora import CorpusOptions, describe_skipped, load_pairs
from negsample.errors import InputError
from negsample.negatives.generate import GenerateOptions, generate
from negsample.negatives.recipe import Recipe
from negsample.records import Pair
from negsample.train.config import Reading, TrainConfig


def corpus_options(config: Reading) -> CorpusOptions:
    """How the corpora of ``config`` are read."""
    return CorpusOptions(
        limit=config.limit,
        sample=config.sample,
        seed=config.seed,
        document_field=config.document_field,
        summary_field=config.summary_field,
        config=config.corpus_config,
        on_bad=config.on_bad,
    )


def pairs_of(config: Reading, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of ``config``'s corpora, one corpus after the other; ``skipped`` counts records passed over, by reason."""
    for name in config.corpora():
        yield from load_pairs(name, corpus_options(config), skipped)


def find_corpora(config: Reading) -> None:
    """Open each corpus of ``config`` and read it up to its first pair, before anything is begun with them.

    Raises InputError for one that is not there, can't be read, or can be read once only (standard input).
    """
    for name in config.corpora():
        if name == "-":
            raise InputError("corpus: standard input can be read once only; give a file")
        # Without sampling, which would read it to its end.
        next(load_pairs(name, dataclasses.replace(corpus_options(config), sample=None)), None)


def make_examples(config: TrainConfig, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write the examples of ``config``'s corpora to ``folder``; return what was made of what, as plain values."""
    shutil.rmtree(folder, ignore_errors=True)
    skipped: Counter[str] = Counter()
    options = GenerateOptions(
        recipe, config.negatives, config.seed, vocabulary=config.vocabulary, redraws=config.redraws
    )
    report = generate(pairs_of(config, skipped), options, folder)
    return {
        "corpora": config.corpora(),
        "limit": config.limit,
        "sample": config.sample,
        "skipped": dict(skipped),
        "skipped_text": describe_skipped(skipped),
        **dataclasses.asdict(report),
    }

"""Seeing that corpora can be read before anything is begun with them."""

from negsample.corpora import load_pairs
from negsample.errors import InputError
from negsample.train.config import TrainConfig
from negsample.train.job import corpus_options

# The settings that say what is read of which corpora.
READING = ("corpus", "corpus_config", "document_field", "summary_field", "limit", "on_bad")


def find_corpora(config: TrainConfig) -> None:
    """Open each corpus of ``config`` and read it up to its first pair.

    Raises InputError for one that is not there, can't be read, or can be read once only (standard input).
    """
    for name in config.corpora():
        if name == "-":
            raise InputError("corpus: standard input can be read once only; give a file")
        next(load_pairs(name, corpus_options(config)), None)

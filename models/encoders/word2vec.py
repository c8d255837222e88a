"""word2vec vectors (Mikolov et al., 2013), binary or text; ``avg`` and ``max`` of Sun & Nenkova 2019."""

from pathlib import Path

from negsample.models.encoders.vectors import read_vectors
from negsample.models.encoders.words import WordEncoder, word_encoder


def make(path: str, unit: str = "sentence", pool: str = "mean", lower: bool = False, limit: int = 0) -> WordEncoder:
    """word2vec vectors from ``path``: the binary or the text format, found out from the file, maybe gzipped.

    ``unit``, ``pool`` and ``limit`` as for ``glove``; ``lower=false``: a word is looked up as written, then in lower
    case (the Google News vectors are cased). Raises InputError for a damaged file, with its line or byte.
    """
    return word_encoder("word2vec", read_vectors(Path(path), limit), unit, pool, lower)

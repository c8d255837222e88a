"""Newsroom (Grusky et al., NAACL 2018): given out under a licence form, so read from local files only.

The folder holds ``train.jsonl.gz``, ``dev.jsonl.gz`` and ``test.jsonl.gz``, or the same unpacked; fields ``text`` and
``summary``.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterator

from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError
from negsample.io.read import read_rows
from negsample.records import Pair

SPLITS = ("train", "dev", "test")


def load(path: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of the folder ``path`` (train, dev, test in this order, or ``options.split``) or of one file.

    Raises InputError where ``path`` is ``""`` (saying where Newsroom is to be had), is missing, or lacks the split.
    """
    if not path:
        raise InputError(
            "newsroom: name its folder, as newsroom:DIR; its authors give it out at https://lil.nlp.cornell.edu/newsroom"
        )
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder; name the folder that Newsroom was unpacked to")
    options.refuse("newsroom", "config")
    if os.path.isdir(path):
        files = _files(path, options.split)
    else:
        options.refuse(f"{path}: a file", "split")
        files = [path]
    rows = itertools.chain(*map(read_rows, files))
    return pairs_from(rows, "newsroom", "text", "summary", options, skipped, unique_ids=False)


def _files(folder: str, split: str | None) -> list[str]:
    wanted = SPLITS if split is None else ("dev" if split == "validation" else split,)
    found = []
    for name in wanted:
        candidates = [os.path.join(folder, name + ending) for ending in (".jsonl.gz", ".jsonl")]
        found += [path for path in candidates if os.path.isfile(path)][:1]
    if not found:
        names = ", ".join(f"{name}.jsonl.gz" for name in wanted)
        raise InputError(f"{folder}: has none of {names}; name the folder that Newsroom was unpacked to")
    return found

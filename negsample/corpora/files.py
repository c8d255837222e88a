"""Corpora in local files: one's own, the sample inside the package, Newsroom.

A file is JSON lines, CSV, TSV or Parquet with the fields ``document`` and ``summary``. The sample has 80 pairs in four
domains, written by the project. Newsroom (Grusky et al., NAACL 2018) is given out under a licence form: its folder holds
``train.jsonl.gz``, ``dev.jsonl.gz`` and ``test.jsonl.gz``, or the same unpacked, with the fields ``text`` and ``summary``.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterator

from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError
from negsample.io.files import ENDINGS
from negsample.io.read import SAMPLE_PATH, read_rows
from negsample.records import Pair
from negsample.registry import suggestion

DOMAINS = ["legislation", "news", "patents", "science"]
"""Of the sample."""
SPLITS = ("train", "dev", "test")
"""Of Newsroom."""


def corpus_name(path: str) -> str:
    """The file's name without folder and ending: ``data/bbc.jsonl.gz`` → ``bbc``; ``-`` → ``standard input``."""
    if path == "-":
        return "standard input"
    base = os.path.basename(path)
    ending = max((e for e in ENDINGS if base.lower().endswith(e)), key=len, default="")
    return base[: len(base) - len(ending)] or base


def load_file(path: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of the file ``path``. Raises InputError and RecordError as ``load_pairs`` says."""
    options.refuse(f"{path}: a file", "config", "split")
    return pairs_from(read_rows(path), corpus_name(path), "document", "summary", options, skipped)


def load_sample(domain: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of one domain, or of all where ``domain`` is ``""``.

    Raises InputError for a domain that the sample does not have, or an option that it has no use for.
    """
    if domain and domain not in DOMAINS:
        raise InputError(f"sample has no domain {domain!r}; {suggestion(domain, DOMAINS)}")
    options.refuse("sample", "config", "split")
    rows = (row for row in read_rows(SAMPLE_PATH) if not domain or row.fields.get("domain") == domain)
    return pairs_from(rows, "sample", "document", "summary", options, skipped)


def load_newsroom(path: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
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
    files = [path]
    if os.path.isdir(path):
        wanted = {None: SPLITS, "validation": ("dev",)}.get(options.split, (options.split,))
        both = [[os.path.join(path, f"{name}{ending}") for ending in (".jsonl.gz", ".jsonl")] for name in wanted]
        files = [next(filter(os.path.isfile, names)) for names in both if any(map(os.path.isfile, names))]
        if not files:
            told = ", ".join(f"{name}.jsonl.gz" for name in wanted)
            raise InputError(f"{path}: has none of {told}; name the folder that Newsroom was unpacked to")
    else:
        options.refuse(f"{path}: a file", "split")
    rows = itertools.chain(*map(read_rows, files))
    return pairs_from(rows, "newsroom", "text", "summary", options, skipped, unique_ids=False)

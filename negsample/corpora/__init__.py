"""Corpora of (document, summary) pairs, by name, by file, by folder or by hub id.

A file is JSON lines, CSV, TSV or Parquet with the fields ``document`` and ``summary``. The sample inside the package has 80 pairs
in four domains, written by the project.

A new corpus is one file with ``load(argument, options, skipped) -> Iterator[Pair]`` and one line here; ``argument`` is
what follows the colon in ``name:argument``, else ``""``. A corpus on the hub needs only an entry in ``hub.KNOWN``.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator

from negsample.corpora import hub
from negsample.corpora.pairs import CorpusOptions, describe_skipped, pairs_from, sampled
from negsample.errors import InputError
from negsample.io.files import ENDINGS, has_known_ending
from negsample.io.lines import is_pipe
from negsample.io.read import SAMPLE_PATH, is_saved, read_rows
from negsample.records import Pair
from negsample.registry import Registry, suggestion

__all__ = ["CORPORA", "CorpusOptions", "describe_skipped", "load_pairs"]

CORPORA = Registry(
    "corpus",
    {"sample": "negsample.corpora:load_sample", "newsroom": "negsample.corpora:load_newsroom", **hub.LOADERS},
    plural="corpora",
)

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def load_pairs(name: str, options: CorpusOptions | None = None, skipped: Counter[str] | None = None) -> Iterator[Pair]:
    """The pairs of a corpus, lazily and in its own order; the first ``options.limit``, of these ``options.sample`` (``sampled``).

    ``name`` is one of

    - a registered name (``sample``, ``cnn_dailymail``), or ``name:argument`` (``sample:news``, ``newsroom:DIR``, and
      ``cnn_dailymail:DIR`` for a folder that holds a copy of the corpus as the hub has it);
    - a file ending in .jsonl, .csv, .tsv (each also .gz) or .parquet, or ``-`` for JSON lines on standard input;
    - a folder laid out like a hub data set, written as an absolute path or with a leading ``./``; a folder that
      ``save_to_disk`` of ``datasets`` has written, by any path;
    - a hub id, which has one ``/``.

    ``skipped`` counts the records that were passed over, by reason, where ``options.on_bad`` is ``"skip"``
    (``describe_skipped`` puts it in words).

    Raises InputError: at the call for an unknown name, a missing file or a hub that can't be reached; while reading for
    a broken file, for a bad record (a RecordError, unless they are skipped), and for a corpus without one good record.
    """
    options = options or CorpusOptions()
    counts = Counter() if skipped is None else skipped
    pairs = itertools.islice(_open(name, options, counts), options.limit)
    return pairs if options.sample is None else sampled(pairs, options.sample, options.seed)


def _open(name: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    head, colon, argument = name.partition(":")
    if head in CORPORA:
        return CORPORA.get(head)(argument, options, skipped)
    if is_pipe(name) or os.path.isfile(name):
        return load_file(name, options, skipped)
    path = name.startswith((".", "/", "~"))
    if is_saved(name) or (path and os.path.isdir(name)):
        return hub.load(hub.HubCorpus(os.path.basename(os.path.abspath(name)), ""), name, options, skipped)
    if path or has_known_ending(name):
        raise InputError(f"{name}: no such file or folder; check the path")
    if os.path.isdir(name) and "/" not in name:
        raise InputError(f"{name}: is a folder; write ./{name} to read it as a corpus")
    if _HUB_ID.fullmatch(name):
        known = (corpus for corpus in hub.KNOWN.values() if corpus.id == name)
        return hub.load(next(known, hub.HubCorpus(name, name)), "", options, skipped)
    if "/" in name and not (colon and "/" not in head):
        raise InputError(f"{name}: neither a file nor a hub id (OWNER/NAME); check the name")
    # Not registered, as tested above: raises with the nearest names.
    return CORPORA.get(head)


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

    Newsroom (Grusky et al., NAACL 2018) is given out under a licence form: ``train.jsonl.gz``, ``dev.jsonl.gz`` and
    ``test.jsonl.gz``, or the same unpacked.

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

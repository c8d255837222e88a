"""Corpora of (document, summary) pairs, by name, by file, by folder or by hub id.

A new corpus is one file with ``load(argument, options, skipped) -> Iterator[Pair]`` and one line here; ``argument`` is
what follows the colon in ``name:argument``, else ``""``. A corpus on the hub needs only an entry in ``hub.KNOWN``.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator

from negsample.corpora import files, hub
from negsample.corpora.pairs import CorpusOptions, describe_skipped, sampled
from negsample.errors import InputError
from negsample.io.files import has_known_ending
from negsample.io.lines import is_pipe
from negsample.io.read import is_saved
from negsample.records import Pair
from negsample.registry import Registry

__all__ = ["CORPORA", "CorpusOptions", "describe_skipped", "load_pairs"]

CORPORA = Registry(
    "corpus",
    {
        "sample": "negsample.corpora.files:load_sample",
        "newsroom": "negsample.corpora.files:load_newsroom",
        **hub.LOADERS,
    },
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
        return files.load_file(name, options, skipped)
    path = name.startswith((".", "/", "~"))
    if is_saved(name) or (path and os.path.isdir(name)):
        return hub.load_folder(name, options, skipped)
    if path or has_known_ending(name):
        raise InputError(f"{name}: no such file or folder; check the path")
    if os.path.isdir(name) and "/" not in name:
        raise InputError(f"{name}: is a folder; write ./{name} to read it as a corpus")
    if _HUB_ID.fullmatch(name):
        return hub.load_id(name, options, skipped)
    if "/" in name and not (colon and "/" not in head):
        raise InputError(f"{name}: neither a file nor a hub id (OWNER/NAME); check the name")
    # Not registered, as tested above: raises with the nearest names.
    return CORPORA.get(head)

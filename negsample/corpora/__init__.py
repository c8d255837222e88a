"""Corpora of (document, summary) pairs, by name, by file, by folder or by hub id.

A file is JSON lines, CSV, TSV or Parquet with the fields ``document`` and ``summary``. The sample inside the package has 80 pairs
in four domains, written by the project.

A new corpus is one file with ``load(argument, options, skipped) -> Iterator[Pair]`` and one line here; ``argument`` is
what follows the colon in ``name:argument``, else ``""``. A corpus on the hub needs only an entry in ``KNOWN``.
"""

import itertools
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from negsample.corpora.pairs import CorpusOptions, describe_skipped, pairs_from, sampled
from negsample.errors import InputError, one_line
from negsample.io.files import ENDINGS, has_known_ending
from negsample.io.lines import is_pipe
from negsample.io.read import SAMPLE_PATH, Row, is_saved, load_saved, read_rows
from negsample.records import Pair
from negsample.registry import Registry, suggestion

__all__ = ["CORPORA", "CorpusOptions", "describe_skipped", "load_pairs"]

# The branch in which the hub keeps a Parquet copy of data sets that are published as a loading script.
_PARQUET_BRANCH = "refs/convert/parquet"
_FIRST_SPLITS = ("train", "validation", "test")
_DOCUMENT_FIELDS = ("document", "article", "text", "dialogue", "description", "source")
_SUMMARY_FIELDS = ("summary", "highlights", "abstract", "tldr", "target")


@dataclass(frozen=True)
class HubCorpus:
    """Where a corpus is on the hub, what its fields are called (``""``: to be told from its columns), and its domain."""

    name: str
    id: str
    config: str | None = None
    document: str = ""
    summary: str = ""
    domain: str = ""


KNOWN = {
    "cnn_dailymail": HubCorpus("cnn_dailymail", "abisee/cnn_dailymail", "3.0.0", "article", "highlights", "news"),
    "billsum": HubCorpus("billsum", "FiscalNote/billsum", None, "text", "summary", "legislation"),
    "arxiv": HubCorpus("arxiv", "ccdv/arxiv-summarization", "document", "article", "abstract", "science"),
    "big_patent": HubCorpus(
        "big_patent", "NortheasternUniversity/big_patent", "all", "description", "abstract", "patents"
    ),
}


def _load(corpus: HubCorpus, folder: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of ``corpus``, from a local copy where ``folder`` names one, else from the hub."""
    if folder and not os.path.isdir(folder):
        raise InputError(f"{folder}: no such folder; name the folder that holds a copy of {corpus.id or corpus.name}")
    config, label = options.config or corpus.config, folder or corpus.id
    with _explained(label):
        splits = _local_splits(folder, config, options) if folder else _hub_splits(corpus.id, config, options)
        order = [*(name for name in _FIRST_SPLITS if name in splits), *splits]
        rows = _rows(label, {str(name): splits[name] for name in dict.fromkeys(order)})
    return _pairs(rows, label, corpus, options, skipped)


def _rows(label: str, splits: Mapping[str, Any]) -> Iterator[Row]:
    for split, data in splits.items():
        with _explained(label):
            for number, record in enumerate(data, start=1):
                yield Row(f"{label}, {split}, record {number}", record)


def _pairs(
    rows: Iterator[Row], label: str, corpus: HubCorpus, options: CorpusOptions, skipped: Counter[str]
) -> Iterator[Pair]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{label}: no records; check the folder or the split")
    fields = []
    for role, named, known in (
        ("document", options.document_field or corpus.document, _DOCUMENT_FIELDS),
        ("summary", options.summary_field or corpus.summary, _SUMMARY_FIELDS),
    ):
        found = [named] if named else [name for name in known if name in first.fields]
        if len(found) != 1:
            raise InputError(
                f"{label}: can't tell which field is the {role}; its fields are {', '.join(first.fields)}; give "
                f"{role}_field=NAME"
            )
        fields += found
    document, summary = fields
    rows = itertools.chain([first], rows)
    kind = corpus.domain
    yield from pairs_from(rows, corpus.name, document, summary, options, skipped, unique_ids=False, domain=kind)


LOADERS = {name: partial(_load, corpus) for name, corpus in KNOWN.items()}


CORPORA = Registry(
    "corpus",
    {"sample": "negsample.corpora:load_sample", "newsroom": "negsample.corpora:load_newsroom", **LOADERS},
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
        return _load(HubCorpus(os.path.basename(os.path.abspath(name)), ""), name, options, skipped)
    if path or has_known_ending(name):
        raise InputError(f"{name}: no such file or folder; check the path")
    if os.path.isdir(name) and "/" not in name:
        raise InputError(f"{name}: is a folder; write ./{name} to read it as a corpus")
    if _HUB_ID.fullmatch(name):
        known = (corpus for corpus in KNOWN.values() if corpus.id == name)
        return _load(next(known, HubCorpus(name, name)), "", options, skipped)
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
    return pairs_from(rows, "newsroom", "text", "summary", options, skipped, unique_ids=False, domain="news")


# --- datasets


def _local_splits(folder: str, config: str | None, options: CorpusOptions) -> Mapping[Any, Any]:
    """Streams of a local folder by split. Streaming writes no cache, and local files can be read again at no cost."""
    if is_saved(folder):
        options.refuse(f"{folder}: a folder of save_to_disk", "config")
        found = load_saved(folder)
        if options.split is None:
            return found
        if options.split not in found:
            raise InputError(f"{folder}: has no split {options.split!r}; {suggestion(options.split, list(found))}")
        return {options.split: found[options.split]}
    arguments: dict[str, Any] = {}
    card = Path(folder, "README.md")
    if config is not None and card.is_file() and "\nconfigs:" in card.read_text("utf-8", "replace"):
        arguments["name"] = config
    elif config is not None and os.path.isdir(os.path.join(folder, config)):
        # Without a card, a configuration is a folder of its name, as in the hub's Parquet branch.
        arguments["data_dir"] = config
    elif options.config is not None:
        raise InputError(f"{folder}: has no configuration {options.config!r}; leave it out or check the folder")
    return _splits(os.path.abspath(folder), options.split, streaming=True, **arguments)


def _hub_splits(name: str, config: str | None, options: CorpusOptions) -> Mapping[Any, Any]:
    """Data of a hub corpus by split: streamed where only a part is asked for, else downloaded once and cached."""
    streaming = options.limit is not None
    # The hub's client logs two lines for each of its retries: what counts is how they end.
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return _splits(name, options.split, streaming, name=config)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        return _splits(name, options.split, streaming, data_dir=config or "default", revision=_PARQUET_BRANCH)
    finally:
        logger.setLevel(level)


def _splits(path: str, split: str | None, streaming: bool, **arguments: Any) -> Mapping[Any, Any]:
    import datasets

    if split is None:
        found: Mapping[Any, Any] = datasets.load_dataset(path, streaming=streaming, **arguments)
        return found
    # A slice such as train[:10%] can't be streamed.
    return {split: datasets.load_dataset(path, split=split, streaming=streaming and "[" not in split, **arguments)}


@contextmanager
def _explained(label: str) -> Iterator[None]:
    """Turn what ``datasets`` and the network raise into one line that says what to do."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        from datasets.exceptions import DatasetNotFoundError, DatasetsError

        told = one_line(error)
        if _is_network(error):
            hint = "download the data set elsewhere and give its folder as ./DIR or NAME:DIR"
            raise InputError(f"{label}: can't reach the hub; {hint}") from error
        if isinstance(error, DatasetNotFoundError):
            raise InputError(f"{label}: not on the hub, or only for members ({told}); check the name") from error
        if isinstance(error, DatasetsError | ValueError | OSError | RuntimeError | UnicodeError):
            raise InputError(
                f"{label}: can't be read ({told}); check the name, the configuration and the split"
            ) from error
        raise


def _is_network(error: BaseException | None) -> bool:
    """Whether the error, or one that it came from, is a failure to connect."""
    while error is not None:
        module = type(error).__module__.partition(".")[0]
        named = type(error).__name__ in ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
        if named or isinstance(error, ConnectionError | TimeoutError) or module in ("httpx", "httpcore", "aiohttp"):
            return True
        error = error.__cause__ or error.__context__
    return False

"""Corpora on the Hugging Face hub, and folders laid out like them, through ``datasets`` (no loading scripts)."""

import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError
from negsample.io.read import Row, is_saved, load_saved
from negsample.records import Pair
from negsample.registry import suggestion

# The branch in which the hub keeps a Parquet copy of data sets that are published as a loading script.
_PARQUET_BRANCH = "refs/convert/parquet"
_FIRST_SPLITS = ("train", "validation", "test")
_DOCUMENT_FIELDS = ("document", "article", "text", "dialogue", "description", "source")
_SUMMARY_FIELDS = ("summary", "highlights", "abstract", "tldr", "target")


@dataclass(frozen=True)
class HubCorpus:
    """Where a corpus is on the hub and what its fields are called ; ``""``: to be told from its columns."""

    name: str
    id: str
    config: str | None = None
    document: str = ""
    summary: str = ""


KNOWN = {
    "cnn_dailymail": HubCorpus("cnn_dailymail", "abisee/cnn_dailymail", "3.0.0", "article", "highlights"),
    "billsum": HubCorpus("billsum", "FiscalNote/billsum", None, "text", "summary"),
    "arxiv": HubCorpus("arxiv", "ccdv/arxiv-summarization", "document", "article", "abstract"),
    "big_patent": HubCorpus("big_patent", "NortheasternUniversity/big_patent", "all", "description", "abstract"),
}


def load(corpus: HubCorpus, folder: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
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
                f"--{role}-field"
            )
        fields += found
    document, summary = fields
    rows = itertools.chain([first], rows)
    yield from pairs_from(rows, corpus.name, document, summary, options, skipped, unique_ids=False)


LOADERS = {name: partial(load, corpus) for name, corpus in KNOWN.items()}


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

        told = " ".join(str(error).split())[:200] or type(error).__name__
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

"""Which documents an experiment trains, validates and tests on, and the examples made of them.

A document in the test split of any target is in no training and no validation, whatever corpus it is read from.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_json, replacing
from negsample.negatives.generate import generate
from negsample.negatives.index import fingerprint, index_of
from negsample.negatives.recipe import Recipe
from negsample.negatives.split import SPLITS, Shares
from negsample.progress import track
from negsample.records import Pair, document_key
from negsample.seeds import digest
from negsample.train.config import TrainConfig
from negsample.train.data import Parting, amounts, make_examples, pairs_of, read_of

_TRAIN, _VALIDATION, _TEST, _NONE = range(4)
# Fewer validation documents than this say little about when to stop.
_LEAST_VALIDATION = 8
_CHANGED = "has changed since the experiment was begun; give another folder with --out"
_ROW = np.dtype([("key", "S16"), ("summary", "S16")])


class DomainSplit(NamedTuple):
    """``rows`` [pairs] of (document key, summary hash); ``part`` uint8 [pairs]: 0 training, 1 validation, 2 test."""

    rows: np.ndarray
    part: np.ndarray


class Choice(NamedTuple):
    """What one training reads: document keys, S16, of training and validation; and pairs of training.

    ``left_out``: training documents of the source that are, or share a summary with, test documents of a target.
    """

    train: np.ndarray
    validation: np.ndarray
    train_pairs: int
    left_out: int


def split_domain(config: TrainConfig, folder: Path) -> DomainSplit:
    """Return the split of a domain, as ``negsample train`` splits it; kept in ``folder`` and taken from there, unread.

    Raises InputError where the corpus can't be read, or not be split, or is read again and has changed since.
    """
    path, about = folder / "split.npz", folder / "about.json"
    if path.is_file() and about.is_file():
        with np.load(path, allow_pickle=False) as stored:
            return DomainSplit(stored["rows"], stored["part"])
    skipped: Counter[str] = Counter()
    names, parting = ", ".join(config.corpora()), Parting(config)
    index = index_of(track(pairs_of(config, skipped, parting), f"reading {names}"))
    try:
        part = parting.part(index.key[index.first[:-1]], index.group)[index.document]
    except InputError as error:
        raise InputError(f"{names}: {error}") from error
    facts = {
        **read_of(config, skipped),
        "pairs": len(index.number) + index.duplicates,
        "duplicates": index.duplicates,
        "documents": len(index.group),
        "splits": {name: int(np.sum(part == number)) for number, name in enumerate(SPLITS)},
        "fingerprint": fingerprint(index),
        "split_fingerprints": {name: fingerprint(index, part == number) for number, name in enumerate(SPLITS)},
    }
    key = "split_fingerprints"
    if about.is_file() and json.loads(about.read_text(encoding="utf-8"))[key] != facts[key]:
        raise InputError(f"{names}: {_CHANGED}")
    rows = np.empty(len(index.number), _ROW)
    rows["key"], rows["summary"] = index.key, index.summary
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as handle:
        np.savez(handle, rows=rows, part=part)
    atomic_json(about, facts)
    return DomainSplit(rows, part)


def held_out(targets: Iterable[DomainSplit]) -> np.ndarray:
    """Return the rows of all targets' test splits."""
    return np.concatenate([rows[part == _TEST] for rows, part in targets])


def choose(domains: Sequence[DomainSplit], held: np.ndarray, size: int | None, seed: int) -> Choice | None:
    """Return the documents of a training on ``domains`` together, cut to ``size`` pairs; None where they have fewer.

    Documents come in an order that depends on ``seed`` and document alone, whole, until ``size`` pairs are reached (None:
    all), so a smaller choice is part of a larger one. Validation documents (never those of a training split of another
    of the domains) are cut to an eighth of the training documents, as in an 80/10/10 split, or 8 where that is less.
    """
    training, stopping = (
        np.concatenate([rows["key"][part == own] for rows, part in domains]) for own in (_TRAIN, _VALIDATION)
    )
    free = _without(np.unique(np.concatenate([rows for rows, _ in domains])), held)
    train = free[np.isin(free["key"], training)]
    left_out = len(np.unique(training)) - len(np.unique(train["key"]))
    validation = _without(free[np.isin(free["key"], stopping)], train)
    chosen, pairs = _first(train, seed, size)
    if size is not None and pairs < size:
        return None
    share = Shares().validation / Shares().train
    most = None if size is None else max(_LEAST_VALIDATION, round(share * len(chosen)))
    return Choice(chosen, _first(validation, seed, None, most)[0], pairs, left_out)


def _without(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """``rows`` without the documents that are among ``others`` or share a summary with them."""
    hit = np.isin(rows["key"], others["key"]) | np.isin(rows["summary"], others["summary"])
    return rows[~np.isin(rows["key"], rows["key"][hit])]


def _first(rows: np.ndarray, seed: int, pairs: int | None, documents: int | None = None) -> tuple[np.ndarray, int]:
    """The keys of the first documents of ``rows`` that have ``pairs`` pairs, or are ``documents``, and how many pairs."""
    keys, counts = np.unique(rows["key"], return_counts=True)
    order = sorted(range(len(keys)), key=lambda i: digest(seed, "transfer", keys[i]))
    keys, totals = keys[order], np.cumsum(counts[order])
    most = len(keys) if pairs is None else int(np.searchsorted(totals, pairs)) + 1
    most = min(most, len(keys) if documents is None else documents, len(keys))
    return keys[:most], int(totals[most - 1]) if most else 0


def training_examples(choice: Choice, configs: Sequence[TrainConfig], recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write ``train`` and ``validation.jsonl.gz`` of the chosen documents to ``folder``, and return what was made.

    Negatives of training draw texts and words from the chosen training documents alone. Raises InputError where the corpora
    (read as ``configs`` say) have changed.
    """
    about = folder / "about.json"
    if about.is_file():
        return json.loads(about.read_text(encoding="utf-8"))
    parts = dict.fromkeys(choice.train.tolist(), _TRAIN) | dict.fromkeys(choice.validation.tolist(), _VALIDATION)

    def chosen() -> Iterator[Pair]:
        for pair in (pair for config in configs for pair in pairs_of(config, Counter())):
            # numpy gives keys back without zero bytes at their end.
            if bytes.fromhex(document_key(pair.document)).rstrip(b"\0") in parts:
                yield pair

    def part(keys: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return np.array([parts.get(key, _NONE) for key in keys.tolist()], np.uint8)

    shutil.rmtree(folder, ignore_errors=True)
    report = generate(chosen(), recipe, folder, **amounts(configs[0]), part=part)
    if report["documents"] != len(parts):
        raise InputError(f"{', '.join(name for config in configs for name in config.corpora())}: {_CHANGED}")
    (folder / "test.jsonl.gz").unlink()
    report["splits"].pop("test")
    atomic_json(about, report)
    return report


def target_examples(config: TrainConfig, recipe: Recipe, domain: Path, folder: Path) -> None:
    """Write ``test.jsonl.gz`` of a domain to ``folder``, as ``negsample train`` would be tested on it, unless it is there.

    ``domain`` is the folder of ``split_domain``. Raises InputError where the corpus has changed since.
    """
    if (folder / "about.json").is_file():
        return
    made = make_examples(config, recipe, folder)
    now = {name: split["fingerprint"] for name, split in made["splits"].items()}
    if now != json.loads((domain / "about.json").read_text(encoding="utf-8"))["split_fingerprints"]:
        raise InputError(f"{', '.join(config.corpora())}: {_CHANGED}")
    for name in ("train", "validation"):
        (folder / f"{name}.jsonl.gz").unlink()
    atomic_json(folder / "about.json", {"fingerprint": made["fingerprint"], **made["splits"]["test"]})

"""What a run learns from: corpora → example files → arrays on disk, each text read once."""

import dataclasses
import itertools
import json
import os
import shutil
import socket
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.corpora import CorpusOptions, describe_skipped, load_pairs
from negsample.errors import InputError
from negsample.io.files import appears, atomic_json, has_known_ending
from negsample.io.lines import display, is_pipe
from negsample.io.read import read_examples
from negsample.io.write import open_writer
from negsample.negatives import ASPECTS
from negsample.negatives.generate import generate
from negsample.negatives.index import fingerprint, padded
from negsample.negatives.recipe import Recipe
from negsample.negatives.split import SPLITS, Shares, assign
from negsample.recent import Recent
from negsample.records import LABELLED, Pair, document_key
from negsample.seeds import digest
from negsample.train.config import Reading, TrainConfig
from negsample.train.labels import Labelled, read_labels

if TYPE_CHECKING:
    from negsample.models.features import Features  # which reads torch; making examples does without

ORIGINAL = "original"
# Kinds of summaries as somebody wrote them.
FOUND = (ORIGINAL, LABELLED)
# Examples read together, and texts remembered: a document's examples stand together, so few are enough.
_CHUNK = 512
_REMEMBERED = 4096
# Examples whose lengths are worked out together.
_BLOCK = 1 << 16


def corpus_options(config: Reading) -> CorpusOptions:
    """How the corpora of ``config`` are read."""
    same = ("limit", "sample", "seed", "document_field", "summary_field", "on_bad")
    return CorpusOptions(config=config.corpus_config, **{name: getattr(config, name) for name in same})


def reading(config: Reading) -> list[tuple[int, str, CorpusOptions]]:
    """What is read: of which of ``SPLITS`` (its number; 0 where documents are split anew), which corpus, and how.

    What is held out comes first.
    """
    options, found = corpus_options(config), []
    for number, split in reversed(list(enumerate(config.splits))) if config.test_split else [(0, None)]:
        alone = split is not None and number > 0 and ("/" in split or has_known_ending(split))
        own = options if alone else dataclasses.replace(options, split=split)
        found += [(number, name, own) for name in ([str(split)] if alone else config.corpora())]
    return found


class Parting:
    """Which split each document goes to: that of ``config``'s own splits which it stands in, else as ``assign`` says.

    ``known``: keys and splits of the documents, once they are parted.
    """

    def __init__(self, config: Reading) -> None:
        self.config, self._held = config, dict[bytes, int]()
        self.known: tuple[np.ndarray, np.ndarray] | None = None

    def takes(self, number: int, skipped: Counter[str], *texts: str) -> bool:
        """Whether a document with its summary, read of split ``number``, counts; not where one of them is held out by a
        split that was read before, which ``skipped`` counts."""
        # As numpy gives keys back: without zero bytes at their end.
        keys = [bytes.fromhex(document_key(text)).rstrip(b"\0") for text in texts] if self.config.test_split else []
        if any(self._held.get(key, number) != number for key in keys):
            skipped["document or summary is in a held-out split too"] += 1
            return False
        if number:
            self._held.update(dict.fromkeys(keys, number))
        return True

    def part(self, keys: np.ndarray, groups: np.ndarray, shares: Shares | None = None) -> np.ndarray:
        """The split of each document, once all is read; arguments and result as of ``assign``."""
        if not self.config.test_split:
            part = assign(keys, groups, self.config.seed, shares)
        else:
            part = np.array([self._held.get(key, 0) for key in keys.tolist()], np.uint8)
            if lacking := set(range(len(SPLITS))) - set(part.tolist()):
                which = f"{SPLITS[min(lacking)]}_split"
                raise InputError(f"{which}: every document of it is in another split too; name another")
        self.known = keys, part
        return part


def pairs_of(config: Reading, skipped: Counter[str], parting: Parting | None = None) -> Iterator[Pair]:
    """The pairs of ``config``'s corpora, one corpus after the other; ``skipped`` counts records passed over, by reason.

    ``parting``, a new one, then knows the split of each.
    """
    parting = parting or Parting(config)
    for number, name, options in reading(config):
        pairs = load_pairs(name, options, skipped)
        yield from (pair for pair in pairs if parting.takes(number, skipped, pair.document, pair.summary))


def find_corpora(config: Reading) -> None:
    """Open each corpus of ``config``, which is read several times, up to its first pair before anything is begun.

    Raises InputError for one that is not there, can't be read, or can be read once only (standard input, a pipe).
    """
    for _, name, options in reading(config):
        if is_pipe(name):
            raise InputError(f"corpus: {display(name)} can be read once only, and is needed more often; give a file")
        # Without sampling, which would read it to its end.
        next(load_pairs(name, dataclasses.replace(options, sample=None)), None)


def amounts(config: TrainConfig) -> dict[str, Any]:
    """What ``generate`` is to make of each pair, by the settings."""
    return {name: getattr(config, name) for name in ("negatives", "seed", "vocabulary", "redraws")}


def make_examples(config: TrainConfig, recipe: Recipe | None, folder: Path) -> dict[str, Any]:
    """Write the examples of ``config``'s corpora and labels to ``folder``; return what was made of what, as plain values.

    ``train.jsonl.gz`` and so on hold summaries and damaged copies of them (none without a ``recipe``),
    ``labelled-train.jsonl.gz`` and so on labelled summaries, whose documents are parted likewise.
    """
    shutil.rmtree(folder, ignore_errors=True)
    skipped: Counter[str] = Counter()
    parting, made, labelled = Parting(config), dict[str, Any](), None
    if config.labels is not None:
        labelled = read_labels(config.labels, corpus_options(config), skipped, config.label, config.aspects)
    if recipe is not None:
        made = generate(pairs_of(config, skipped, parting), recipe, folder, **amounts(config), part=parting.part)
    if labelled is not None:
        made = _write_labelled(config, labelled, parting, folder, made)
    return {**read_of(config, skipped), **made}


def _write_labelled(
    config: TrainConfig, labelled: Labelled, parting: Parting, folder: Path, made: dict[str, Any]
) -> dict[str, Any]:
    """Write the labelled examples; ``made``, what was made of what already ({}: nothing), with them."""
    folder.mkdir(parents=True, exist_ok=True)
    index, about = labelled.index, dict(labelled.about)
    part = labelled.part(config.seed, parting.known)
    splits: dict[str, Any] = {}
    for number, name in enumerate(SPLITS):
        rows = np.flatnonzero(part[index.document] == number)
        alone = {"documents": int(np.sum(part == number)), "fingerprint": fingerprint(index, rows)}
        splits[name] = {**(made["splits"][name] if made else alone), "labelled": len(rows)}
        if len(rows):
            with open_writer(folder / f"{LABELLED}-{name}.jsonl.gz") as writer:
                for example in labelled.examples(rows):
                    writer.write(example.as_dict())
    # Documents on which the model agrees too well with whoever gave the labels.
    about["keys"] = [padded(key).hex() for key in labelled.keys[part < SPLITS.index("test")].tolist()]
    counted = {"pairs": about["summaries"], "duplicates": about["averaged"]}
    whole = made or {**counted, "documents": about["documents"], "fingerprint": about["fingerprint"]}
    recipe, corpora = str(labelled), [about["file"]]
    if made:
        weight = f"{config.label_weight:g}"
        about["told"] = [*about["told"], f"  beside damaged copies; a labelled summary counts {weight} times"]
        recipe, corpora = f"{made['recipe']}+{weight}*{labelled}", [*config.corpora(), *corpora]
    return {**whole, "recipe": recipe, "corpora": corpora, "splits": splits, "labels": about}


def read_of(config: Reading, skipped: Counter[str]) -> dict[str, Any]:
    """Return what was read of ``config``'s corpora, and passed over, as plain values."""
    read = {"corpora": config.corpora(), "limit": config.limit, "sample": config.sample, "own_splits": config.splits}
    return {**read, "skipped": dict(skipped), "skipped_text": describe_skipped(skipped)}


class Arrays:
    """Arrays of different lengths on disk, one a text: ``arrays[i]`` is array i, read when it is asked for.

    ``path``: all of them end to end, of type ``dtype``; beside it their ends (``.npy``). (One of Arrow's lists takes three
    times as long to read.) Raises InputError where ``path`` has another length.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self._file = path.open("rb", buffering=0)
        self._ends = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False).view(np.ndarray)
        if path.stat().st_size != self._ends[-1] * self.dtype.itemsize:
            raise InputError(f"{path}: has not the length that was written; delete {path.parent} and start again")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        if not 0 <= number < len(self):
            raise IndexError(f"array {number} of {len(self)}")
        begin, end = (int(place) * self.dtype.itemsize for place in self._ends[number : number + 2])
        return np.frombuffer(os.pread(self._file.fileno(), end - begin, begin), self.dtype)

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        """Return the lengths of the arrays with the ``numbers``; int64 [n]."""
        return self._ends[numbers + 1] - self._ends[numbers]


class _Writer:
    """Writes arrays for ``Arrays``; one number an array stays in memory."""

    def __init__(self, path: Path, dtype: str) -> None:
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.open("wb")
        self._ends = array("q", [0])

    def append(self, arrays: Sequence[np.ndarray]) -> None:
        for each in arrays:
            self._file.write(each.astype(self._dtype, casting="safe").tobytes())
            self._ends.append(self._ends[-1] + len(each))

    def close(self) -> None:
        self._file.close()
        np.save(self._path.with_suffix(".npy"), np.frombuffer(self._ends, np.int64), allow_pickle=False)


@dataclass(frozen=True)
class Split:
    """One split on disk. ``document_of``, ``summary_of``: int32 [n], which row of the stores each example uses.

    ``labels`` float32 [n]; ``kinds``, ``domains`` int32 [n], numbers into their names. ``aspects`` float32 [4, n]: labels given
    of aspects, NaN where there is none; None where there are none at all. ``label_weight``: of a labelled example in a loss.
    """

    documents: Arrays
    summaries: Arrays
    ids: Arrays
    document_of: np.ndarray
    summary_of: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    kind_names: list[str]
    domains: np.ndarray
    domain_names: list[str]
    width: int
    aspects: np.ndarray | None = None
    label_weight: float = 1.0

    def __len__(self) -> int:
        return len(self.labels)

    def units(self, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Units of the documents and summaries of the examples ``rows`` (default: all); int64 [n] each."""
        documents = self.documents.lengths(self.document_of[rows]) // self.width
        return documents, self.summaries.lengths(self.summary_of[rows]) // self.width

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The units of all examples, some ten thousands at a time."""
        return (self.units(slice(start, start + _BLOCK)) for start in range(0, len(self), _BLOCK))

    def costs(self, features: "Features") -> np.ndarray:
        """Units of each example's pair after cutting (``features.lengths``); int32 [n]."""
        return np.concatenate([features.lengths(*block).astype(np.int32) for block in self._blocks()])

    def cut(self, features: "Features") -> int:
        """How many examples are longer than what ``features`` keep."""
        return sum(int(features.was_cut(*block).sum()) for block in self._blocks())

    @property
    def kind_of(self) -> np.ndarray:
        """The name of each example's kind; str [n]."""
        return np.array(self.kind_names)[self.kinds]

    def of(self, *kinds: str) -> np.ndarray:
        """Whether each example is of one of ``kinds``; bool [n]."""
        return np.array([name in kinds for name in self.kind_names], bool)[self.kinds]

    @property
    def weights(self) -> np.ndarray:
        """How much each example counts in a loss; float32 [n]."""
        return np.where(self.of(LABELLED), np.float32(self.label_weight), np.float32(1))

    def read(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What ``Features.read`` made of the documents and the summaries of the examples ``rows``."""
        documents = [self.documents[i] for i in self.document_of[rows]]
        return documents, [self.summaries[i] for i in self.summary_of[rows]]

    def id(self, index: int) -> str:
        """The id of an example."""
        return bytes(self.ids[index]).decode("utf-8")


class _Texts(_Writer):
    """Gives each text a row of ``Arrays``, once for texts that come again soon."""

    def __init__(self, path: Path, features: "Features") -> None:
        super().__init__(path, features.dtype)
        self._features = features
        # By hash: four thousand long documents would be much to keep.
        self._recent: Recent[bytes, int] = Recent(_REMEMBERED)

    def place(self, texts: Sequence[str]) -> list[int]:
        keys = [digest(text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))

        def read(new: list[bytes]) -> range:
            self.append(self._features.read([by_key[key] for key in new]))
            return range(len(self._ends) - 1 - len(new), len(self._ends) - 1)

        return self._recent.values(keys, read)


def prepare_split(examples: Sequence[Path], folder: Path, features: "Features") -> None:
    """Read the example files ``examples`` into arrays in ``folder``, which is complete when ``split.json`` exists."""
    if (folder / "split.json").is_file():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names: dict[str, int] = {}
    domains: dict[str, int] = {}
    columns: list[np.ndarray] = []
    documents, summaries = _Texts(folder / "documents.bin", features), _Texts(folder / "summaries.bin", features)
    ids = _Writer(folder / "ids.bin", "uint8")
    read = itertools.chain.from_iterable(map(read_examples, examples))
    while chunk := list(itertools.islice(read, _CHUNK)):
        ids.append([np.frombuffer(example.id.encode("utf-8", "replace"), np.uint8) for example in chunk])
        places = [
            documents.place([example.document for example in chunk]),
            summaries.place([example.summary for example in chunk]),
            [names.setdefault(example.kind, len(names)) for example in chunk],
            [domains.setdefault(example.domain, len(domains)) for example in chunk],
        ]
        said = [[e.label for e in chunk], *([e.aspects.get(aspect, np.nan) for e in chunk] for aspect in ASPECTS)]
        columns.append(np.concatenate([np.array(places, np.int32), np.array(said, np.float32).view(np.int32)]))
    for written in (documents, summaries, ids):
        written.close()
    np.save(folder / "examples.npy", np.concatenate(columns, axis=1), allow_pickle=False)
    about = {"kinds": list(names), "domains": list(domains), "dtype": features.dtype, "width": features.width}
    atomic_json(folder / "split.json", about)


def open_split(folder: Path, label_weight: float = 1.0) -> Split:
    """The split that ``prepare_split`` wrote, memory-mapped. Raises InputError where it is not there (on this machine)."""
    if not appears(folder / "split.json"):
        raise InputError(
            f"{folder}: {socket.gethostname()} does not see what the main process wrote there; "
            "give --out on a file system that all machines share"
        )
    about = json.loads((folder / "split.json").read_text(encoding="utf-8"))
    columns = np.load(folder / "examples.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
    kinds = {"documents": about["dtype"], "summaries": about["dtype"], "ids": "uint8"}
    read, said, ids = (Arrays(folder / f"{name}.bin", dtype) for name, dtype in kinds.items())
    text, own, kind, domain = columns[:4]
    labels, aspects = columns[4].view(np.float32), columns[5:].view(np.float32)
    named = (kind, about["kinds"], domain, about["domains"])
    return Split(read, said, ids, text, own, labels, *named, about["width"], aspects, label_weight)

"""From example files to arrays on disk, each text read (tokenised, encoded) once, before the first step."""

import json
import shutil
import socket
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.io.files import appears, atomic_json
from negsample.io.read import read_examples
from negsample.models.features import Features
from negsample.records import Example
from negsample.seeds import digest
from negsample.train.data.array_store import ArrayStore, ArrayWriter, new_store

SPLITS = ("train", "validation", "test")
ORIGINAL = "original"
# Examples read together, and texts remembered: a document's examples stand together, so few are enough.
_CHUNK = 512
_REMEMBERED = 4096
# Examples whose lengths are worked out together.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Split:
    """One split on disk. ``document_of``, ``summary_of``: int32 [n], which row of the stores each example uses.

    ``labels`` float32 [n]; ``kinds`` int32 [n], numbers into ``kind_names``.
    """

    documents: ArrayStore
    summaries: ArrayStore
    ids: ArrayStore
    document_of: np.ndarray
    summary_of: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    kind_names: list[str]
    width: int

    def __len__(self) -> int:
        return len(self.labels)

    def units(self, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Units of the documents and summaries of the examples ``rows`` (default: all); int64 [n] each."""
        documents = self.documents.lengths(self.document_of[rows]) // self.width
        return documents, self.summaries.lengths(self.summary_of[rows]) // self.width

    def blocks(self) -> Iterator[slice]:
        """All examples, some ten thousands at a time."""
        return (slice(start, min(start + _BLOCK, len(self))) for start in range(0, len(self), _BLOCK))

    def costs(self, features: Features) -> np.ndarray:
        """Units of each example's pair after cutting (``features.lengths``); int32 [n]."""
        found = np.empty(len(self), np.int32)
        for block in self.blocks():
            found[block] = features.lengths(*self.units(block))
        return found

    def cut(self, features: Features) -> int:
        """How many examples are longer than what ``features`` keep."""
        return sum(int(features.was_cut(*self.units(block)).sum()) for block in self.blocks())

    @property
    def kind_of(self) -> np.ndarray:
        """The name of each example's kind; str [n]."""
        return np.array(self.kind_names)[self.kinds]

    @property
    def is_original(self) -> np.ndarray:
        """Whether each example is an original; bool [n]."""
        return np.array([name == ORIGINAL for name in self.kind_names], bool)[self.kinds]

    def read(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What ``Features.read`` made of the documents and the summaries of the examples ``rows``."""
        documents = [self.documents[i] for i in self.document_of[rows]]
        return documents, [self.summaries[i] for i in self.summary_of[rows]]

    def id(self, index: int) -> str:
        """The id of an example."""
        return bytes(self.ids[index]).decode("utf-8")


def _chunks(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    while chunk := list(islice(examples, size)):
        yield chunk


class _Texts:
    """Gives each text a row of a store, once for texts that come again soon."""

    def __init__(self, writer: ArrayWriter, features: Features) -> None:
        self._writer = writer
        self._features = features
        # By hash: four thousand long documents would be much to keep.
        self._recent: OrderedDict[bytes, int] = OrderedDict()
        self._count = 0

    def place(self, texts: Sequence[str]) -> list[int]:
        keys = [digest(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._recent}
        self._writer.append(self._features.read(list(new.values())))
        for key in new:
            self._recent[key] = self._count
            self._count += 1
        places = [self._recent[key] for key in keys]
        while len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        return places


def prepare_split(examples: Path, folder: Path, features: Features) -> None:
    """Read the example file ``examples`` into the stores of ``folder``, which is complete when ``split.json`` exists."""
    if (folder / "split.json").is_file():
        return
    shutil.rmtree(folder, ignore_errors=True)
    names: dict[str, int] = {}
    columns: list[np.ndarray] = []
    with (
        new_store(folder / "documents", features.dtype) as document_writer,
        new_store(folder / "summaries", features.dtype) as summary_writer,
        new_store(folder / "ids", "uint8") as ids,
    ):
        documents, summaries = _Texts(document_writer, features), _Texts(summary_writer, features)
        for chunk in _chunks(read_examples(examples), _CHUNK):
            ids.append([np.frombuffer(example.id.encode("utf-8", "replace"), np.uint8) for example in chunk])
            columns.append(
                np.array(
                    [
                        documents.place([example.document for example in chunk]),
                        summaries.place([example.summary for example in chunk]),
                        [names.setdefault(example.kind, len(names)) for example in chunk],
                        np.array([example.label for example in chunk], np.float32).view(np.int32),
                    ],
                    np.int32,
                )
            )
    np.save(folder / "examples.npy", np.concatenate(columns, axis=1), allow_pickle=False)
    atomic_json(folder / "split.json", {"kinds": list(names), "width": features.width})


def open_split(folder: Path) -> Split:
    """The split that ``prepare_split`` wrote, memory-mapped. Raises InputError where it is not there (on this machine)."""
    if not appears(folder / "split.json"):
        raise InputError(
            f"{folder}: {socket.gethostname()} does not see what the main process wrote there; "
            "give --out on a file system that all machines share"
        )
    about = json.loads((folder / "split.json").read_text(encoding="utf-8"))
    columns = np.load(folder / "examples.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
    return Split(
        documents=ArrayStore(folder / "documents"),
        summaries=ArrayStore(folder / "summaries"),
        ids=ArrayStore(folder / "ids"),
        document_of=columns[0],
        summary_of=columns[1],
        labels=columns[3].view(np.float32),
        kinds=columns[2],
        kind_names=about["kinds"],
        width=about["width"],
    )

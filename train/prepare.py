"""From example files to arrays on disk, each text read (tokenised, encoded) once, before the first step."""

import json
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from negsample.examples import read_examples
from negsample.fileio import atomic_json
from negsample.models.features import Features
from negsample.models.ragged import Ragged, RaggedWriter
from negsample.records import Example

SPLITS = ("train", "validation", "test")
# Examples read together, and texts remembered: a document's examples stand together, so few are enough.
_CHUNK = 512
_REMEMBERED = 4096


@dataclass(frozen=True)
class Split:
    """One split on disk. ``document_of``, ``summary_of``: int32 [n], which row of the stores each example uses.

    ``labels`` float32 [n]; ``kinds`` int32 [n], numbers into ``kind_names``.
    """

    documents: Ragged
    summaries: Ragged
    ids: Ragged
    document_of: np.ndarray
    summary_of: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    kind_names: list[str]
    width: int

    def __len__(self) -> int:
        return len(self.labels)

    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Units of each example's document and summary; int64 [n] each."""
        documents = self.documents.lengths() // self.width
        summaries = self.summaries.lengths() // self.width
        return documents[self.document_of], summaries[self.summary_of]

    def id(self, index: int) -> str:
        """The id of an example."""
        return bytes(self.ids[index]).decode("utf-8")


def _chunks(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    while chunk := list(islice(examples, size)):
        yield chunk


class _Texts:
    """A ragged store that gives each text a row, once for texts that come again soon."""

    def __init__(self, folder: Path, features: Features) -> None:
        self.writer = RaggedWriter(folder, features.dtype)
        self._features = features
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._count = 0

    def place(self, texts: Sequence[str]) -> list[int]:
        new = [text for text in dict.fromkeys(texts) if text not in self._recent]
        self.writer.append(self._features.read(new))
        for text in new:
            self._recent[text] = self._count
            self._count += 1
        places = [self._recent[text] for text in texts]
        while len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        return places


def prepare_split(examples: Path, folder: Path, features: Features) -> None:
    """Read the example file ``examples`` into the stores of ``folder``, which is complete when ``split.json`` exists."""
    if (folder / "split.json").is_file():
        return
    shutil.rmtree(folder, ignore_errors=True)
    documents, summaries = _Texts(folder / "documents", features), _Texts(folder / "summaries", features)
    ids = RaggedWriter(folder / "ids", "uint8")
    names: dict[str, int] = {}
    columns: list[np.ndarray] = []
    with documents.writer, summaries.writer, ids:
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
    """The split that ``prepare_split`` wrote, its texts memory-mapped."""
    about = json.loads((folder / "split.json").read_text(encoding="utf-8"))
    columns = np.load(folder / "examples.npy", allow_pickle=False)
    return Split(
        documents=Ragged.open(folder / "documents"),
        summaries=Ragged.open(folder / "summaries"),
        ids=Ragged.open(folder / "ids"),
        document_of=columns[0],
        summary_of=columns[1],
        labels=columns[3].view(np.float32),
        kinds=columns[2],
        kind_names=about["kinds"],
        width=about["width"],
    )

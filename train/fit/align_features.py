"""What head ``align`` reads of a whole split: computed once and kept on disk part by part."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from negsample.errors import InputError
from negsample.io.files import appears, replacing
from negsample.models.align.aspects import feature_set
from negsample.models.features.align import AlignFeatures, Compared, stack, text_of
from negsample.terminal import Bar
from negsample.train.data import Split

if TYPE_CHECKING:
    from accelerate import Accelerator

_PART = 512
# Bytes of text that are compared together: about as many words as the features keep of documents.
_BYTES = 2 << 20


@dataclass(frozen=True)
class ComputedFeatures:
    """What the head reads of each example of a split.

    ``features`` float32 [n, F], ``present`` bool [n, 4]; the sentences of all examples end to end: ``salience``
    [sum, 6], ``matches`` [sum, 3], those of example i from ``offsets[i]`` to ``offsets[i + 1]``.
    """

    features: np.ndarray
    present: np.ndarray
    salience: np.ndarray
    matches: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.features)

    def tensors(self, rows: np.ndarray) -> dict[str, Tensor]:
        """The head's arguments for the examples ``rows``."""
        return stack([self._item(int(row)) for row in rows])

    def _item(self, row: int) -> Compared:
        span = slice(self.offsets[row], self.offsets[row + 1])
        return Compared(self.features[row], self.salience[span], self.matches[span], self.present[row])


def compute_features(
    accelerator: "Accelerator", features: AlignFeatures, split: Split, folder: Path, name: str
) -> ComputedFeatures:
    """Compute what the head reads of ``split``; parts that lie in ``folder`` already are read, the others written whole.

    The processes of ``accelerator`` share the parts out, and each reads what all have written. Raises InputError where a
    process doesn't see ``folder`` as the others do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    width = len(feature_set(features.sources))
    size = accelerator.num_processes
    with Bar(f"features of {name}", len(split)) as bar:
        for rows, path in _parts(split, folder, name)[accelerator.process_index :: size]:
            part = _stored(path) if path.is_file() else None
            # The head may have learnt from the beginning of a split alone, whose last part is a shorter one.
            if part is None or len(part["sizes"]) != len(rows) or part["features"].shape[1] != width:
                part = _compute(features, split, rows)
                with replacing(path) as handle:
                    np.savez(handle, **part)  # type: ignore[arg-type]
            bar.advance(len(rows) * size)
    accelerator.wait_for_everyone()
    found = stored_features(split, folder, name)
    # Nobody goes on to write a part anew, for another length of the split, while it is still read.
    accelerator.wait_for_everyone()
    return found


def stored_features(split: Split, folder: Path, name: str) -> ComputedFeatures:
    """What ``compute_features`` has left in ``folder``. Raises InputError where it can't be seen."""
    paths = [path for _, path in _parts(split, folder, name)]
    for path in paths:
        if not appears(path):
            raise InputError(f"{path}: another process has written this, and it can't be seen here; share the folder")
    parts = [_stored(path) for path in paths]
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    offsets = np.concatenate([[0], np.cumsum(joined.pop("sizes"))])
    return ComputedFeatures(**joined, offsets=offsets)


def _parts(split: Split, folder: Path, name: str) -> list[tuple[np.ndarray, Path]]:
    """The examples of each part of a split, and its file."""
    starts = range(0, len(split), _PART)
    return [(np.arange(s, min(s + _PART, len(split))), folder / f"{name}-{s // _PART}.npz") for s in starts]


def _stored(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _compute(features: AlignFeatures, split: Split, rows: np.ndarray) -> dict[str, np.ndarray]:
    compared: list[Compared] = []
    for group in _groups(split, rows):
        documents, summaries = split.read(group)
        compared += features.compare(list(map(text_of, documents)), list(map(text_of, summaries)))
    return {
        "features": np.stack([item.features for item in compared]),
        "present": np.stack([item.present for item in compared]),
        "salience": np.concatenate([item.salience for item in compared]),
        "matches": np.concatenate([item.matches for item in compared]),
        "sizes": np.array([len(item.salience) for item in compared], np.int64),
    }


def _groups(split: Split, rows: np.ndarray) -> list[np.ndarray]:
    """``rows`` in groups of about ``_BYTES`` bytes of text, a document that several in a row share counted once."""
    documents, summaries = split.units(rows)
    new = np.diff(split.document_of[rows], prepend=-1) != 0
    return np.split(rows, np.flatnonzero(np.diff(np.cumsum(summaries + documents * new) // _BYTES)) + 1)

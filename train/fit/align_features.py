"""What head ``align`` reads of a whole split: computed once and kept on disk part by part."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.io.files import appears, replacing
from negsample.models.align.aspects import feature_set
from negsample.models.features.align import AlignFeatures, Compared, texts_of
from negsample.terminal import Bar
from negsample.train.data import Split

if TYPE_CHECKING:
    from accelerate import Accelerator

_PART = 512
# Bytes of text that are compared together: about as many words as the features keep of documents.
_BYTES = 2 << 20


def compute_features(
    accelerator: "Accelerator", features: AlignFeatures, split: Split, folder: Path, name: str
) -> list[Compared]:
    """What the head reads of each example of ``split``; parts that lie in ``folder`` already are read, others written whole.

    The processes of ``accelerator`` share the parts out, and each reads what all have written. Raises InputError where a
    process doesn't see ``folder`` as the others do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    width = len(feature_set(features.sources))
    size = accelerator.num_processes
    with Bar(f"features of {name}", len(split)) as bar:
        for rows, path in _parts(split, folder, name)[accelerator.process_index :: size]:
            part = _stored(path) if path.is_file() else []
            # The head may have learnt from the beginning of a split alone, whose last part is a shorter one.
            if len(part) != len(rows) or len(part[0].features) != width:
                read = (map(texts_of, split.read(group)) for group in _groups(split, rows))
                _write(path, [one for documents, summaries in read for one in features.compare(documents, summaries)])
            bar.advance(len(rows) * size)
    accelerator.wait_for_everyone()
    found = stored_features(split, folder, name)
    # Nobody goes on to write a part anew, for another length of the split, while it is still read.
    accelerator.wait_for_everyone()
    return found


def stored_features(split: Split, folder: Path, name: str) -> list[Compared]:
    """What ``compute_features`` has left in ``folder``. Raises InputError where it can't be seen."""
    paths = [path for _, path in _parts(split, folder, name)]
    for path in paths:
        if not appears(path):
            raise InputError(f"{path}: another process has written this, and it can't be seen here; share the folder")
    return [one for path in paths for one in _stored(path)]


def _parts(split: Split, folder: Path, name: str) -> list[tuple[np.ndarray, Path]]:
    """The examples of each part of a split, and its file."""
    starts = range(0, len(split), _PART)
    return [(np.arange(s, min(s + _PART, len(split))), folder / f"{name}-{s // _PART}.npz") for s in starts]


def _stored(path: Path) -> list[Compared]:
    with np.load(path, allow_pickle=False) as found:
        # The sentences of all examples stand end to end.
        salience, matches = (np.split(found[name], np.cumsum(found["sizes"])[:-1]) for name in ("salience", "matches"))
        return list(map(Compared, found["features"], salience, matches, found["present"]))


def _write(path: Path, compared: list[Compared]) -> None:
    arrays = {name: np.stack([getattr(item, name) for item in compared]) for name in ("features", "present")}
    arrays |= {name: np.concatenate([getattr(item, name) for item in compared]) for name in ("salience", "matches")}
    with replacing(path) as handle:
        np.savez(handle, **arrays, sizes=np.array([len(item.salience) for item in compared]))  # type: ignore[arg-type]


def _groups(split: Split, rows: np.ndarray) -> list[np.ndarray]:
    """``rows`` in groups of about ``_BYTES`` bytes of text, a document that several in a row share counted once."""
    documents, summaries = split.units(rows)
    new = np.diff(split.document_of[rows], prepend=-1) != 0
    return np.split(rows, np.flatnonzero(np.diff(np.cumsum(summaries + documents * new) // _BYTES)) + 1)

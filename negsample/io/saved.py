"""Folders that ``datasets`` has written with ``save_to_disk``: a Dataset, or a DatasetDict with a folder a split."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.records import Row


def is_saved(path: str | Path) -> bool:
    """Whether ``path`` is such a folder."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("state.json", "dataset_dict.json"))


def load_saved(path: str | Path) -> dict[str, Any]:
    """Load the splits of the folder, memory-mapped: name → rows. Raises InputError where it is damaged."""
    import datasets

    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: can't be read as a folder of save_to_disk ({told}); save it again") from error
    splits = found if isinstance(found, dict) else {str(found.split or "train"): found}
    return {str(name): split.with_format(None) for name, split in splits.items()}


def saved_rows(path: str | Path) -> Iterator[Row]:
    """The records of the folder's only split. Raises InputError where it holds several."""
    splits = load_saved(path)
    if len(splits) != 1:
        names = ", ".join(os.path.join(path, name) for name in splits)
        raise InputError(f"{path}: holds {len(splits)} splits; name one of {names}")
    for split in splits.values():
        for number, record in enumerate(split, start=1):
            yield Row(f"{path}, record {number}", record)

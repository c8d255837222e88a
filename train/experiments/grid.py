"""What a grid is made of, from a YAML file and words: a training configuration, encoders, heads, the table's name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.train.config import TrainConfig, make_config, read_values, word_values
from negsample.train.experiments.tables import ROW_HEADS, TABLES, split_specs

_LISTS = ("encoders", "heads")


@dataclass(frozen=True)
class Grid:
    """Arguments of ``run_table``: ``encoders`` are specs (none: all that need no download), ``heads`` names."""

    config: TrainConfig
    encoders: tuple[str, ...] = ()
    heads: tuple[str, ...] = ROW_HEADS


def read_grid(table: str, path: str | Path | None, words: Sequence[str] = ()) -> Grid:
    """The grid of ``table`` as the YAML file ``path`` (or nothing) and then ``key=value`` words say.

    The file has the fields of ``TrainConfig`` and may have ``encoders`` and ``heads`` (lists) and ``table``, the name of
    the table that it is for; without a file, ``redraws`` is the table's own.
    Raises InputError for what ``read_config`` refuses, and for another table's file.
    """
    values = {"redraws": TABLES[table].redraws} if path is None else read_values(path)
    where = "key=value" if path is None else str(path)
    meant = values.pop("table", table)
    if meant != table:
        raise InputError(f"{where}: is for table {meant!r}, not {table!r}; run negsample tables {meant}")
    lists = {key: _list(values.pop(key), key, where) for key in _LISTS if key in values}
    make_config(values, where)
    values.update(word_values(words))
    config = make_config(values, f"{where} with {' '.join(words)}" if words and path else where)
    return Grid(config, tuple(split_specs(lists.get("encoders", []))), tuple(lists.get("heads", ROW_HEADS)))


def _list(value: Any, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{where}: {key} must be a list of names, not {value!r}")
    return value

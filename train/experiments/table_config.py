"""What a table is made of: a YAML file, ``key=value`` words and options together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.build import takes
from negsample.train.config import TrainConfig, make_config, read_values, word_values
from negsample.train.experiments.tables import ROW_HEADS, split_specs
from negsample.train.experiments.tables_report import TABLES

# Words that have an option of their own, or that the table decides.
_REFUSED = {key: f"give it as --{key}, or leave it out" for key in ("corpus", "limit", "seed", "encoders", "heads")} | {
    "head": "leave it out; heads are given by --heads",
    "recipe": "leave it out; the table has its own",
}


@dataclass(frozen=True)
class TableConfig:
    """Arguments of ``run_table``: ``encoders`` are specs (none: all that need no download), ``heads`` names."""

    settings: TrainConfig
    encoders: tuple[str, ...] = ()
    heads: tuple[str, ...] = ROW_HEADS


def read_table(
    table: str,
    path: str | Path | None,
    words: Sequence[str] = (),
    *,
    corpus: Sequence[str] = (),
    encoders: Sequence[str] = (),
    heads: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> TableConfig:
    """Return what the YAML file ``path`` (or nothing), the ``key=value`` words and the options say, the later winning.

    The file has the fields of ``TrainConfig`` and may have ``encoders`` and ``heads`` (lists) and ``table``, the name of
    the table that it is for; without a file, ``redraws`` is the table's own. ``encoders`` and ``heads`` are lists with
    commas. Raises InputError for what ``read_config`` refuses, another table's file, and a word that is no setting here.
    """
    named = {word.partition("=")[0].strip(): word for word in words}
    for key, word in named.items():
        if key in _REFUSED:
            raise InputError(f"{word}: {_REFUSED[key]}")
    values: dict[str, Any] = {"redraws": TABLES[table].redraws} if path is None else read_values(path)
    where = "key=value" if path is None else str(path)
    meant = values.pop("table", table)
    if meant != table:
        raise InputError(f"{where}: is for table {meant!r}, not {table!r}; run negsample tables {meant}")
    own_encoders, own_heads = (_names(values.pop(key, []), key, where) for key in ("encoders", "heads"))
    make_config(values, where)
    chosen = (
        [name.strip() for name in heads.split(",") if name.strip()] if heads is not None else own_heads or ROW_HEADS
    )
    kinds = {takes(head) for head in chosen}
    # A file may hold it for a head that is not asked for this time.
    if "encoder" in named and kinds <= {"rows"}:
        raise InputError(f"{named['encoder']}: encoder= is for cls; name the rows' encoders with --encoders")
    if path is None and "align" in kinds:
        # The table's own default is for heads that take turns with the sets of negatives; align reads all at once.
        values["redraws"] = 1
    values |= {key: value for key, value in (("seed", seed), ("limit", limit)) if value is not None}
    values |= word_values(words)
    if corpus:
        values["corpus"] = list(corpus) if len(corpus) > 1 else corpus[0]
    settings = make_config(values, f"{where} with {' '.join(words)}" if words and path else where)
    return TableConfig(settings, tuple(split_specs(encoders or own_encoders)), tuple(chosen))


def _names(value: Any, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{where}: {key} must be a list of names, not {value!r}")
    return value

"""A weighted sum of metrics as a metric: its JSON file, published weights, how it scores (Scialom et al. 2019, §2.4).

Fitting the weights to people's scores is ``negsample.eval.fit.preset``.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from negsample import __version__
from negsample.errors import InputError
from negsample.eval.metrics.base import choice
from negsample.io.files import atomic_json, failure
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.seeds import digest
from negsample.spec import parse, quote, write

_FORMAT = "negsample-learned-metric"


@dataclass(frozen=True)
class HeldOut:
    """Spearman on the held-out halves of random splits: ``mean`` and ``sd`` (n − 1) over the ``splits`` where it is
    defined (``undefined`` others were constant), None where there is none (or, for sd, one)."""

    mean: float | None
    sd: float | None
    splits: int
    undefined: int


@dataclass(frozen=True)
class Learned:
    """score = intercept + Σ weight·metric.

    ``columns``: metric specifications; ``weights``: one for each. ``human``: the human scores whose geometric mean was
    fitted; ``ridge``: λ; ``rows``: how many rows were fitted, ``left_out``: how many had a value missing. ``held_out``
    None where it was not measured. ``source``: where the weights are from.
    """

    columns: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float = 0.0
    human: tuple[str, ...] = ()
    ridge: float = 1.0
    rows: int = 0
    left_out: int = 0
    held_out: HeldOut | None = None
    source: str = ""
    version: str = field(default=__version__)

    def predict(self, values: np.ndarray) -> np.ndarray:
        """Compute the score for metric values float64 [n, columns]; NaN where one is missing."""
        return np.asarray(values, dtype=np.float64) @ np.array(self.weights) + self.intercept

    def save(self, path: str | Path) -> None:
        """Write it to ``path`` as JSON, whole or not at all. Raises InputError where that can't be."""
        atomic_json(path, {"format": _FORMAT, **asdict(self)})

    @staticmethod
    def load(path: str | Path) -> "Learned":
        """Read what ``save`` wrote. Raises InputError, with the place, for anything else."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise failure(str(path), error) from error
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); give a file that fit wrote") from error
        return _from_json(data, str(path))


def _from_json(data: Any, path: str) -> Learned:
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InputError(f'{path}: no learned metric; give a JSON file with "format": "{_FORMAT}"')
    unknown = sorted(data.keys() - {entry.name for entry in fields(Learned)} - {"format"})
    if unknown:
        raise InputError(f"{path}: unknown field {unknown[0]!r}; was it written by a later version?")
    columns, weights, human = data.get("columns"), data.get("weights"), data.get("human", [])
    for name, entries in (("columns", columns), ("human", human)):
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise InputError(f"{path}: {name} must be a list of names")
    if not isinstance(weights, list) or not all(map(_is_number, weights)):
        raise InputError(f"{path}: weights must be a list of finite numbers")
    if not columns or len(columns) != len(weights) or len(set(columns)) < len(columns):
        raise InputError(f"{path}: give one weight for each column, each column once, and at least one")
    for name, default in (("intercept", 0.0), ("ridge", 1.0), ("rows", 0), ("left_out", 0)):
        if not _is_number(data.get(name, default)):
            raise InputError(f"{path}: {name} must be a finite number")
    held_out = data.get("held_out")
    names = [entry.name for entry in fields(HeldOut)]
    if held_out is not None and (not isinstance(held_out, dict) or sorted(held_out) != sorted(names)):
        raise InputError(f"{path}: held_out must have {', '.join(names)}")
    known = {key: value for key, value in data.items() if key != "format"}
    known |= {"columns": tuple(columns), "weights": tuple(map(float, weights)), "human": tuple(human)}
    return Learned(**known | {"held_out": HeldOut(**held_out) if held_out else None})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def p2(model: str) -> Learned:
    """Return 0.8576·ROUGE-L + 2.274·QA_conf + 0.6413·QA_fscore, the QA scores from the document.

    Scialom et al. 2019, equation 1. ``model``: the question-answering model. ROUGE-L is F1 against the references
    (reading; so this preset needs them).
    """
    if not model:
        raise InputError(
            "metric 'learned(preset=p2)' needs an extractive question-answering model: "
            "give learned(preset=p2, model=FOLDER or a hub id) (none is packaged)"
        )
    reading = f"model={quote(model)},against=document"
    return Learned(
        columns=("rougeL(against=references)", f"summaqa-conf({reading})", f"summaqa-f1({reading})"),
        weights=(0.8576, 2.274, 0.6413),
        human=("readability", "relevance"),
        source="Scialom et al. 2019, equation 1",
    )


def learned(file: str = "", *, preset: str = "", model: str = "") -> Scorer:
    """``learned:FILE`` or ``learned(preset=p2, model=QA)``: intercept + Σ weight·metric. Higher is better.

    FILE is what ``Learned.save`` wrote; its columns are any metrics of the project, which are computed here. The preset
    has the published weights, range [0, 3.7729]. Needs what its columns need. Missing where a column is, with the
    column's reason.
    """
    if bool(file) == bool(preset):
        raise InputError("metric 'learned': give either learned:FILE or learned(preset=p2, model=…)")
    if preset:
        choice("preset", preset, ("p2",))
        name = write("learned", {"preset": preset, "model": model}, {"preset": "", "model": ""})
        return learned_metric(p2(model), name)
    if model:
        raise InputError("metric 'learned': model= belongs to preset=p2; a file's columns name their own models")
    return learned_metric(Learned.load(file), f"learned({quote(file)})")


def learned_metric(fitted: Learned, name: str = "learned") -> Scorer:
    """The metric that computes ``fitted.columns`` and adds them up. Raises InputError where a column can't be made."""
    from negsample.scoring.metrics import make_metric

    nested = [column for column in fitted.columns if parse(column).name == "learned"]
    if nested:
        raise InputError(f"{name}: the column {nested[0]!r} is a learned metric itself; name plain metrics")
    inputs = [make_metric(column) for column in fitted.columns]
    formula = "".join(f"{weight:+.6g}*{metric.name}" for weight, metric in zip(fitted.weights, inputs, strict=True))
    # The inputs' own signatures are long; their digest says whether any of them changed.
    inner = digest(fitted.intercept, fitted.weights, *(metric.signature for metric in inputs), size=6).hex()
    signature = f"metric:learned|{fitted.intercept:+.6g}{formula}|inputs:{inner}|version:{__version__}"
    needs = frozenset[str]().union(*(metric.needs for metric in inputs))

    def score(items: Sequence[Item]) -> Columns:
        columns = [metric.score(items) for metric in inputs]
        values = fitted.predict(np.stack([column.scores for column in columns], axis=1))

        def one(row: int) -> float | str:
            for metric, column in zip(inputs, columns, strict=True):
                if column.reasons[row] is not None:
                    return f"{parse(metric.name).name}: {column.reasons[row]}"
            return float(values[row])

        return collect(map(one, range(len(items))))

    return Scorer(name, signature, True, needs, score)

"""A fitted estimator that computes further metrics when it scores; and the one place that loads any model folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.learn.inputs import further_metrics
from negsample.models.estimator import Estimator
from negsample.models.fitted import FittedEstimator
from negsample.models.folder import read_description
from negsample.models.hub import model_path
from negsample.scoring.scorer import Columns, Item


class MeasuringEstimator(FittedEstimator):
    """A `FittedEstimator` that weighs metrics too, of the document or, where it was fitted so, of references."""

    computes_metrics = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._metrics = further_metrics([metric.spec for metric in self.fitted.metrics], self.fitted.references)
        for metric, then in zip(self._metrics, self.fitted.metrics, strict=True):
            if _plain(metric.signature) != _plain(then.signature):
                raise InputError(f"the metric {then.name} is not the one that was fitted ({then.signature}); fit again")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As of `Estimator`: where it lies stands for it."""
        return (load_model, (self._source, str(self.device))) if self._source else super().__reduce_ex__(protocol)

    def further(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> tuple[np.ndarray, list[str | None]]:
        """Values of the metrics as the fit weighs them, float64 [n, M], NaN where undefined, and why."""
        if self.fitted.references and references is None:
            raise InputError("this model was fitted with references; score records that have them (negsample score)")
        seen = references if self.fitted.references and references is not None else [()] * len(documents)
        items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, seen, strict=True)]
        columns: list[np.ndarray] = []
        reasons: list[str | None] = [None] * len(items)
        for metric, then in zip(self._metrics, self.fitted.metrics, strict=True):
            found = metric.score(items)
            columns.append((found.scores * then.direction - then.centre) / then.spread)
            reasons = [
                why or (f"{then.name}: {reason}" if reason else None)
                for why, reason in zip(reasons, found.reasons, strict=True)
            ]
        return np.stack(columns, axis=1), reasons


class ReferenceEstimator(MeasuringEstimator):
    """A `MeasuringEstimator` that reads references."""

    needs = frozenset({"document", "references"})

    def _item_fault(self, item: Item) -> str | None:
        return super()._item_fault(item) or (None if item.references else "there is no reference")

    def _score_items(self, items: Sequence[Item], batch_size: int) -> Columns:
        texts = [i.document for i in items], [i.summary for i in items], [i.references for i in items]
        return self._scored(*texts, batch_size)


def load_model(model: str | Path | None = None, device: str | None = None, precision: str = "float32") -> Estimator:
    """The estimator that `Estimator.load` loads, of whatever kind. Raises InputError as that does."""
    if model is not None and (str(model) != "ready" or Path(model).exists()):
        fitted = read_description(model_path(model)).get("fitted") or {}
        if isinstance(fitted, dict) and fitted.get("metrics"):
            kind = ReferenceEstimator if fitted.get("references") else MeasuringEstimator
            return kind.load(model, device, precision)
    return Estimator.load(model, device, precision)


def _plain(signature: str) -> list[str]:
    """A metric's signature without the version of the program."""
    return [part for part in signature.split("|") if not part.startswith("version:")]

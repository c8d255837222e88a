"""A fitted estimator that computes further metrics when it scores; and the one place that loads any model folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.fit.inputs import further_metrics
from negsample.eval.metrics import Item
from negsample.models.estimator import Estimator
from negsample.models.fitted import FittedEstimator
from negsample.models.folder import read_description
from negsample.scoring import Scored


class MeasuringEstimator(FittedEstimator):
    """A `FittedEstimator` that weighs metrics too, of the document or, where it was fitted so, of references."""

    computes_metrics = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._metrics = further_metrics([metric.spec for metric in self.fitted.metrics], self.fitted.references)
        for metric, then in zip(self._metrics, self.fitted.metrics, strict=True):
            if _plain(metric.signature) != _plain(then.signature):
                raise InputError(f"the metric {then.name} is not the one that was fitted ({then.signature}); fit again")

    def further(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> tuple[np.ndarray, list[str | None]]:
        """Values of the metrics as the fit weighs them, float64 [n, M], NaN where undefined, and why."""
        if self.fitted.references and references is None:
            raise InputError(
                "this model was fitted with references; score records that have them "
                "(negsample score, or score_items in Python)"
            )
        seen = references if self.fitted.references and references is not None else [()] * len(documents)
        items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, seen, strict=True)]
        columns, reasons = [], [None] * len(items)
        for metric, then in zip(self._metrics, self.fitted.metrics, strict=True):
            found = metric.score(items)
            columns.append((found.values * then.direction - then.centre) / then.spread)
            reasons = [
                why or (f"{then.name}: {reason}" if reason else None)
                for why, reason in zip(reasons, found.reasons, strict=True)
            ]
        return np.stack(columns, axis=1), reasons


class ReferenceEstimator(MeasuringEstimator):
    """A `MeasuringEstimator` that reads references (a `negsample.scoring.ReferenceScorer`)."""

    needs = frozenset({"document", "references"})

    def score_items(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Scored:
        """As ``score_pairs``, beside references."""
        return self._scored(documents, summaries, references, 32)


def load_model(folder: str | Path, device: str | None = None) -> Estimator:
    """The estimator in ``folder``, of whatever kind. Raises InputError as `Estimator.load` does."""
    fitted = read_description(Path(folder).expanduser()).get("fitted") or {}
    if isinstance(fitted, dict) and fitted.get("metrics"):
        kind = ReferenceEstimator if fitted.get("references") else MeasuringEstimator
        return kind.load(folder, device)
    return Estimator.load(folder, device)


def _plain(signature: str) -> list[str]:
    """A metric's signature without the version of the program."""
    return [part for part in signature.split("|") if not part.startswith("version:")]

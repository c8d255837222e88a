"""An estimator whose score, and further targets, were fitted to people's scores (``negsample fit``).

Its folder is that of the estimator it started from, whole, with the entry ``fitted`` in ``config.json``: weights of what
that estimator says of a pair, which is computed as before.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from negsample.errors import InputError
from negsample.models.align.explain import explain
from negsample.models.build import Parts
from negsample.models.estimator import Estimator
from negsample.models.features.align import AlignFeatures
from negsample.models.fitted_values import Fitted
from negsample.models.folder import save_folder
from negsample.scoring.scorer import Columns
from negsample.seeds import digest


class FittedEstimator(Estimator):
    """Scores as a fit to people's scores has it: ``score`` in [0, 1], the aspects as they were, and the targets.

    A target stands among the aspects, on people's own scale, with ``Columns.intervals``. Where an input is missing the
    overall score is that of the estimator without the fit, and the targets are missing, with the reason.
    """

    computes_metrics = False

    def __init__(self, parts: Parts, description: dict[str, Any], *arguments: Any, **options: Any) -> None:
        super().__init__(parts, description, *arguments, **options)
        self.fitted = Fitted.from_plain(description["fitted"])
        if self.fitted.metrics and not self.computes_metrics:
            raise InputError(
                f"this model was fitted with further metrics ({', '.join(m.name for m in self.fitted.metrics)}); "
                "load it by negsample.models.load"
            )
        self._inputs = (*self.evidence_directions, *(metric.name for metric in self.fitted.metrics))
        unknown = sorted({name for sums in self._sums() for name in sums} - set(self._inputs))
        if unknown:
            raise InputError(f"config.json: a fit weighs {unknown[0]!r}, which this head does not have; fit it again")

    def _sums(self) -> list[Mapping[str, float]]:
        return [self.fitted.score, *(target.weights for target in self.fitted.targets.values())]

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with anything that changes a score."""
        return digest(super().fingerprint, sorted(self.fitted.as_plain().items()), size=6).hex()

    @property
    def signature(self) -> str:
        """As `Estimator.signature`, with the human scores that it was fitted to."""
        people = ",".join(target.human for target in self.fitted.targets.values())
        return f"{super().signature}|fitted:{people}"

    @property
    def fitted_on(self) -> frozenset[str]:  # type: ignore[override]
        """Keys of the documents whose judgments it was fitted to."""
        return frozenset(self.fitted.documents)

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects of the head, then the targets."""
        return (*self._own_aspects, *self.fitted.targets)

    def further(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> tuple[np.ndarray, list[str | None]]:
        """Values of ``fitted.metrics``, float64 [n, M], NaN where undefined, and why: here there are none."""
        return np.empty((len(documents), 0)), [None] * len(documents)

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32) -> Columns:
        """As `Estimator.score_pairs`, the targets among the aspects, with their intervals."""
        return self._scored(documents, summaries, None, batch_size)

    def _scored(
        self,
        documents: Sequence[str],
        summaries: Sequence[str],
        references: Sequence[Sequence[str]] | None,
        batch_size: int,
    ) -> Columns:
        values, cut, reasons = self._values(documents, summaries, references, batch_size)
        own = expit(values[:, : 1 + len(self._own_aspects)]).astype(np.float32)
        overall = expit(self._sum(values, self.fitted.score) + self.fitted.offset)
        aspects = dict(zip(self._own_aspects, own.T[1:], strict=True))
        intervals = {}
        for name, target in self.fitted.targets.items():
            answered, ends = target.answer(self._sum(values, target.weights) + target.offset)
            aspects[name] = answered.astype(np.float32)
            intervals[name] = ends
        scores = np.where(np.isnan(overall), own[:, 0], overall).astype(np.float32)
        return self._ranked(Columns(scores, reasons, cut, aspects, intervals))

    def _values(
        self,
        documents: Sequence[str],
        summaries: Sequence[str],
        references: Sequence[Sequence[str]] | None,
        batch_size: int,
    ) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
        """The inputs, float64 [n, K]; which pairs were cut; why an input is missing."""
        evidence, cut, reasons = self.evidence(documents, summaries, batch_size=batch_size)
        more, why = self.further(documents, summaries, references)
        values = np.concatenate([evidence.astype(np.float64), more], axis=1)
        return values, cut, [first or second for first, second in zip(reasons, why, strict=True)]

    def _sum(self, values: np.ndarray, weights: Mapping[str, float]) -> np.ndarray:
        places = [self._inputs.index(name) for name in weights]
        return values[:, places] @ np.array([float(weight) for weight in weights.values()])

    def explain(self, document: str, summary: str) -> dict[str, Any]:
        """As `Estimator.explain`; ``targets``: for each the value, its interval, and what each input adds to the sum that
        it comes from, beside a summary of which every input is at the middle of its scale.
        """
        if not isinstance(self._features, AlignFeatures):
            raise InputError(f"head {self.description['head']!r} has no aspects to explain a score by")
        scored = self.score_pairs([document], [summary])
        told = explain(self._features, self._network, document, summary, scored)
        values = self._values([document], [summary], None, 1)[0][0]
        told["targets"] = {}
        for name, target in self.fitted.targets.items():
            value = scored.aspects[name][0]
            if np.isnan(value):
                continue
            parts = {key: float(weight * values[self._inputs.index(key)]) for key, weight in target.weights.items()}
            told["targets"][name] = {
                "value": round(float(value), 4),
                "interval": [round(float(end), 4) for end in scored.intervals[name][0]],
                "adds": {
                    key: round(part, 4) for key, part in sorted(parts.items(), key=lambda item: -abs(item[1])) if part
                },
            }
        return told


# What `save_folder` writes of itself; and what is no longer so of an estimator that was fitted.
_OWN_ENTRIES = frozenset(
    "format format_version negsample head head_options features encoder weights_sha256 fitted ready".split()
)


def save_fitted(estimator: Estimator, fitted: Fitted, folder: Path, card: str) -> None:
    """Write ``estimator``, as it is, with what was ``fitted``, as a model folder. An earlier fit of it is replaced."""
    about = estimator.description
    parts = Parts(
        about["head"],
        dict(about.get("head_options", {})),
        estimator._features,
        estimator._network,
        dict(about["encoder"]),
    )
    facts = {name: value for name, value in about.items() if name not in _OWN_ENTRIES}
    save_folder(parts, folder, {**facts, "fitted": fitted.as_plain()}, card)

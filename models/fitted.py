"""An estimator whose score, and further targets, were fitted to people's scores (``negsample fit``).

Its folder is that of the estimator it started from, whole, with the entry ``fitted`` in ``config.json``: weights of what
that estimator says of a pair, which is computed as before, and of further metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from negsample.corpora import load_pairs
from negsample.errors import InputError
from negsample.models.build import Parts
from negsample.models.estimator import Answers, Estimator
from negsample.models.folder import percentiles_of, save_folder
from negsample.models.language.model_files import telling
from negsample.scoring.scorer import Columns, Item, Scorer, make_metric
from negsample.seeds import digest


@dataclass(frozen=True)
class FittedTarget:
    """People's score: ``offset`` + Σ ``weights``[input]·input, cut at the ends of the ``scale`` that people used.

    ``half_width``: half of the interval that holds the score of a new summary with probability ``confidence``.
    """

    human: str
    weights: Mapping[str, float]
    offset: float
    scale: tuple[float, float]
    half_width: float
    confidence: float


def on_scale(values: np.ndarray, scale: tuple[float, float], half_width: float) -> tuple[np.ndarray, np.ndarray]:
    """``values`` [n] and the intervals about them [n, 2], both cut at the ends of ``scale``; NaN stays NaN."""
    values = np.clip(values, *scale)
    return values, np.clip(np.stack([values - half_width, values + half_width], axis=1), *scale)


@dataclass(frozen=True)
class FurtherMetric:
    """A metric that a fit weighs beside the estimator's own inputs, as (``direction``·value − ``centre``)/``spread``."""

    spec: str
    name: str
    signature: str
    direction: int
    centre: float
    spread: float


@dataclass(frozen=True)
class Fitted:
    """All that a fit adds to an estimator. ``score``, ``offset``: weights of the overall score, whose sigmoid it is.

    ``documents``: keys of the documents whose summaries it was fitted on. ``references``: whether ``metrics`` read them.
    ``about``: what it was fitted on, for people.
    """

    score: Mapping[str, float]
    offset: float
    targets: Mapping[str, FittedTarget]
    metrics: tuple[FurtherMetric, ...]
    references: bool
    documents: tuple[str, ...]
    about: Mapping[str, Any]

    @staticmethod
    def from_plain(data: Any) -> "Fitted":
        """Read what ``asdict`` gave, the entry of ``config.json``. Raises InputError for anything else."""
        with telling("config.json", "what was fitted is damaged", "copy the model again"):
            read = {
                name: FittedTarget(**{**one, "scale": tuple(one["scale"])}) for name, one in data["targets"].items()
            }
            metrics = tuple(FurtherMetric(**entry) for entry in data["metrics"])
            found = Fitted(**{**data, "targets": read, "metrics": metrics, "documents": tuple(data["documents"])})
            for weights in (found.score, *(target.weights for target in read.values())):
                if not np.isfinite([float(weight) for weight in weights.values()]).all():
                    raise ValueError("a weight is not finite")
        return found


def further_metrics(specs: Sequence[str], references: bool) -> list[Scorer]:
    """The metrics ``specs``. Raises InputError where one needs references that there will not be."""
    metrics = [make_metric(spec) for spec in dict.fromkeys(specs)]
    if asking := [metric.name for metric in metrics if "references" in metric.needs and not references]:
        advice = "add --references if they will be there when the model scores"
        raise InputError(f"--metric {asking[0]} reads references; {advice}")
    return metrics


class FittedEstimator(Estimator):
    """Scores as a fit to people's scores has it: ``score`` in [0, 1], the aspects as they were, and the targets.

    A target stands among the aspects, on people's own scale, with ``Columns.intervals``. Where an input is missing the
    overall score is that of the estimator without the fit, and the targets are missing, with the reason.
    """

    def __init__(self, parts: Parts, description: dict[str, Any], *arguments: Any, **options: Any) -> None:
        super().__init__(parts, description, *arguments, **options)
        self.fitted = Fitted.from_plain(description["fitted"])
        self.fitted_on |= frozenset(self.fitted.documents)
        if self.fitted.references:
            self.needs = frozenset({"document", "references"})
        self._metrics = further_metrics([metric.spec for metric in self.fitted.metrics], self.fitted.references)
        for metric, then in zip(self._metrics, self.fitted.metrics, strict=True):
            # Whatever the version of the program.
            both = (metric.signature.split("|"), then.signature.split("|"))
            one, other = ([part for part in parts if not part.startswith("version:")] for parts in both)
            if one != other:
                raise InputError(f"the metric {then.name} is not the one that was fitted ({then.signature}); fit again")
        self._inputs = (*self.input_directions, *(metric.name for metric in self.fitted.metrics))
        sums = [self.fitted.score, *(target.weights for target in self.fitted.targets.values())]
        if unknown := sorted({name for weights in sums for name in weights} - set(self._inputs)):
            raise InputError(f"config.json: a fit weighs {unknown[0]!r}, which this head does not have; fit it again")

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with anything that changes a score."""
        return digest(super().fingerprint, sorted(asdict(self.fitted).items()), size=6).hex()

    @property
    def signature(self) -> str:
        """As `Estimator.signature`, with the human scores that it was fitted to."""
        people = ",".join(target.human for target in self.fitted.targets.values())
        return f"{super().signature}|fitted:{people}"

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects of the head, then the targets."""
        return (*super().aspects, *self.fitted.targets)

    def _answers(self, items: Sequence[Item], batch_size: int) -> Answers:
        """The inputs of the fit, float64 [n, K]: the estimator's, then metrics as it weighs them."""
        found = self.inputs([i.document for i in items], [i.summary for i in items], batch_size=batch_size)
        values, reasons = np.empty((len(items), len(self._inputs))), found.reasons
        own = found.values.shape[1]
        values[:, :own] = found.values
        seen = items if self.fitted.references else [Item(item.document, item.summary) for item in items]
        for place, then in enumerate(self.fitted.metrics if items else ()):
            with self._alone:
                told = self._metrics[place].score(seen)
            values[:, own + place] = (told.scores * then.direction - then.centre) / then.spread
            both = zip(reasons, told.reasons, strict=True)
            reasons = [why or (reason and f"{then.name}: {reason}") for why, reason in both]
        return Answers(values, found.cut, reasons)

    def _columns(self, answers: Answers) -> Columns:
        own = super()._columns(answers)
        overall = expit(self._sum(answers.values, self.fitted.score) + self.fitted.offset)
        aspects, intervals = dict(own.aspects), {}
        for name, target in self.fitted.targets.items():
            answered = self._sum(answers.values, target.weights) + target.offset
            answered, intervals[name] = on_scale(answered, target.scale, target.half_width)
            aspects[name] = answered.astype(np.float32)
        scores = np.where(np.isnan(overall), own.scores, overall).astype(np.float32)
        return Columns(scores, answers.reasons, answers.cut, aspects, intervals)

    def _sum(self, values: np.ndarray, weights: Mapping[str, float]) -> np.ndarray:
        places = [self._inputs.index(name) for name in weights]
        return values[:, places] @ np.array([float(weight) for weight in weights.values()])

    def _explained(self, answers: Answers, columns: Columns, place: int) -> dict[str, Any]:
        """``targets``: for each the value, its interval, and what each input adds to it, beside a summary of which every
        input is at the middle of its scale."""
        told = {}
        for name, target in self.fitted.targets.items():
            value, inputs = columns.aspects[name][place], answers.values[place]
            if np.isnan(value):
                continue
            parts = {key: float(weight * inputs[self._inputs.index(key)]) for key, weight in target.weights.items()}
            order = sorted(parts, key=lambda key: -abs(parts[key]))
            told[name] = {
                "value": round(float(value), 4),
                "interval": [round(float(end), 4) for end in columns.intervals[name][place]],
                "adds": {key: round(parts[key], 4) for key in order if parts[key]},
            }
        return {**super()._explained(answers, columns, place), "targets": told}


def save_fitted(estimator: Estimator, fitted: Fitted, folder: Path, card: str) -> None:
    """Write ``estimator``, as it is, with what was ``fitted``, as a model folder. An earlier fit of it is replaced.

    The percentiles of its aspects stay; those of the score and the targets are of the embedded sample's own summaries, and
    there are none where the fit reads references, which these don't have.
    """
    # What `save_folder` writes of itself; and what is no longer so of an estimator that was fitted.
    own = "format format_version negsample head head_options features encoder weights_sha256 fitted ready".split()
    facts = {name: value for name, value in estimator.description.items() if name not in own}
    facts |= {"fitted": asdict(fitted), "base": estimator.signature}
    kept, named = estimator._percentiles, dict[str, np.ndarray]()
    pairs = [] if fitted.references else list(load_pairs("sample"))
    if pairs:
        made = FittedEstimator(estimator.parts, {**estimator.description, **facts}, estimator.device)
        named = made.score_pairs([p.document for p in pairs], [p.summary for p in pairs]).named()
    stay = set(estimator._own_aspects) & set(kept.get("", ()))
    new = {name: column for name, column in named.items() if name not in stay}
    told = percentiles_of(new, "sample", [pair.domain for pair in pairs])
    for domain, known in kept.items():
        values = {name: column.tolist() for name, column in known.items() if name in stay}
        if not domain:
            told["values"] |= values
        elif values:
            told["domains"].setdefault(domain, {"values": {}})["values"] |= values
    save_folder(estimator.parts, folder, facts, card, told if told["values"] else None)

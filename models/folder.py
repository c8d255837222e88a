"""The model folder: ``config.json``, ``model.safetensors``, ``encoder/`` and a model card; written whole, checked on reading.

What a score means is in its ``percentiles.json``: what held-out summaries of the model's own corpus scored. Of at most
``_MOST`` summaries all values are kept, so that a percentile is exact; of more, as many evenly spaced quantiles, and it is
right to 0.3 %; so of each domain (kind of text: "news") that has ``_FEW`` summaries or more. What its height means is its
scale: 0.5 is a middling real summary, and equal steps are equal shares of real and damaged ones.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import negsample
from negsample.errors import InputError
from negsample.io.files import atomic_json, file_digest, share_weights
from negsample.models.build import Parts, load_parts
from negsample.models.language.model_files import DAMAGED, load_weights, telling
from negsample.models.precision import to_bf16

PERCENTILES = "percentiles.json"
_MOST = 200
# Summaries of a domain below which a percentile among them would be chance (of 20 it is right to some 11 %), and domains.
_FEW, _MOST_DOMAINS = 20, 50
# Scores of one text differ in the last digits from batch to batch; a summary is not better than itself.
_DIGITS = 5
_SHARES = np.linspace(0.05, 0.95, 19)
# Summaries of either sort below which a scale would be chance.
_LEAST = 8
# Knots that coincide are set so far apart: a better summary never has the same score.
_APART = 1e-4
FORMAT = "negsample-estimator"
FORMAT_VERSION = 1
_NEEDED = ("head", "features", "encoder", "recipe", "loss", "weights_sha256")


def save_folder(
    parts: Parts, folder: Path, facts: Mapping[str, Any], card: str, percentiles: Mapping[str, Any] | None = None
) -> None:
    """Write the model into ``folder`` (made where it is missing): every file whole, ``config.json`` last.

    ``facts`` are plain values that go into config.json beside what loading needs: ``recipe``, ``loss`` and whatever
    tells a person what the model is; ``percentiles`` (``percentiles_of``) what real summaries score. Weights are
    safetensors; nothing is pickled.
    """
    from safetensors.torch import save_model

    assert parts.network is not None
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / ".draft"
    # What one that was killed has left.
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        settings = parts.features.save(draft)
        encoder: Any = getattr(parts.network, "encoder", None)
        if hasattr(encoder, "config"):
            encoder.config.save_pretrained(draft / "encoder")  # the tokenizer is there already
        save_model(parts.network, str(draft / "model.safetensors"))
        description = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "negsample": negsample.__version__,
            "head": parts.head,
            "head_options": parts.options,
            "features": settings,
            "encoder": parts.encoder,
            "weights_sha256": file_digest(draft / "model.safetensors").hex(),
            **facts,
        }
        (draft / "README.md").write_text(card, encoding="utf-8")
        share_weights(draft, like="README.md")
        if percentiles is not None:
            atomic_json(draft / PERCENTILES, percentiles)
        else:
            (folder / PERCENTILES).unlink(missing_ok=True)
        for path in sorted(draft.iterdir()):
            target = folder / path.name
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(path, target)
        atomic_json(folder / "config.json", description)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load_folder(folder: Path, precision: str = "float32") -> tuple[Parts, dict[str, Any]]:
    """What scores pairs, with its weights, and the description of it. Raises InputError as ``negsample.models.load`` does."""
    description = read_description(folder)
    with telling(folder / "config.json", *DAMAGED, KeyError, TypeError, AttributeError, ValueError):
        parts = load_parts(description, folder, precision=precision)
    assert parts.network is not None
    load_weights(parts.network, folder, description["weights_sha256"])
    encoder: Any = getattr(parts.network, "encoder", None)
    if precision == "bf16" and encoder is not None:
        to_bf16(encoder)
    return parts, description


def read_description(folder: Path) -> dict[str, Any]:
    """The checked content of ``config.json``.

    Raises InputError where the folder is missing, is of another kind, was written by a newer version, or is damaged.
    """
    path = folder / "config.json"
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {what}; give the folder that 'negsample train --out' wrote")
    if not path.is_file():
        hint = "; its training has not finished: go on with --resume" if (folder / "work").is_dir() else ""
        raise InputError(f"{folder}: not a model folder (it has no config.json){hint}")
    with telling(path, *DAMAGED):
        description = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        why = f"config.json has no format {FORMAT!r}"
        raise InputError(f"{folder}: another kind of model ({why}); train one with negsample")
    version = description.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise InputError(
            f"{folder}: written by a newer negsample ({description.get('negsample')}, format {version}); "
            f"this is {negsample.__version__}: upgrade it"
        )
    if missing := [key for key in _NEEDED if key not in description]:
        raise InputError(f"{path}: damaged (no {missing[0]!r}); copy the model again")
    return description


def percentiles_of(columns: Mapping[str, np.ndarray], corpus: str, domains: Iterable[str] = ()) -> dict[str, Any]:
    """The content of ``percentiles.json`` from what real summaries of ``corpus`` scored.

    ``columns``: ``score`` and each aspect → float [n] in [0, 1]; NaN, where an aspect can't be judged, is left out and
    not counted. A column with nothing in it is left out. ``domains`` [n], "" for none: of the fifty that most are of, each
    column with 20 values or more stands in ``domains``.
    """
    of, own = np.array(list(domains), object), dict[str, Any]()
    for domain, _ in Counter(sorted(filter(None, of))).most_common(_MOST_DOMAINS):
        part = _kept({name: column[of == domain] for name, column in columns.items()}, _FEW)
        own |= {domain: part} if part["values"] else {}
    return {"corpus": corpus, **_kept(columns, 1), "domains": own}


def _kept(columns: Mapping[str, np.ndarray], least: int) -> dict[str, Any]:
    """``summaries``: how many values a column with ``least`` or more of them has; ``values``: those, or quantiles, sorted."""
    values, summaries = {}, {}
    for name, column in columns.items():
        ordered = np.sort(np.asarray(column, np.float64)[np.isfinite(column)])
        if len(ordered) < least:
            continue
        summaries[name] = len(ordered)
        if len(ordered) > _MOST:  # the middles of as many equal shares
            ordered = ordered[((np.arange(_MOST) + 0.5) / _MOST * len(ordered)).astype(int)]
        values[name] = [round(float(value), _DIGITS) for value in ordered]
    return {"summaries": summaries, "values": values}


def read_percentiles(path: Path) -> dict[str, dict[str, np.ndarray]] | None:
    """The kept values of each column, sorted float64, of all real summaries (``""``, the first) and of each domain; None where
    there is no such file. InputError for a damaged one."""
    if not path.is_file():
        return None
    with telling(path, *DAMAGED):
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = {"": content, **content.get("domains", {})}
        found = {
            domain: {name: np.asarray(column, np.float64) for name, column in part["values"].items()}
            for domain, part in parts.items()
        }
        for v in (column for part in found.values() for column in part.values()):
            if v.ndim != 1 or not v.size or not np.isfinite(v).all() or (np.diff(v) < 0).any():
                raise ValueError("its values are not sorted numbers")
    return found if found[""] else None


def share_below(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """For each of ``scores`` float [n] the share in [0, 1] of the sorted ``values`` that are lower; NaN of NaN."""
    rounded = np.round(np.asarray(scores, np.float64), _DIGITS)
    return np.where(np.isnan(rounded), np.nan, np.searchsorted(values, rounded, side="left") / len(values))


def scale_of(real: Mapping[str, np.ndarray], damaged: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """The logits, ascending, that stand for scores of .05, .1, … .95: of ``score`` and each aspect.

    ``real``, ``damaged``: outputs float [n] in (0, 1) of real summaries, and of damaged ones; NaN is left out. The median of
    the real ones is .5; those below it, real or damaged, are spread evenly over (0, .5), those above over (.5, 1). A column
    with fewer than eight of either is left out.
    """
    found = {}
    for name in real:
        good, bad = (logits(np.asarray(column)[np.isfinite(column)]) for column in (real[name], damaged[name]))
        if min(len(good), len(bad)) < _LEAST:
            continue
        middle, every = np.median(good), np.concatenate([good, bad])
        below, above = np.append(every[every < middle], middle), np.append(every[every > middle], middle)
        knots = np.where(
            _SHARES < 0.5,
            np.quantile(below, np.minimum(2 * _SHARES, 1)),
            np.quantile(above, np.maximum(2 * _SHARES - 1, 0)),
        )
        lifted = np.maximum.accumulate(knots - _APART * np.arange(len(knots))) + _APART * np.arange(len(knots))
        found[name] = [round(float(knot), 5) for knot in lifted]
    return found


def logits(outputs: np.ndarray) -> np.ndarray:
    """log(p / (1 − p)), float64, of outputs in [0, 1]; finite."""
    p = np.clip(np.asarray(outputs, np.float64), 1e-7, 1 - 1e-7)
    return np.log(p) - np.log1p(-p)  # type: ignore[no-any-return]


def scaled(knots: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Scores in (0, 1) of logits ``z``, rising with them, by the ``knots`` of ``scale_of``; NaN of NaN."""
    inside = np.interp(z, knots, _SHARES)
    lower = _SHARES[0] * np.exp(np.minimum(z - knots[0], 0))
    upper = 1 - (1 - _SHARES[-1]) * np.exp(np.minimum(knots[-1] - z, 0))
    return np.where(z < knots[0], lower, np.where(z > knots[-1], upper, inside)) + 0 * z  # type: ignore[no-any-return]


def on_scale(columns: Mapping[str, np.ndarray], scale: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Outputs float [n] in (0, 1) by name, those that ``scale`` (``scale_of``) knows brought to it."""
    return {
        name: scaled(np.array(scale[name]), logits(column)) if name in scale else column
        for name, column in columns.items()
    }

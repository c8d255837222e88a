"""The model folder: ``config.json``, ``model.safetensors``, ``encoder/`` and a model card; written whole, checked on reading.

What a score means is in its ``percentiles.json``: what held-out summaries of the model's own corpus scored. Of at most
``_MOST`` summaries all values are kept, so that a percentile is exact; of more, as many evenly spaced quantiles, and it is
right to 0.3 %.
"""

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import negsample
from negsample.errors import InputError
from negsample.io.files import atomic_json, file_digest
from negsample.models.build import Parts, load_parts
from negsample.models.language.model_files import load_weights
from negsample.models.precision import to_bf16

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

PERCENTILES = "percentiles.json"
_MOST = 200
# Scores of one text differ in the last digits from batch to batch; a summary is not better than itself.
_DIGITS = 5
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
    draft = folder / f".draft-{uuid.uuid4().hex}"
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
    try:
        parts = load_parts(description, folder, precision=precision)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{folder / 'config.json'}: damaged ({error!r}); copy the model again") from None
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
        if folder.exists():
            raise InputError(f"{folder}: is a file; give the folder that 'negsample train --out' wrote")
        raise InputError(f"{folder}: no such folder; give the folder that 'negsample train --out' wrote")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "; its training has not finished: go on with --resume" if (folder / "work").is_dir() else ""
        raise InputError(f"{folder}: not a model folder (it has no config.json){hint}") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); copy the model again") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError(
            f"{folder}: another kind of model (config.json has no format {FORMAT!r}); train one with negsample"
        )
    version = description.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise InputError(
            f"{folder}: written by a newer negsample ({description.get('negsample')}, format {version}); "
            f"this is {negsample.__version__}: upgrade it"
        )
    if missing := [key for key in _NEEDED if key not in description]:
        raise InputError(f"{path}: damaged (no {missing[0]!r}); copy the model again")
    return description


# --- percentiles


def percentiles_of(columns: Mapping[str, np.ndarray], corpus: str) -> dict[str, Any]:
    """The content of ``percentiles.json`` from what real summaries of ``corpus`` scored.

    ``columns``: ``score`` and each aspect → float [n] in [0, 1]; NaN, where an aspect can't be judged, is left out and
    not counted. A column with nothing in it is left out.
    """
    values, summaries = {}, {}
    for name, column in columns.items():
        ordered = np.sort(np.asarray(column, np.float64)[np.isfinite(column)])
        if not len(ordered):
            continue
        summaries[name] = len(ordered)
        if len(ordered) > _MOST:  # the middles of as many equal shares
            ordered = ordered[((np.arange(_MOST) + 0.5) / _MOST * len(ordered)).astype(int)]
        values[name] = [round(float(value), _DIGITS) for value in ordered]
    return {"corpus": corpus, "summaries": summaries, "values": values}


def sample_columns(estimator: "Estimator") -> dict[str, np.ndarray]:
    """What ``estimator`` says of the embedded sample's own summaries: ``score`` and each aspect → float [n]."""
    from negsample.corpora import load_pairs

    pairs = list(load_pairs("sample"))
    return estimator.score_pairs([pair.document for pair in pairs], [pair.summary for pair in pairs]).named()


def read_percentiles(path: Path) -> dict[str, np.ndarray] | None:
    """The kept values of each column, sorted float64; None where there is no such file. InputError for a damaged one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = {str(name): np.asarray(column, np.float64) for name, column in content["values"].items()}
        if not all(
            v.ndim == 1 and v.size and np.isfinite(v).all() and (np.diff(v) >= 0).all() for v in values.values()
        ):
            raise ValueError("its values are not sorted numbers")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged ({error!r}); copy the model again") from None
    return values or None


def share_below(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """For each of ``scores`` float [n] the share in [0, 1] of the sorted ``values`` that are lower; NaN of NaN."""
    rounded = np.round(np.asarray(scores, np.float64), _DIGITS)
    return np.where(np.isnan(rounded), np.nan, np.searchsorted(values, rounded, side="left") / len(values))

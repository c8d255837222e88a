"""One reader of settings for every command: frozen dataclasses, filled from YAML files and ``key=value`` words.

A field's type says what it takes (``Literal``: its choices), ``number`` its range, the method ``check`` what goes together.
Ready-made files are in ``negsample.configs`` and found by name. Of YAML's truth values only ``true`` and ``false`` are, so
that ``no`` is a language, and keys are text.
"""

import contextlib
import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.registry import check_keys, suggestion

FOLDER = Path(str(files("negsample.configs")))
# A key by which the file of one command is known (the first that it has), its type (``heads: fc`` is a slip for
# ``head: fc``), and the command.
_COMMANDS: tuple[tuple[str, type, str], ...] = (
    ("sources", dict, "transfer"),
    ("space", dict, "tune"),
    ("policy", str, "reinforce"),
    ("table", str, "tables"),
    ("encoders", list, "tables"),
    ("heads", list, "tables"),
)
_NAMES: dict[Any, str] = {
    type(None): "null",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "key: value lines",
}
_BOUNDS = {"least": "at least", "above": "above", "most": "at most", "below": "below"}
_REFUSED: Any = object()


class _Loader(yaml.SafeLoader):
    """As YAML 1.2 has truth values; a key that comes twice is refused, where PyYAML would take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
            key.tag = self.DEFAULT_SCALAR_TAG
        return super().construct_mapping(node, deep)


_TRUTH_TAG = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in known if tag != _TRUTH_TAG]
    for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_TRUTH_TAG, re.compile("(?i:true|false)$"), list("tTfF"))


@dataclass(frozen=True)
class Settings:
    """What the settings of every command are."""

    def check(self) -> None:
        """Raise InputError, beginning with the key, where values that are right by themselves contradict each other."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as they go to YAML and JSON."""
        return dataclasses.asdict(self)


S = TypeVar("S", bound=Settings)


def number(default: Any, **bounds: float) -> Any:
    """Return a dataclass field for numbers with ``bounds``: ``least`` and ``most``, or ``above`` and ``below``."""
    assert set(bounds) <= set(_BOUNDS)
    return dataclasses.field(default=default, metadata=bounds)


def field_types(settings: type[Settings]) -> dict[str, Any]:
    """Return the type of each setting by its key."""
    hints = typing.get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def convert(value: Any, kind: Any, at: str) -> Any:
    """Return ``value``, as YAML reads it, as the type ``kind``: of several (``int | None``) the first that takes it.

    A ``tuple`` is made of a list or of a single value. Raises InputError, which begins with ``at``.
    """
    several = typing.get_origin(kind) in (types.UnionType, typing.Union)
    kinds = typing.get_args(kind) if several else (kind,)
    for one in kinds:
        if (made := _converted(value, one, at)) is not _REFUSED:
            return made
    names: list[str] = []
    for one in kinds:
        origin = typing.get_origin(one) or one
        names += typing.get_args(one) if origin is typing.Literal else [_NAMES.get(origin, f"a {origin.__name__}")]
    raise InputError(f"{at} must be {' or '.join(names)}, not {value!r}")


def _converted(value: Any, kind: Any, at: str) -> Any:
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is typing.Literal:
        return value if value in inner else _REFUSED
    if origin is bool and value in ("yes", "no"):
        return value == "yes"
    if origin is tuple:
        return tuple(convert(each, inner[0], at) for each in (value if isinstance(value, list | tuple) else [value]))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if origin is float and (is_number or isinstance(value, str)):  # YAML 1.1 reads "3e-5" as text
        with contextlib.suppress(ValueError, OverflowError):
            return float(value) if math.isfinite(float(value)) else _REFUSED
    if origin is str and is_number:
        return str(value)
    if origin is list:
        fits = isinstance(value, list) and value and all(inner[0] in (Any, type(one)) for one in value)
        return value if fits else _REFUSED
    return value if kind is Any or type(value) is origin else _REFUSED


def make_settings(settings: type[S], values: Mapping[str, Any], where: str = "") -> S:
    """Return checked settings from plain values; null stands for the default.

    Raises InputError, which begins with ``where`` (if that is given) and names the key, for an unknown key (with the nearest
    known one), a wrong type, a value out of range, and what ``check`` refuses.
    """
    known = field_types(settings)
    try:
        check_keys(values, known)
        made = {key: convert(value, known[key], key) for key, value in values.items() if value is not None}
        for field in dataclasses.fields(settings):
            value = made.get(field.name, 0)
            for name, bound in field.metadata.items() if field.name in made else ():
                fits = {"least": value >= bound, "above": value > bound, "most": value <= bound, "below": value < bound}
                if not fits[name]:
                    raise InputError(f"{field.name} must be {_BOUNDS[name]} {bound:g}, not {value!r}")
        found = settings(**made)
        found.check()
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None
    return found


def read_settings(settings: type[S], path: str | Path | None, words: Sequence[str], command: str) -> S:
    """Return the settings of ``command`` from a YAML file (or the defaults), then ``key=value`` words, the later winning.

    Raises InputError as ``read_file`` and ``make_settings``; what words make wrong is told by their keys alone.
    """
    given = read_words(words)
    if path is None:
        return make_settings(settings, given)
    values = read_file(path, command)
    found = make_settings(settings, values, str(path))
    return make_settings(settings, {**values, **given}) if given else found


def read_file(path: str | Path, command: str = "") -> dict[str, Any]:
    """Return the ``key: value`` lines of a YAML file, or of a packaged one by its bare name (``p3_table3_transfer``).

    Raises InputError where there is no such file, it holds something else, or is for another command than ``command``.
    """
    values = read_mapping(find_config(path), str(path))
    meant = [(key, other) for key, kind, other in _COMMANDS if isinstance(values.get(key), kind)]
    if command and meant and meant[0][1] != command:
        key, other = meant[0]
        told = f"tables {values.get('table', 'TABLE')}" if other == "tables" else other
        raise InputError(f"{path}: is not for {command} (it has {key!r}); run negsample {told} --config {path} …")
    return values


def read_mapping(path: Path, where: str, hint: str = "must hold key: value lines") -> dict[str, Any]:
    """Return what the YAML file ``path`` maps to what; ``{}`` for an empty one.

    Raises InputError, beginning with ``where``, for a file that can't be read or holds something else: ``hint`` tells what
    it must hold.
    """
    try:
        loaded = yaml.load(path.read_text("utf-8-sig"), _Loader)
    except OSError as error:
        raise failure(where, error) from error
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8; save the file as UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{where}{place}: not valid YAML ({getattr(error, 'problem', error)}); {hint}") from None
    if loaded is not None and not isinstance(loaded, dict):
        raise InputError(f"{where}: {hint}, not {type(loaded).__name__}")
    return loaded or {}


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` words as a mapping, their values read as YAML: ``limit=500``, ``corpus=[a.jsonl,b.jsonl]``.

    Raises InputError for a word without ``=``, and for a key that comes twice.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"{word!r}: expected key=value, such as limit=500")
        if (key := name.strip()) in values:
            raise InputError(f"{key} is given twice; give it once (several values: {key}=[ONE,OTHER])")
        try:
            values[key] = yaml.load(text, _Loader) if text.strip() else None
        except (yaml.YAMLError, ValueError):  # a day or a number that there is not
            values[key] = text
    return values


def config_names() -> list[str]:
    """Return the names of the packaged configurations, sorted: ``["align", "p3_experiment1", …]``."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find_config(name: str | Path) -> Path:
    """Return the file ``name``; where there is none and ``name`` is a bare word, the packaged configuration of that name.

    Raises InputError, with the nearest names, for a bare word that is neither.
    """
    path = Path(name)
    if path.suffix or len(path.parts) != 1 or path.is_file():
        return path
    if str(name) not in (known := config_names()):
        raise InputError(f"{name}: no such file, and no configuration of that name; {suggestion(str(name), known)}")
    return FOLDER / f"{name}.yaml"

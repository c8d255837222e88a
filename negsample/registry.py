"""Name → factory, with "did you mean"; and the one grammar of what is named with options.

Third parties add entries through entry points or ``register``. A built-in entry is a line
``"name": "module:attribute"``, imported only when it is asked for, so that listing the names costs nothing. An installed
package adds one by an entry point in the group ``negsample.<kinds>``, e.g.
``negsample.encoders`` or ``negsample.corpora``.
"""

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, TypeVar

from negsample.errors import InputError


class Registry:
    """Named factories of one kind (``"encoder"``, ``"head"``, ``"negative"``, ``"corpus"``, ``"metric"``)."""

    def __init__(self, kind: str, builtin: Mapping[str, str | Callable[..., Any]], plural: str = "") -> None:
        self.kind = kind
        self._group = f"negsample.{plural or kind + 's'}"
        self._entries: dict[str, str | Callable[..., Any]] = dict(builtin)
        self._plugins_read = False

    def register(self, name: str, factory: str | Callable[..., Any]) -> None:
        """Add ``factory`` (a callable, or ``"module:attribute"``) under ``name``; a taken name is an error."""
        if name in self._entries and self._entries[name] != factory:
            raise InputError(f"{self.kind} {name!r} is registered already; choose another name")
        self._entries[name] = factory

    def _read_plugins(self) -> None:
        if not self._plugins_read:
            self._plugins_read = True
            for point in entry_points(group=self._group):
                self._entries.setdefault(point.name, point.value)

    def names(self) -> list[str]:
        """All names, sorted."""
        self._read_plugins()
        return sorted(self._entries)

    def __contains__(self, name: object) -> bool:
        self._read_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def get(self, name: str) -> Any:
        """The factory called ``name``.

        Raises InputError with the nearest names where there is none.
        """
        self._read_plugins()
        if name not in self._entries:
            raise InputError(f"no {self.kind} is called {name!r}; {suggestion(name, self.names())}")
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            return getattr(importlib.import_module(module), attribute)
        return entry


def suggestion(name: str, known: list[str]) -> str:
    """``did you mean …?`` with the nearest of ``known``, or the whole list where nothing is near."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"


def check_keys(given: Iterable[Any], known: Iterable[str], where: str = "") -> None:
    """InputError for the first key of ``given`` that is not ``known``, with the nearest that is; ``where`` it stands."""
    names = list(known)
    for key in given:
        if key not in names:
            told = f"unknown key {key!r}; {suggestion(str(key), names)}"
            raise InputError(f"{where}: {told}" if where else told)


def distinct(names: list[Any], what: str, advice: str = "give it once") -> list[Any]:
    """Return ``names``. Raises InputError for one that is given twice: ``what`` it is, and ``advice``."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError(f"{what} {name!r} is given twice; {advice}")
    return names


M = TypeVar("M")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Spec:
    """What a text says: the name, its arguments, its options, all still strings.

    ``NAME``, ``NAME:ARGUMENT`` (one path, id or file: all that follows), ``NAME(ARGUMENT, key=value, …)``. A value may be such a
    specification itself, as in ``cosine(encoder=glove(path=v.txt, unit=word), against=references)``; one with a comma outside
    parentheses, or whose own parentheses have no partner, can't be written; ``(a, b)`` is the value ``a, b``.
    """

    name: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def parse(text: str, kind: str = "specification") -> Spec:
    """Read ``text``, which names something of ``kind``. Raises InputError where it doesn't follow the grammar."""
    whole = text.strip()
    end = min((place for place in (whole.find(":"), whole.find("(")) if place >= 0), default=len(whole))
    name, rest = whole[:end].strip(), whole[end:]
    if not name:
        raise InputError(f"{kind} {text!r} has no name; write NAME, NAME:ARGUMENT or NAME(key=value, …)")
    if rest.startswith(":"):
        return Spec(name, (unquote(rest[1:].strip()),) if rest[1:].strip() else ())
    pieces = split_outside(rest[1:-1], ",") if rest.endswith(")") else None
    if rest and pieces is None:
        raise InputError(f"{kind} {text!r}: a parenthesis has no partner; write NAME(key=value, …)")
    arguments: list[str] = []
    options: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in pieces or ())):
        key, equals, value = piece.partition("=")
        if not equals or not key.strip().replace("-", "_").isidentifier():
            arguments.append(unquote(piece))
        elif key.strip() in options:
            raise InputError(f"{kind} {text!r}: option {key.strip()!r} is given twice; give it once")
        else:
            options[key.strip()] = unquote(value.strip())
    return Spec(name, tuple(arguments), options)


def write(name: str, options: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """The canonical text of ``name`` with those ``options`` that differ from their ``defaults``, in the order given."""
    texts = {key: plain(value) for key, value in options.items()}
    changed = [f"{key}={quote(value)}" for key, value in texts.items() if value != plain(defaults[key])]
    return f"{name}({','.join(changed)})" if changed else name


def plain(value: object) -> str:
    """An option's value as text; truth values are ``true`` and ``false``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quote(value: str) -> str:
    """Write a value so that ``parse`` reads it again: in parentheses where it has a comma outside of any."""
    pieces = split_outside(value, ",")
    return f"({value})" if pieces is not None and len(pieces) > 1 else value


def unquote(value: str) -> str:
    """Take off the parentheses around ``value``, if they are one pair: not those of ``(a)+(b)``."""
    inside = value[1:-1]
    alone = value.startswith("(") and value.endswith(")") and split_outside(inside, ",") is not None
    return inside.strip() if alone else value


def split_outside(text: str, separator: str) -> list[str] | None:
    """Split ``text`` at each ``separator`` outside parentheses; None where a parenthesis has no partner."""
    pieces, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return None
        if letter == separator and depth == 0:
            pieces.append(text[start:place])
            start = place + 1
    return None if depth else [*pieces, text[start:]]


def build(registry: Registry, text: str, made: type[M]) -> M:
    """What the factory that ``text`` names in ``registry`` makes of the arguments and options in it.

    Arguments go to the factory's parameters in their order, options to those of their names; both are turned into the
    ``bool``, ``int`` or ``float`` that a parameter is annotated as. Raises InputError for an unknown name, option or value,
    with the nearest that there is, and where something is missing or given twice.
    """
    kind = registry.kind
    spec = parse(text, kind)
    factory = registry.get(spec.name)
    parameters = inspect.signature(factory, eval_str=True).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = {name: p for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    places = [name for name, p in known.items() if p.kind is not p.KEYWORD_ONLY]
    about = f"{kind} {spec.name!r}"
    if len(spec.arguments) > len(places):
        argument = spec.arguments[len(places)]
        if "=" in argument:
            raise InputError(f"{about}: options stand in parentheses; write {spec.name}({argument})")
        hint = f"known: {', '.join(known)}" if known else "it has no options"
        raise InputError(f"{about}: {argument!r} is not an option; write key=value; {hint}")
    given: dict[str, str] = dict(zip(places, spec.arguments, strict=False))
    for option, value in spec.options.items():
        if option in given:
            raise InputError(f"{about}: {option!r} is given twice; give it once")
        if option not in known and not takes_any:
            raise InputError(
                f"{about} has no option {option!r}; {suggestion(option, list(known)) if known else 'it has none'}"
            )
        given[option] = value
    values = {o: _convert(about, o, v, known[o].annotation if o in known else str) for o, v in given.items()}
    lacking = [name for name, p in known.items() if p.default is p.empty and name not in values]
    if lacking:
        raise InputError(f"{about} needs {' and '.join(lacking)}; write {spec.name}({lacking[0]}=…)")
    found = factory(**values)
    if not isinstance(found, made):
        raise InputError(f"{about}: its factory gave a {type(found).__name__}, not a {made.__name__}")
    return found


def _convert(about: str, option: str, value: str, kind: Any) -> Any:
    if kind is bool:
        if value.lower() not in _TRUTH:
            raise InputError(f"{about}: {option}={value!r} is not a truth value; write true or false")
        return _TRUTH[value.lower()]
    if kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            raise InputError(f"{about}: {option}={value!r} is not a number") from None
    return value


def defaults_of(factory: Callable[..., object]) -> dict[str, object]:
    """The default of each parameter of ``factory``."""
    return {name: parameter.default for name, parameter in inspect.signature(factory).parameters.items()}

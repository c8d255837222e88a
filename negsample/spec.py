"""The one grammar of everything that is named with options: encoders, metrics, rewards, tables.

``NAME``, ``NAME:ARGUMENT`` (one path, id or file: all that follows), ``NAME(ARGUMENT, key=value, …)``. A value may be such a
specification itself, as in ``cosine(encoder=glove(path=v.txt, unit=word), against=references)``; one with a comma outside
parentheses, or whose own parentheses have no partner, can't be written; ``(a, b)`` is the value ``a, b``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from negsample.errors import InputError
from negsample.registry import Registry, suggestion

M = TypeVar("M")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Spec:
    """What a text says: the name, its arguments, its options, all still strings."""

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

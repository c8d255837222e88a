"""Name → factory, with "did you mean". Third parties add entries through entry points or ``register``.

A built-in entry is a line ``"name": "module:attribute"``, imported only when it is asked for, so that listing the
names costs nothing. An installed package adds one by an entry point in the group ``negsample.<kinds>``, e.g.
``negsample.encoders`` or ``negsample.corpora``.
"""

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

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


def check_keys(given: Iterable[Any], known: Iterable[str], where: str) -> None:
    """InputError for the first key of ``given`` that is not ``known``, with the nearest that is; ``where`` it stands."""
    names = list(known)
    for key in given:
        if key not in names:
            raise InputError(f"{where}: unknown key {key!r}; {suggestion(str(key), names)}")


def distinct(names: list[Any], what: str, advice: str = "give it once") -> list[Any]:
    """Return ``names``. Raises InputError for one that is given twice: ``what`` it is, and ``advice``."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError(f"{what} {name!r} is given twice; {advice}")
    return names

"""A store of what was worked out for things that may come again: what was used longest ago makes room."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key; ``trim`` leaves those used last, whose sizes add up to at most ``most`` (each counts 1 by default)."""

    def __init__(self, most: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self.most, self.used, self._size = most, 0, size
        self.kept: OrderedDict[K, V] = OrderedDict()

    def missing(self, keys: Iterable[K]) -> list[K]:
        """Those of ``keys`` that are not kept, each once, in order."""
        return [key for key in dict.fromkeys(keys) if key not in self.kept]

    def add(self, keys: Iterable[K], values: Iterable[V]) -> None:
        """Keep the value of each key that has none yet."""
        for key, value in zip(keys, values, strict=True):
            if key not in self.kept:
                self.kept[key] = value
                self.used += self._size(value)

    def find(self, keys: Sequence[K]) -> list[V]:
        """The values of ``keys``, in order, all of which are kept."""
        for key in keys:
            self.kept.move_to_end(key)
        return [self.kept[key] for key in keys]

    def values(self, keys: Sequence[K], work: Callable[[list[K]], Iterable[V]]) -> list[V]:
        """The values of ``keys``, in order: those that are not kept are worked out by ``work``, together. Then ``trim``."""
        if new := self.missing(keys):
            self.add(new, work(new))
        found = self.find(keys)
        self.trim()
        return found

    def trim(self, least: int = 0) -> None:
        """Forget what was used longest ago until the rest is small enough, or ``least`` values are left."""
        while self.used > self.most and len(self.kept) > least:
            self.used -= self._size(self.kept.popitem(last=False)[1])

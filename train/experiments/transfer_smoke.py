"""``transfer --smoke``: the same experiment on local stand-ins of its corpora, small enough for a CPU and minutes."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from negsample.train.experiments.smoke import PAIRS, smoke, stand_in_corpora
from negsample.train.experiments.transfer_config import Domain, HeadSetting, TransferConfig

# What a source of ``PAIRS`` pairs has for training at most; sizes are spread over it.
_MOST = int(0.7 * PAIRS)
_LEAST = 4


def small_transfer(config: TransferConfig, say: Callable[[str], None] = print) -> TransferConfig:
    """``config`` with a domain of the sample for each corpus, packaged encoders, few epochs, and small sizes.

    Sources, targets, recipes, heads and the number of sizes stay as they are. ``say`` gets one line that tells every
    change.
    """
    corpora = [name for domain in config.domains.values() for name in _corpora(domain)]
    stands = stand_in_corpora(list(dict.fromkeys(corpora)))
    told = [", ".join(f"{name} → {stand}" for name, stand in stands.items() if name != stand)]
    limits = list(dict.fromkeys(own.data["limit"] for own in config.domains.values()))
    told.append(_change("limit", limits[0] if len(limits) == 1 else limits, PAIRS))

    def domain(own: Domain) -> Domain:
        names = list(dict.fromkeys(stands[name] for name in _corpora(own)))
        data = dict.fromkeys(own.data, None) | {
            "corpus": names[0] if len(names) == 1 else names,
            "limit": PAIRS,
            "on_bad": own.data["on_bad"],
        }
        return Domain(own.name, data)

    def head(own: HeadSetting) -> HeadSetting:
        before = dataclasses.replace(config.train, **own.settings)
        after = smoke(before, say=lambda line: None)
        changed = {
            key: value
            for key, value in after.as_dict().items()
            if value != getattr(before, key) and key not in own_data
        }
        sizes = _small_sizes(own.sizes) if own.sizes else None
        changes = [_change(key, getattr(before, key), value) for key, value in changed.items()]
        changes.append(_change("sizes", own.sizes, sizes, unset="all"))
        if any(changes):
            told.append(f"{own.label}: {', '.join(filter(None, changes))}")
        return HeadSetting(own.label, {**own.settings, **changed}, sizes)

    own_data = {key for entry in config.domains.values() for key in entry.data}
    small = dataclasses.replace(
        config,
        sources={name: domain(own) for name, own in config.sources.items()},
        targets={name: domain(own) for name, own in config.targets.items()},
        heads=tuple(head(own) for own in config.heads),
        sizes=_small_sizes(config.sizes),
        few_shot=tuple(size or 0 for size in _small_sizes(config.few_shot)),
        seeds=config.seeds[:1],
    )
    told += [
        _change("sizes", config.sizes, small.sizes, unset="all"),
        _change("few_shot", config.few_shot, small.few_shot),
        _change("seeds", config.seeds, small.seeds),
    ]
    say(f"smoke run, figures mean nothing: {'; '.join(filter(None, told)) or 'all is small already'}")
    return small


def _change(key: str, before: Any, after: Any, unset: str = "(unset)") -> str:
    """``key before → after``; "" where they are the same. None is shown as ``unset``."""

    def shown(value: Any) -> str:
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(shown, value))}]"
        return unset if value is None else str(value)

    return "" if before == after else f"{key} {shown(before)} → {shown(after)}"


def _corpora(domain: Domain) -> list[str]:
    corpus: Any = domain.data["corpus"]
    return [corpus] if isinstance(corpus, str) else list(corpus)


def _small_sizes(sizes: Sequence[int | None]) -> tuple[int | None, ...]:
    """As many different sizes, in the same order of magnitude among themselves, up to what a stand-in has."""
    known = sorted({size for size in sizes if size is not None})
    step = max(1, (_MOST - _LEAST) // max(1, len(known) - 1)) if len(known) > 1 else 0
    small = {size: _LEAST + place * step for place, size in enumerate(known)}
    return tuple(None if size is None else min(size, small[size]) for size in sizes)

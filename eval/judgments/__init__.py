"""People's judgments of summaries: one loader a published data set, and the project's own layout.

``FILE`` is the project's own layout (``files``); ``NAME:PATH`` a published one, ``NAME`` from ``JUDGMENTS``.
"""

from collections import Counter
from pathlib import Path

from negsample.errors import InputError
from negsample.eval.judgments.collect import Missing
from negsample.records import Judged
from negsample.registry import Registry

# name → load(path, missing) -> list[Judged]
JUDGMENTS = Registry(
    "judgment",
    {
        "files": "negsample.eval.judgments.files:load",
        "newsroom": "negsample.eval.judgments.newsroom:load",
        "qags": "negsample.eval.judgments.qags:load",
        "realsumm": "negsample.eval.judgments.realsumm:load",
        "summeval": "negsample.eval.judgments.summeval:load",
        "tac2010": "negsample.eval.judgments.tac2010:load",
    },
)

__all__ = ["JUDGMENTS", "Missing", "load_judgments"]


def load_judgments(spec: str, missing: Counter[str]) -> list[Judged]:
    """The judged rows that ``spec`` names: ``FILE``, or ``NAME:PATH`` with NAME from ``JUDGMENTS``.

    What is missing or malformed is counted in ``missing`` by reason (give a ``Missing`` to know the places as well)
    and is not in the result. Every row has at least one human score, and all scores are finite.
    Raises InputError for an unknown name, a missing file or folder, and where not one row is usable.
    """
    name, colon, path = spec.partition(":")
    if not colon or Path(spec).exists():
        name, path = "files", spec
    if not path:
        raise InputError(f"{spec!r}: the path is missing; give {name}:PATH")
    load = JUDGMENTS.get(name)
    if not Path(path).exists():
        raise InputError(f"{path}: no such file or folder; give the path of the {name} judgments")
    # Counted apart first, so that the message below tells of this source alone.
    own = Missing()
    rows: list[Judged] = load(path, own)
    missing.update(own)
    if isinstance(missing, Missing):
        for reason, places in own.places.items():
            missing.places.setdefault(reason, []).extend(places)
    if not rows:
        why = "; ".join(own.lines()[:3]) or "it holds none"
        raise InputError(f"{path}: no usable judgment: {why}")
    return rows

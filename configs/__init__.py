"""Ready-made configurations: one YAML file each, installed with the package and found by name."""

from pathlib import Path

from negsample.errors import InputError
from negsample.registry import suggestion

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of the packaged configurations, sorted: ``["align", "p3_experiment1", …]``."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find_config(name: str | Path) -> Path:
    """The file ``name``; where there is none and ``name`` is a bare word, the packaged configuration of that name.

    Raises InputError, with the nearest names, for a bare word that is neither.
    """
    path = Path(name)
    if path.suffix or len(path.parts) != 1 or path.is_file():
        return path
    if str(name) not in names():
        raise InputError(f"{name}: no such file, and no configuration of that name; {suggestion(str(name), names())}")
    return FOLDER / f"{name}.yaml"

"""YAML files of key: value lines, in which no key is given twice: PyYAML would take the last one without a word."""

from pathlib import Path
from typing import Any

import yaml

from negsample.errors import InputError
from negsample.io.files import failure


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_mapping(path: Path, where: str, hint: str = "must hold key: value lines") -> dict[Any, Any]:
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
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{where}{place}: not valid YAML ({getattr(error, 'problem', error)}); {hint}") from None
    if loaded is not None and not isinstance(loaded, dict):
        raise InputError(f"{where}: {hint}, not {type(loaded).__name__}")
    return loaded or {}

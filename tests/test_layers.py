"""The packages know each other in one direction: data ← models ← train, eval ← rewards ← commands."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# What each layer may import. train and eval do not know each other; commands put them together.
MAY_IMPORT = {
    "data": {"data"},
    "models": {"data", "models"},
    "train": {"data", "models", "train", "configs"},
    "eval": {"data", "models", "eval"},
    # Rewards are made of estimators and metrics, and handed to training by the commands.
    "rewards": {"data", "models", "eval", "rewards"},
    "commands": {"data", "models", "train", "eval", "rewards", "configs", "commands"},
}
# `from negsample import Estimator` is loaded when it is asked for; the others are what `python -m` starts.
ENTRY_POINTS = {"negsample/__init__.py", "negsample/score.py", "train/__main__.py", "train/reinforce/__main__.py"}


def layer_of(module: str) -> str:
    """The layer of a dotted module name below ``negsample``."""
    part = [*module.split("."), ""][1]
    if part in ("models", "train", "eval", "configs", "rewards"):
        return part
    return "commands" if part in ("commands", "engines", "serve", "papers", "cli") else "data"


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of the project, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name


@pytest.mark.parametrize("folder", ["negsample", "models", "train", "eval"])
def test_no_module_imports_from_a_layer_above_its_own(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = []
    for path in files:
        place = path.relative_to(ROOT).as_posix()
        if place in ENTRY_POINTS:
            continue
        own = place.removesuffix(".py").replace("/", ".")
        layer = layer_of(own if folder == "negsample" else f"negsample.{own}")
        for line, module in imported(path):
            if module.split(".")[0] == "negsample" and layer_of(module) not in MAY_IMPORT[layer]:
                wrong.append(f"{place}:{line} ({layer}) imports {module}")
    assert not wrong


def test_the_rule_sees_an_import_in_the_wrong_direction(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import os\ndef f():\n    from negsample.eval.agreement.compare import compare\n")
    assert [module for _, module in imported(path)] == ["os", "negsample.eval.agreement.compare.compare"]
    assert layer_of("negsample.eval.agreement.compare.compare") not in MAY_IMPORT["train"]
    assert layer_of("negsample.io.read") in MAY_IMPORT["train"]

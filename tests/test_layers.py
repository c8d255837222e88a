"""The packages know each other in one direction: data ← models ← train, eval, rewards ← commands; no circle of files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("negsample", "models", "train", "eval")
# What each layer may import. The first five are rooms of negsample/ ("base": its files); train and eval do not know each
# other; commands put them together.
DATA = {"base", "io", "corpora", "negatives", "scoring"}
MAY_IMPORT = {
    "base": {"base"},
    "io": {"base", "io"},
    "corpora": {"base", "io", "corpora"},
    "negatives": {"base", "io", "negatives"},
    "scoring": {"base", "io", "scoring"},
    "models": {*DATA, "models"},
    "train": {*DATA, "models", "train", "configs"},
    "eval": {*DATA, "models", "eval"},
    # Rewards are made of estimators and (by their names) metrics, and handed to training by the commands.
    "rewards": {*DATA, "models", "rewards"},
    "commands": {*DATA, "models", "train", "eval", "rewards", "configs", "commands"},
}
# `from negsample import Estimator` is loaded when it is asked for; the others are what `python -m` starts.
ENTRY_POINTS = {"negsample/__init__.py", "negsample/__main__.py"}
# What loads a model knows the kinds of models, and an estimator has loading and tables among its methods.
LOADING = {"negsample.models", *(f"negsample.models.{name}" for name in ("dataframe", "estimator", "fitted", "ready"))}


def layer_of(module: str) -> str:
    """The layer of a dotted module name below ``negsample``."""
    part = [*module.split("."), ""][1]
    if part in MAY_IMPORT or part == "configs":
        return part
    if part == "settings":
        return "io"
    elsewhere = ("pytest_plugin", "summary_quality", "inspect_scorer")
    return "commands" if part in ("serve", "papers", "ray", "cli", *elsewhere) else "base"


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of the project, wherever in the file it stands, but for types alone."""
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        todo += reversed(list(ast.iter_child_nodes(node)))


def modules() -> dict[str, Path]:
    """The files of the package by import name, without those that only start it."""
    found = {}
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        place = path.relative_to(ROOT).as_posix()
        if place not in ENTRY_POINTS:
            name = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            found[name if name.startswith("negsample") else f"negsample.{name}"] = path
    return found


def test_no_module_imports_from_a_layer_above_its_own() -> None:
    wrong, right = [], 0
    for name, path in modules().items():
        for line, module in imported(path):
            if module.split(".")[0] == "negsample" and layer_of(module) not in MAY_IMPORT[layer_of(name)]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({layer_of(name)}) imports {module}")
            right += layer_of(name) == "commands" and layer_of(module) == "eval"
    assert not wrong
    assert right > 10  # which train, say, may not: the rule sees imports, inside of functions as well


def test_no_files_import_each_other_in_a_circle() -> None:
    """Neither at their head nor, to hide it, inside of functions."""
    files = modules()
    graph = networkx.DiGraph()
    for name, path in files.items():
        for _, module in imported(path):
            target = module if module in files else module.rpartition(".")[0]
            if target in files and target != name:
                graph.add_edge(name, target)
    assert len(graph) > 100
    circles = [sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
    assert [circle for circle in circles if not LOADING.issuperset(circle)] == []

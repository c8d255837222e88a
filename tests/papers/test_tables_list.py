"""``negsample tables --list`` and docs/papers.md: the same lines, and every command named is there."""

from fnmatch import fnmatch
from pathlib import Path

from negsample.cli import app, tables
from negsample.commands.tables import paper_rows
from negsample.settings import config_names

DOCS = Path(__file__).parents[2] / "docs" / "papers.md"


def test_the_page_has_a_row_for_each_line_and_no_other() -> None:
    _, _, after = DOCS.read_text(encoding="utf-8").partition("| paper | what |")
    table = after.partition("\n\n")[0].splitlines()[2:]
    shown = [tuple(cell.strip().strip("`") for cell in line.strip("|").split(" | ")) for line in table]
    assert shown == paper_rows()
    assert {len(row) for row in shown} == {5}


def test_every_command_and_configuration_named_exists() -> None:
    verbs = {command.callback.__name__.replace("_", "-") for command in app.registered_commands if command.callback}
    own = {command.callback.__name__.replace("_", "-") for command in tables.registered_commands if command.callback}
    named = [words for row in paper_rows() if (words := row[2].split()) != ["–"]]
    assert {words[0] for words in named} <= verbs | {"tables"}
    assert {words[1] for words in named if words[0] == "tables"} == own
    for words in named:
        if "--config" in words:
            wanted = words[words.index("--config") + 1].replace("CORPUS", "*")
            assert any(fnmatch(name, wanted) for name in config_names()), wanted


def test_the_list_tells_everything(negsample) -> None:
    printed = negsample("tables", "--list").stdout
    for row in paper_rows():
        assert all(cell in printed for cell in row if cell != "–")

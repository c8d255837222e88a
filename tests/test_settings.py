"""The reader of settings: types, ranges, YAML files and ``key=value`` words."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from negsample.errors import InputError
from negsample.settings import (
    FOLDER,
    Settings,
    config_names,
    convert,
    find_config,
    make_settings,
    number,
    read_file,
    read_settings,
    read_words,
)


@dataclass(frozen=True)
class Tea(Settings):
    leaves: str | list[str] = "green"
    minutes: float = number(3.0, above=0, below=60)
    cups: int | None = number(None, least=1, most=9)
    sugar: Literal["no", "one"] = "one"
    days: tuple[int, ...] = ()
    milk: bool = False

    def check(self) -> None:
        if self.milk and self.leaves == "green":
            raise InputError("milk: not with green leaves")


@pytest.mark.parametrize(
    ("value", "kind", "made"),
    [
        ("3e-5", float | None, 3e-5),
        (2, float, 2.0),
        (2, int | float, 2),
        (0.5, int | float, 0.5),
        (5, str, "5"),
        ("no", bool, False),
        ("yes", Literal["no", "yes"] | None, "yes"),
        (None, int | None, None),
        (["a", "b"], str | list[str], ["a", "b"]),
        ({"a": 1}, str | dict[str, float], {"a": 1}),
        (3, tuple[int, ...], (3,)),
        ([3, None], tuple[int | None, ...], (3, None)),
        ([1, "x"], Any, [1, "x"]),
    ],
)
def test_values_are_made_of_what_yaml_reads(value, kind, made):
    found = convert(value, kind, "x")
    assert (found, type(found)) == (made, type(made))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"sugr": "no"}, "unknown key 'sugr'; did you mean sugar?"),
        ({"minutes": 0}, "minutes must be above 0, not 0.0"),
        ({"minutes": 60}, "minutes must be below 60"),
        ({"minutes": float("nan")}, "minutes must be a number"),
        ({"minutes": 10**400}, "minutes must be a number"),
        ({"minutes": True}, "minutes must be a number, not True"),
        ({"cups": 0}, "cups must be at least 1"),
        ({"cups": 10}, "cups must be at most 9"),
        ({"cups": 1.5}, "cups must be a whole number or null, not 1.5"),
        ({"sugar": "two"}, "sugar must be no or one, not 'two'"),
        ({"leaves": []}, "leaves must be text or a list"),
        ({"days": [1, "two"]}, "days must be a whole number, not 'two'"),
        ({"milk": True}, "milk: not with green leaves"),
    ],
)
def test_what_is_refused_names_the_place_and_the_key(values, told):
    with pytest.raises(InputError) as error:
        make_settings(Tea, values, "tea.yaml")
    assert str(error.value).startswith("tea.yaml: ")
    assert told in str(error.value)


def test_words_win_over_the_file_and_null_is_the_default(tmp_path):
    path = tmp_path / "tea.yaml"
    path.write_text("leaves: oolong\nminutes: 4e0\ncups: 2\n")
    made = read_settings(Tea, path, ["minutes=7", "sugar=no", "leaves=[a, b]", "cups=null"], "tea")
    assert made == Tea(["a", "b"], 7.0, None, "no")
    for given in (path, None):  # a word is told by its key, whatever file it stands beside
        with pytest.raises(InputError, match=r"^cups must be at least 1, not 0$"):
            read_settings(Tea, given, ["cups=0"], "tea")
        with pytest.raises(InputError, match=r"^unknown key 'cup'; did you mean cups\?$"):
            read_settings(Tea, given, ["cup=1"], "tea")
    for words, told in ((["cups"], "'cups': expected key=value"), (["cups=1", "cups =2"], "cups is given twice")):
        with pytest.raises(InputError, match=told):
            read_settings(Tea, None, words, "tea")


def test_no_is_a_language_and_keys_are_text(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("sources: {no: a.jsonl, 1: b.jsonl}\ntargets: [no, on]\nmixture: True\n")
    wanted = {"sources": {"no": "a.jsonl", "1": "b.jsonl"}, "targets": ["no", "on"], "mixture": True}
    assert read_file(path) == wanted
    assert read_words(["targets=[no, on]", "milk=false"]) == {"targets": ["no", "on"], "milk": False}
    assert read_words(["corpus=2024-13-45"]) == {"corpus": "2024-13-45"}


def test_wrong_files_and_keys_that_are_given_twice_are_named(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("corpus: x\nhead: fc\nrecipe: {add: 1}\nhead: cnn\n")
    with pytest.raises(InputError, match=r"c\.yaml, line 4: not valid YAML \('head' is given twice\)"):
        read_file(path)
    for text in ("- a\n- b\n", "a: [1\n", "leaves: 2024-13-45\n", "cups: {x: 1}\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"c\.yaml"):
            read_settings(Tea, path, [], "tea")
    with pytest.raises(InputError, match=r"none\.yaml: no such file"):
        read_file(tmp_path / "none.yaml")
    # The same key in another mapping is another key, and one that is merged in may be given again.
    path.write_text("base: &a {add: 1}\nother: {<<: *a, add: 2}\n")
    assert read_file(path) == {"base": {"add": 1}, "other": {"add": 2}}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("sources: {a: a.jsonl}\nheads: [fc]\n", "transfer"),
        ("train: {corpus: a.jsonl}\nspace: {epochs: {low: 1, high: 3}}\n", "tune"),
        ("table: p3-table2\ncorpus: a.jsonl\n", "tables p3-table2"),
        ("corpus: a.jsonl\nencoders: [use]\n", "tables TABLE"),
        ("policy: extract\n", "reinforce"),
    ],
)
def test_a_file_for_another_command_is_told_from_a_slip(tmp_path, text, command):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"c\.yaml: is not for tea .* run negsample {command} --config"):
        read_settings(Tea, path, [], "tea")
    assert read_file(path, command.split()[0])
    path.write_text("heads: fc\n")
    with pytest.raises(InputError, match="unknown key 'heads'"):
        read_settings(Tea, path, [], "tea")


def test_packaged_configurations_are_found_by_name_and_wrong_names_told(tmp_path, monkeypatch):
    assert find_config("sample") == FOLDER / "sample.yaml"
    assert config_names() == sorted(path.stem for path in FOLDER.glob("*.yaml"))
    with pytest.raises(InputError, match=r"did you mean .*p3_experiment1"):
        find_config("p3_experiment")
    # A file of one's own wins over a packaged name, and a path is left as it is.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").write_text("limit: 3\n")
    assert read_file("sample") == {"limit": 3}
    assert str(find_config("x/sample.yaml")) == "x/sample.yaml"
    (tmp_path / "align").mkdir()
    assert find_config("align") == FOLDER / "align.yaml"

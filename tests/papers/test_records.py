"""A table's records and files: the same figures in JSON, CSV and Markdown, printed ones beside them."""

import csv
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from negsample.io.run_record import Stopwatch
from negsample.papers.records import PUBLISHED, Record, Table, beside, markdown, write

RECORDS = (
    Record("a", "r", 0.5, 0.25, 0.75, n=9, mark="*", about={"p": 0.01}),
    Record("a", "s", None, n=9, reason="constant"),
    Record("b|c", "r", -0.125, n=8),
)
PRINTED = (Record("a", "r", printed="0.501*"), Record("z", "r", printed="0.9"), Record("a", "theirs", printed="7"))


def test_printed_figures_stand_beside_measured_ones():
    found = beside(RECORDS, PRINTED)
    assert [record.printed for record in found] == ["0.501*", "", "", "0.9", "7"]
    # Another row of a measured column stands with the rows, a column that was not measured apart.
    assert [record.section for record in found] == ["", "", "", "", PUBLISHED]


def test_files_hold_the_same(tmp_path):
    table = Table(
        "t", "Title", "Somebody 2019, Table 1", beside(RECORDS, PRINTED), not_run={"x": "no file"}, notes=("n",)
    )
    said = []
    (tmp_path / "work").mkdir()
    write(table, tmp_path, Stopwatch(), say=said.append, seed=3)
    text = (tmp_path / "t.md").read_text()
    assert said[0] == text == markdown(table)
    assert r"| a    | 0.500* [0.25, 0.75] (0.501*) | – (constant) |" in text
    assert r"| b\|c | −0.125, n = 8" in text
    assert "Published: Somebody 2019, Table 1" in text
    assert "- x: no file" in text
    found = json.loads((tmp_path / "t.json").read_text())["records"]
    assert found[0] == {
        "row": "a", "column": "r", "value": 0.5, "low": 0.25, "high": 0.75, "n": 9, "printed": "0.501*", "mark": "*", "p": 0.01,
    }  # fmt: skip
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, record in zip(rows, found, strict=True):
        assert {key: value for key, value in row.items() if value} == {
            k: str(v) for k, v in record.items() if v is not None
        }
    assert json.loads((tmp_path / "run.json").read_text())["seed"] == 3
    assert not (tmp_path / "work").exists()


@given(
    st.lists(st.tuples(*[st.sampled_from("ab")] * 3), unique=True),
    st.lists(st.tuples(*[st.sampled_from("abc")] * 3), unique=True),
)
def test_nothing_is_lost_or_made_by_printing(measured, printed):
    records = [Record(row, column, math.pi, section=section) for section, row, column in measured]
    theirs = [Record(row, column, section=section, printed="1") for section, row, column in printed]
    found = beside(records, theirs)
    assert [record.place for record in found[: len(records)]] == measured
    assert sum(record.printed == "1" for record in found) == len(printed)

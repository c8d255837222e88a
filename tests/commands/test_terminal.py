"""What commands tell, on terminals of every kind, or on none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests_support import command_line

from negsample.terminal import readable

RECORD = {"id": "a\ud800", "document": "A cat sat on the mat.", "summary": "A “cat” sat – 猫\x1b[2J\u202e."}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + json.dumps({**RECORD, "summary": "a b"}) + "\n")
    return path


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "A “cat” sat – 猫"), ("latin-1", 'A "cat" sat - ?'), ("cp1252", "A “cat” sat – ?"), ("ascii", 'A "cat" sat - ?')],
)  # fmt: skip
def test_what_an_encoding_lacks_is_replaced(records: Path, encoding: str, shown: str) -> None:
    done = command_line("score", "--metric", "words", records, encoding=encoding)
    line = done.stdout.splitlines()[1]
    assert line.split()[0] == "a?"
    # What steers a terminal is shown, not done.
    assert shown + "\\x1b[2J\\u202e." in line
    assert "Usage" in command_line("score", "--help", encoding=encoding).stdout


def test_control_characters_are_shown_as_escapes() -> None:
    assert readable("a\tb\n\x07\x1b]0;x\x9c\r\u2028é猫\u200d") == "a\tb\n\\x07\\x1b]0;x\\x9c\\r\\u2028é猫\u200d"


@pytest.mark.parametrize("closed", ["1>&-", "0<&- 1>&- 2>&-"])
def test_without_output_or_error_a_command_does_its_work(records: Path, tmp_path: Path, closed: str) -> None:
    command = f"{sys.executable} -m negsample.cli score --metric words {records} -o out.jsonl {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    # No file comes to stand where standard output was, and is written into.
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["score"] for line in lines] == [6.0, 2.0]


def test_records_on_standard_output_are_alone_there_without_standard_error(records: Path) -> None:
    command = f"{sys.executable} -m negsample.cli score --metric words {records} -o - 2>&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert [json.loads(line)["score"] for line in done.stdout.splitlines()] == [6.0, 2.0]


COMPARED = [
    {"document_id": str(number), "document": "A cat sat.", "system": system, "summary": "a " * (number + longer)}
    for number in range(1, 5)
    for longer, system in enumerate("pq")
]


@pytest.mark.parametrize(("where", "code"), [("| true", 141), ("> /dev/full", 2)])
def test_where_it_can_not_be_shown_it_is_written(tmp_path: Path, where: str, code: int) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in COMPARED))
    command = f"{sys.executable} -m negsample.cli compare in.jsonl --metric words --bootstrap 0 --out out {where}"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr.count("\n") == (code == 2)
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_page_that_can_not_be_made_takes_nothing_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no font\nfound")

    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in COMPARED))
    monkeypatch.setattr("negsample.eval.report.compare.shared_scale", broken)
    done = command_line(
        "compare", "in.jsonl", "--metric", "words", "--bootstrap", 0, "--out", "out", cwd=tmp_path, check=2
    )
    assert done.stderr == "negsample: report.html can't be made (RuntimeError: no font found); all else is there\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["compare.csv", "compare.json", "run.json"]

"""ASAP essays in Kaggle's layout: the sets that have a sample essay, Latin-1, lengths, scores."""

import csv
import io
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments

HEAD = ["essay_id", "essay_set", "essay", "rater1_domain1", "rater2_domain1", "rater3_domain1", "domain1_score"]
FIVE = 'It was hot. He had no water. The road was long. He said "I\'m lost". Then he found a shop.'


def write(folder: Path, rows: list[list[str]]) -> Path:
    """The table, and a sample essay of set 3."""
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\r\n").writerows([HEAD, *rows])
    (folder / "references").mkdir()
    (folder / "training_set_rel3.tsv").write_bytes(stream.getvalue().encode("cp1252"))
    (folder / "references" / "3.txt").write_bytes("The setting is cruel – and\nthe rider thirsts.\n".encode("cp1252"))
    return folder


def test_rows(tmp_path: Path) -> None:
    rows = [
        ["5978", "3", FIVE.replace("shop", "café"), "1", "2", "", "2"],
        ["5979", "3", "Too short. Really.", "0", "0", "", "0"],
        ["5980", "3", FIVE * 4, "3", "3", "", "3"],
        ["5981", "3", FIVE, "1", "1", "", ""],
        ["1", "1", FIVE, "4", "4", "", "8"],
    ]
    folder = write(tmp_path, rows)
    unusable = Unusable()
    (row,) = load_judgments(f"asap:{folder}", unusable)
    assert (row.document_id, row.system, row.dataset) == ("5978", "student", "asap-3")
    assert row.summary == FIVE.replace("shop", "café")
    assert row.scores == {"score": 2.0}
    assert row.ratings == {"score": (1.0, 2.0, None)}
    assert row.references == row.documents == ("The setting is cruel – and the rider thirsts.",)
    assert unusable == {"an essay that is not of 5 to 15 sentences": 2, "no usable human score": 1}
    (folder / "references" / "3-second.txt").write_text("Another sample.", encoding="utf-8")
    (both,) = load_judgments(f"asap:{folder / 'training_set_rel3.tsv'}")
    assert both.references == ("Another sample.", "The setting is cruel – and the rider thirsts.")


def test_another_layout_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match=r"training_set_rel3\.tsv: no such file"):
        load_judgments(f"asap:{tmp_path / 'a'}")
    folder = write(tmp_path, [["1", "3", FIVE, "1", "1", "", "1"]])
    table = (folder / "training_set_rel3.tsv").read_text(encoding="cp1252")
    (folder / "training_set_rel3.tsv").write_text(table.replace("domain1_score", "grade"), encoding="cp1252")
    with pytest.raises(InputError, match="no column 'domain1_score' in its first line"):
        load_judgments(f"asap:{folder}")
    (folder / "references" / "3.txt").unlink()
    with pytest.raises(InputError, match=r"no sample essay; put one there as SET\.txt"):
        load_judgments(f"asap:{folder}")

"""DUC 2001 and 2002 on directories of the project's own making: coverage, references, both packings, what is missing."""

from pathlib import Path

import duc_maker as maker
import pytest

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments


@pytest.mark.parametrize("year", [2001, 2002])
@pytest.mark.parametrize("packed", [False, True])
def test_rows(year: int, packed: bool, tmp_path: Path) -> None:
    unusable = Unusable()
    rows = load_judgments(f"duc{year}:{maker.make_duc(tmp_path, year, packed=packed)}", unusable)
    assert not unusable
    assert len(rows) == 15
    assert {row.system for row in rows} == set(maker.SYSTEMS)
    (row,) = (row for row in rows if (row.document_id, row.system) == ("AP880911-0016", "19"))
    assert row.summary == "The ferry opened in spring.\nThe ferry was paid for by the town."
    assert row.scores == {"coverage": 0.5}
    # The judge's model is A's; B's summary is none, though B wrote of the article too.
    assert row.references == ("Writer A says the ferry opened in spring and was paid for by the town.",)
    assert row.documents[0].split("\n") == [
        "The ferry opened in spring.",
        "The ferry was paid for by the town.",
        "The ferry cost less than planned.",
        "The ferry will be mended every year.",
        "A & B said so.",
    ]
    assert row.dataset == f"duc{year}"


def test_coverage_of_2001_is_the_mean_of_the_units_expressed(tmp_path: Path) -> None:
    # 3, 1, 0 and 4 of 4: by hand (3 + 1 + 0 + 4) / 16.
    line = b"D061 P AP880911-0016 100 J A A 19 3 2 2 0 5 0 4 2 1 1 3 1 1 1 1 0 0 - 1 4 1\n"
    folder = maker.make_duc(tmp_path, 2001, changes={"results/results1_table.txt": line})
    (row,) = load_judgments(f"duc2001:{folder}")
    assert row.scores == {"coverage": 0.5}
    assert row.system == "19"


def test_what_is_missing_is_counted_by_name(tmp_path: Path) -> None:
    files = maker.files(2002)
    table = files["results/phase1/short.results.table"].decode().splitlines()
    broken = [line[: len(line) - 6] if " 30 " in line and "D061" in line else line for line in table]
    # Said twice, and said otherwise.
    again = table[-2].split()
    broken += [table[-2], " ".join([*again[:27], "0.9", *again[28:]])]
    changes: dict[str, bytes | None] = {
        "results/phase1/short.results.table": "\n".join(broken).encode(),
        "results/SEEpeers/D062.P.100.J.15.WSJ880912-0064.html": None,
        "docs.with.sentence.breaks/d063j/FT923-5089.S": b"<DOC></DOC>",
        "extracts_abstracts/d061ja/perdocs": b"<SUM DOCREF='AP880911-0016'></SUM>",
    }
    unusable = Unusable()
    rows = load_judgments(f"duc2002:{maker.make_duc(tmp_path, 2002, changes=changes)}", unusable)
    assert unusable == {
        "a human summary without DOCREF, SUMMARIZER or text": 1,
        "a line of results with another number of columns": 1,
        "other results of a summary again (the first are kept)": 1,
        "results without a summary": 1,
        "results whose article has no text": 5,
        "the model's writer has no summary of the article (all others are its references)": 4,
    }
    assert len(rows) == 8
    assert rows[0].references == ("Writer B says the ferry opened in spring and was paid for by the town.",)


def test_another_layout_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match=r"no line of single-document results in DUC2002's layout \(a file named …table…"
    ):
        load_judgments(f"duc2002:{tmp_path / 'empty'}")
    with pytest.raises(InputError, match="no line of single-document results in DUC2001's layout"):
        load_judgments(f"duc2001:{maker.make_duc(tmp_path / 'other', 2002)}")

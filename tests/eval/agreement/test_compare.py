"""Comparing systems: means and p by hand, missing summaries named, the same from text files and from records."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from negsample.errors import InputError
from negsample.eval.agreement.compare import Settings, SystemComparison, compare, compare_systems
from negsample.io.read import read_rows

# Words of each summary: differences to the first system are 2, 1, 3, 2, 1, 2, 1 and 0, 1, −1, 0, 0, 0, 0.
FIRST = (3, 4, 3, 5, 4, 3, 4)
BETTER = (5, 5, 6, 7, 5, 5, 5)
SAME = (3, 5, 2, 5, 4, 3, 4)


def lines(path: Path, counts: Sequence[int], word: str = "word") -> str:
    """A text file whose lines have that many words."""
    path.write_text("".join(" ".join([word] * count) + "\n" for count in counts), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A source and three systems."""
    return {
        "source": lines(tmp_path / "test.source", range(10, 17), "document"),
        "first": lines(tmp_path / "first.hypo", FIRST),
        "better": lines(tmp_path / "better.hypo", BETTER),
        "same": lines(tmp_path / "same.hypo", SAME),
    }


def settings(files: dict[str, str], **changes: object) -> Settings:
    """The three systems by number of words."""
    values = {
        "metrics": ("words",),
        "source": files["source"],
        "targets": (files["first"], files["better"], files["same"]),
        **changes,
    }
    return Settings(**values)  # type: ignore[arg-type]


def records(**changes: Sequence[int]) -> list[dict]:
    """The same three systems as records."""
    systems = {"first": FIRST, "better": BETTER, "same": SAME, **changes}
    return [
        {"document": f"document {d}", "system": name, "summary": " ".join(["word"] * counts[d])}
        for name, counts in systems.items()
        for d in range(len(counts))
    ]


def write(path: Path, rows: Sequence[dict]) -> str:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_means_differences_p_and_ranks_by_hand(files: dict[str, str]) -> None:
    result = compare(settings(files))
    (section,) = result.sections
    first, better, same = section.systems
    assert (first.mean, first.difference, first.p) == (pytest.approx(26 / 7), None, None)
    assert better.difference == pytest.approx(12 / 7)
    # All seven differences have one sign: of the 2⁷ patterns of signs two are as far from 0.
    assert better.p == pytest.approx(2 / 128)
    assert better.p_holm == pytest.approx(4 / 128)
    # +1 and −1 cancel, so every pattern is at least as far from 0.
    assert (same.difference, same.p, same.p_holm) == (pytest.approx(0), 1.0, 1.0)
    # Seven documents are too few for an interval, and so for a p of resamples.
    assert (better.low, better.difference_low, better.p_bootstrap) == (None, None, None)
    # Over all three pairs: first–better 2/128 × 3 ≤ 0.05; better–same has a 0 among its seven differences, so that
    # 4 patterns of 128 are as far from 0, and 4/128 × 2 > 0.05: the data can't tell these two apart.
    assert [s.rank for s in section.systems] == [2, 1, 1]
    row, gap = section.different[files["better"]][0]
    assert (result.systems.documents[section.documents[row]], gap) == ("3", 3.0)
    assert [gap for _, gap in section.different[files["same"]]] == [1.0, -1.0]


def test_records_and_text_files_give_the_same(files: dict[str, str], tmp_path: Path) -> None:
    by_lines = compare(settings(files)).sections[0].systems
    path = write(tmp_path / "all.jsonl", records())
    by_records = compare(Settings(metrics=("words",), inputs=(path,))).sections[0].systems
    assert [(s.mean, s.p, s.rank, s.low) for s in by_lines] == [(s.mean, s.p, s.rank, s.low) for s in by_records]
    # A file a system, another baseline, document ids in place of texts.
    rows = [
        {"system": row["system"], "summary": row["summary"], "document_id": int(row["document"].split()[1])}
        for row in records()
    ]
    names = ("first", "better")
    paths = tuple(write(tmp_path / f"{name}.jsonl", [row for row in rows if row["system"] == name]) for name in names)
    result = compare(Settings(metrics=("words",), inputs=paths, baseline="better"))
    assert (result.systems.names, result.systems.documents[0]) == (("better", "first"), "0")
    assert result.sections[0].systems[1].difference == pytest.approx(-12 / 7)


def test_missing_summaries_are_named_with_counts(tmp_path: Path) -> None:
    rows = [{**row, "document_id": f"d{row['document'].split()[1]}"} for row in records()]
    rows = [row for row in rows if (row["system"], row["document_id"]) not in (("better", "d1"), ("better", "d4"))]
    path = write(tmp_path / "all.jsonl", rows)
    with pytest.raises(InputError, match=r"'better' lacks 2 of 7 documents \(d1, d4\).*--on-bad skip"):
        compare(Settings(metrics=("words",), inputs=(path,)))
    result = compare(Settings(metrics=("words",), inputs=(path,), on_bad="skip"))
    assert result.systems.documents == ("d0", "d2", "d3", "d5", "d6")
    assert sum(result.systems.left_out.values()) == 2
    assert result.sections[0].systems[1].documents == 5


def test_undefined_scores_stop_or_are_left_out_for_all(tmp_path: Path) -> None:
    # copied(n=3) is undefined for a summary of fewer than three words.
    path = write(tmp_path / "all.jsonl", records(same=(3, 2, 3, 3, 3, 3, 3)))
    with pytest.raises(InputError, match="fewer than 3 words"):
        compare(Settings(metrics=("copied(n=3)",), inputs=(path,)))
    result = compare(Settings(metrics=("copied(n=3)", "words"), inputs=(path,), on_bad="skip"))
    copied, words = result.sections
    assert (copied.systems[0].documents, words.systems[0].documents) == (6, 7)
    assert sum(copied.left_out.values()) == 1


def test_lines_must_correspond(files: dict[str, str], tmp_path: Path) -> None:
    short = lines(tmp_path / "short.hypo", FIRST[:5])
    with pytest.raises(InputError, match=r"short.hypo"):
        compare(settings(files, targets=(files["first"], short)))
    with pytest.raises(InputError, match="given twice"):
        compare(settings(files, targets=(files["first"], files["first"])))
    blank = lines(tmp_path / "blank.hypo", (3, 0, 3, 3, 3, 3, 3))
    with pytest.raises(InputError, match=r"blank.hypo, line 2: the line is blank"):
        compare(settings(files, targets=(files["first"], blank)))
    result = compare(settings(files, targets=(files["first"], blank), on_bad="skip"))
    assert result.systems.documents == ("1", "3", "4", "5", "6", "7")


def test_references_are_read_line_by_line(files: dict[str, str], tmp_path: Path) -> None:
    reference = lines(tmp_path / "test.target", (6, 6, 6, 6, 6, 7, 6))
    result = compare(settings(files, metrics=("rouge1(value=recall)",), references=(reference,)))
    # min(words, words of the reference) / words of the reference.
    expected = sum(min(b, r) / r for b, r in zip(BETTER, (6, 6, 6, 6, 6, 7, 6), strict=True)) / 7
    assert result.sections[0].systems[1].mean == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*records(), records()[0]], "again"),
        ([*records(), {"system": "first", "document": "x", "document_id": "d", "summary": " "}], "'summary' is blank"),
        ([{**row, "document_id": "d"} for row in records()], "has another text than before"),
        ([{key: row[key] for key in ("document", "summary")} for row in records()], "no field 'system'"),
        (records()[:7], r"one system \(first\)"),
        (
            [{key: row[key] for key in ("system", "summary")} for row in records()],
            "no field 'document_id' or 'document'",
        ),
        ([{**row, "document_id": "d", "document": 1.5} for row in records()], "'document'"),
    ],
)
def test_wrong_records_are_named(tmp_path: Path, rows: list[dict], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(Settings(metrics=("words",), inputs=(write(tmp_path / "all.jsonl", rows),)))


def test_the_command_prints_and_writes(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from negsample.cli import main

    out = tmp_path / "out"
    with pytest.raises(SystemExit) as end:
        main(
            [
                *("compare", "--metric", "words", "--metric", "tf-recall", "-s", files["source"]),
                *("-t", files["first"], files["better"], files["same"], "--out", str(out)),
            ]
        )
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "differs most on: 3 (3.000)" in printed
    assert {path.name for path in out.iterdir()} == {"compare.json", "compare.csv", "report.html", "run.json"}
    plain = json.loads((out / "compare.json").read_text())
    assert [section["metric"] for section in plain["sections"]] == ["words", "tf-recall"]
    assert plain["sections"][0]["signature"].startswith("metric:words|")
    rows = [row.fields for row in read_rows(out / "compare.csv")]
    assert [(row["metric"], row["rank"]) for row in rows[:3]] == [("words", "2"), ("words", "1"), ("words", "1")]


# --- the tests


def differences(scores: np.ndarray, **options: int) -> list[SystemComparison]:
    """The systems a, b, … by their columns."""
    return compare_systems(scores, "abcd"[: scores.shape[1]], **options)


def test_exact_p_does_not_depend_on_the_scale():
    scores = np.array([[0.0, 1], [0, 2], [0, 3], [0, -0.5]])
    for size in (1e-12, 1.0, 1e12):
        # |sum| ≥ 5.5: +1+2+3−.5 and +1+2+3+.5 and their opposites, 4 of 16.
        assert differences(scores * size)[1].p == 0.25


def test_ranks_with_ties():
    rng = np.random.default_rng(1)
    base = rng.random(80)
    up, up_too = base + 1 + 0.1 * rng.normal(size=(2, 80))
    scores = np.stack([base, up, up_too, base - 1], axis=1)
    found = compare_systems(scores, ["base", "up", "up too", "down"])
    # Two better ones that can't be told apart, then the base, then one that all three beat.
    assert [(f.system, f.rank) for f in found] == [("base", 3), ("up", 1), ("up too", 1), ("down", 4)]
    # Their differences are 0 in every resample, which gives no interval.
    equal = compare_systems(np.tile(base[:, None], (1, 3)), ["a", "b", "c"])
    assert [(f.rank, f.p, f.difference_low) for f in equal] == [(1, None, None), (1, 1.0, None), (1, 1.0, None)]


def test_bootstrap_interval_against_the_normal_law():
    scores = np.random.default_rng(2).normal(size=(2000, 2))
    found = differences(scores, bootstrap=2000, permutations=1000)[1]
    difference = scores[:, 1] - scores[:, 0]
    half = 1.96 * difference.std(ddof=1) / np.sqrt(2000)
    assert found.difference_low == pytest.approx(difference.mean() - half, abs=0.1 * half)
    assert found.difference_high == pytest.approx(difference.mean() + half, abs=0.1 * half)
    half = 1.96 * scores[:, 1].std(ddof=1) / np.sqrt(2000)
    assert found.low == pytest.approx(scores[:, 1].mean() - half, abs=0.1 * half)
    # Many documents: the permutation test is the t test.
    assert found.p == pytest.approx(stats.ttest_rel(scores[:, 1], scores[:, 0])[1], abs=0.04)


def test_holm_over_the_systems():
    scores = np.array([[0.0, 1, -1], [0, 2, 2], [0, 3, 0.5], [0, 4, 1]])
    found = differences(scores)
    raw = [f.p for f in found[1:]]
    assert raw[0] == 2 / 16
    smaller, larger = sorted(raw)
    assert sorted(f.p_holm for f in found[1:]) == [2 * smaller, max(2 * smaller, larger)]

"""Choices between two summaries: shares and strengths by hand; what is too little is told in a line."""

import json
from pathlib import Path

import numpy as np
import pytest

from negsample.eval.agreement import columns
from negsample.eval.agreement.correlate import Measured, Settings, correlate
from negsample.eval.agreement.levels import judged_table
from negsample.eval.agreement.shares import CHOICE, contest
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.report.correlate import agreement_json, correlation_page

DOCUMENT = "Nobody mended the gate of the old harbour in spring."
# Of each document: words of a and b, and the choices. By words, b is ahead in d0, a in d1, neither in d2, a in d3.
PAIRS = {
    "d0": (2, 5, ["b", "b", "a"]),
    "d1": (6, 3, ["b", "b", "tie"]),
    "d2": (4, 4, ["a", "tie", "a"]),
    "d3": (7, 2, ["a", "b", "tie"]),
}


@pytest.fixture(autouse=True)
def _no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BASELINES", ("words", "copied"))


def records(pairs: dict = PAIRS) -> list[dict]:
    """One record a choice; a person who reads d1 sees its summaries the other way round every second time."""
    found = []
    for document, (a, b, choices) in pairs.items():
        texts = "a" + " one" * (a - 1), "b" + " two" * (b - 1)
        for k, choice in enumerate(choices):
            sides = {"a": texts[0], "b": texts[1], "system_a": "old", "system_b": "new", "choice": choice}
            if document == "d1" and k % 2:
                sides = {"a": texts[1], "b": texts[0], "system_a": "new", "system_b": "old"}
                sides["choice"] = {"a": "b", "b": "a"}.get(choice, choice)
            found.append({"doc_id": document, "document": DOCUMENT, "annotator": str(k), **sides})
    return found


def measured(path: Path, rows: list[dict], **changes: object) -> Measured:
    """What is found of the choices, written at ``path``."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = correlate(Settings(**{"judgments": (str(path),), "bootstrap": 0, **changes}))  # type: ignore[arg-type]
    assert ("Choices <span" in correlation_page(result)) == bool(result.datasets[0].share_lines("chosen"))
    json.dumps(agreement_json(result), allow_nan=False)
    return result.datasets[0]


def test_shares_by_hand(tmp_path: Path) -> None:
    data = measured(tmp_path / "c.jsonl", records(), bootstrap=50)
    # Most people: b, b, a, tied. Words: right, wrong, ½ (equal).
    # Votes: d0 2 of 3, d1 0 of 2, d2 ½ of each of 2, d3 1 of 2; ties 1 + 1 + 1.
    expected = [1.5 / 3, 2 / 4, (2 + 0 + 1 + 1) / 9, (4 + 1.5) / 12]
    found = [data.figure("chosen", "words", "choice", name) for name in CHOICE.names]
    np.testing.assert_allclose([figure.value for figure in found], expected)
    assert [(f.n, f.documents, f.systems) for f in found] == [(4, 4, 2)] * 4
    # Every summary, by how many of its comparisons it won: of d1 "old" none of 3, a tie half.
    assert {(row.document_id, row.system): row.scores["chosen"] for row in data.source.rows}["d1", "old"] == 0.5 / 3
    (compared,) = [c for c in data.comparisons if c.level == "choice"]
    assert compared.value_first == found[0].value
    # One against most of the others, where its own choice is none: d0 ½ ½ 0, d1 1 1, d2 1 1, d3 0 0. Krippendorff's α by the
    # coincidences: 4 pairs of 3, each with 1/2 of the ordered pairs of its values; see below.
    assert "4 pairs, 12 choices, 3 of them ties" in data.shares["chosen"].how
    assert "most of the others in 0.556" in data.shares["chosen"].how  # (1 + 2 + 2 + 0) of 9
    # n = 12 of values old 4, new 5, tie 3. Ordered pairs that differ, over 2 (m − 1): d0 4/2, d1 4/2, d2 4/2, d3 6/2: Do = 9/12.
    # De = (12² − 4² − 5² − 3²)/(12·11) = 94/132. α = 1 − .75·132/94 = −.053
    assert "Krippendorff's α −0.053" in data.shares["chosen"].how


def test_strengths_are_log_odds_and_those_of_a_known_table(tmp_path: Path) -> None:
    data = measured(tmp_path / "c.jsonl", records(), bootstrap=30)
    # old: 1 + 0 + 2 + 1 wins, new: 2 + 2 + 0 + 1, ties 3 of half a win each.
    by = {each.system: each for each in data.contest}
    assert (by["old"].wins, by["old"].losses, by["old"].ties) == (4, 5, 3)
    assert by["new"].strength - by["old"].strength == pytest.approx(np.log(6.5 / 5.5), abs=1e-4)
    # Three systems whose wins are as strengths 1 : 2 : 4 have it: a–b 2:4, b–c 3:6, a–c 2:8.
    won = {("a", "b"): (2, 4), ("b", "c"): (3, 6), ("a", "c"): (2, 8)}
    rows = [
        {
            "doc_id": f"{one}{two}",
            "document": DOCUMENT,
            "system_a": one,
            "system_b": two,
            "a": one,
            "b": two,
            "choice": side,
        }
        for (one, two), counts in won.items()
        for side, count in zip("ab", counts, strict=True)
        for _ in range(count)
    ]
    (tmp_path / "three.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = load_judgments(str(tmp_path / "three.jsonl"))
    found = contest(judged_table("three", judged, [], {}), judged, bootstrap=0, seed=0)
    assert [each.system for each in found] == ["c", "b", "a"]
    np.testing.assert_allclose([each.strength for each in found], np.log(2) * np.array([1, 0, -1]), atol=1e-3)


def test_who_wrote_a_summary_need_not_be_known(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if not key.startswith("system")} for row in records()]
    data = measured(tmp_path / "c.jsonl", rows)
    assert data.contest == ()
    assert data.figure("chosen", "words", "choice", "majority").value == 0.5


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ({"d0": (2, 5, ["tie", "tie"]), "d1": (3, 2, ["tie"])}, "choice level: people are tied on every pair"),
        ({"d0": (2, 5, ["b"])}, "pooled level: 2 rows have both scores"),
        ({"d0": (2, 5, ["b"]), "d1": (3, 2, ["b"])}, "summary level: no document has three scored summaries"),
    ],
)
def test_too_little_is_told(tmp_path: Path, pairs: dict, told: str) -> None:
    data = measured(tmp_path / "c.jsonl", records(pairs))
    assert [line for line in data.reasons("chosen") if line.startswith(told)]
    if "b" in pairs["d0"][2]:
        assert {each.strength for each in data.contest} == {None}


def test_bad_records_are_counted(tmp_path: Path, negsample) -> None:
    rows = records()
    rows[0]["choice"] = "c"
    rows[1]["b"] = rows[1]["a"]
    rows[2]["document"] = "Another text."
    rows[3]["document"] = "A third one."
    rows[4].pop("a")
    rows[7]["half"] = "tune"
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    unusable = Unusable()
    judged = load_judgments(str(tmp_path / "c.jsonl"), unusable)
    assert unusable == {
        "field 'choice' is none of a, b, tie": 1,
        "a and b are the same text": 1,
        "the document has another text than in an earlier row of its id": 1,
        "the document is of another half than in an earlier row of its id": 1,
        "no field 'a'": 1,
    }
    assert {row.document_id for row in judged} == {"d0", "d1", "d2", "d3"}
    done = negsample("correlate", "--judgments", tmp_path / "c.jsonl", "--metric", "words", "--out", tmp_path / "out")
    assert "people's choices" in done.stdout
    assert "1 × a and b are the same text" in done.stdout

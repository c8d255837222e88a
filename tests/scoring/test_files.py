"""Scoring files: every record back, in order, with its score; bad ones told; nothing half-written."""

import dataclasses
import io
import json
import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from fake_scorer import FakeScorer, Lengths, columns_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from negsample.errors import InputError, RecordError
from negsample.io.read import read_rows
from negsample.io.write import write_table
from negsample.records import Row, joined
from negsample.scoring.files import DEFAULTS, Choice, Settings, best, lines, select_best, table, write_scores
from negsample.scoring.scorer import make_metric
from negsample.scoring.tally import WORTHLESS, Gate, Tally, look, notices, parse_limits, text_kind


def score_table(scorer, source, target=None, settings=Settings()):  # noqa: B008 - it is frozen
    return write_scores(scorer, table(source), target, settings)[source]


def score_lines(scorer, source, systems, target=None, settings=Settings()):  # noqa: B008
    return write_scores(scorer, lines(source, systems), target, settings)


def write(path, records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return str(path)


def read(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


RECORDS = [
    {"id": 7, "document": "a b c", "summary": "a", "extra": {"deep": [1, None]}},
    {"document": "a b c d e f", "summary": "a b c", "score": "old"},
    {"document": "x 😀", "summary": "مرحبا بالعالم", "id": "z"},
]


def test_records_come_back_in_order_with_all_fields(tmp_path):
    tally = score_table(Lengths(), write(tmp_path / "in.jsonl", RECORDS), str(tmp_path / "out.jsonl"))
    out = read(tmp_path / "out.jsonl")
    assert [{**after, "score": round(after["score"], 6)} for after in out] == [
        {**before, "score": score} for before, score in zip(RECORDS, (0.1, 0.3, 0.2), strict=True)
    ]
    assert (tally.n, tally.cut) == (3, 1)


def test_csv_tsv_and_parquet(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text('name,document,summary\r\nα,"a, b","one two"\r\nβ,c,three\r\n', encoding="utf-8-sig")
    score_table(Lengths(), str(source), str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text("utf-8").splitlines() == [
        "name,document,summary,score,reason",
        'α,"a, b",one two,0.2,',
        "β,c,three,0.1,",
    ]
    score_table(Lengths(), str(tmp_path / "out.csv"), str(tmp_path / "out.parquet"))
    score_table(Lengths(), str(tmp_path / "out.parquet"), str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text().splitlines()[2] == "β\tc\tthree\t0.1\t"


BAD = [
    ('{"document": "a", "summary": " "}', "blank"),
    ('{"document": "a", "summary": "b"', "JSON"),
    ('{"document": "a", "summary": "\\ud800"}', "surrogate"),
]


@pytest.mark.parametrize(("line", "told"), BAD)
def test_bad_records(tmp_path, line, told):
    source = tmp_path / "in.jsonl"
    source.write_text('{"document": "a", "summary": "b"}\n' + line + '\n{"document": "c", "summary": "d e"}\n')
    with pytest.raises(RecordError, match=r"in\.jsonl, line 2") as error:
        score_table(Lengths(), str(source), str(tmp_path / "out.jsonl"))
    assert told in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]
    for ending in ("jsonl", "csv"):
        tally = score_table(Lengths(), str(source), str(tmp_path / f"out.{ending}"), Settings(on_bad="skip"))
        assert (tally.n, tally.bad.total()) == (2, 1)
    first, bad, last = read(tmp_path / "out.jsonl")
    assert bad["score"] is None
    assert "line 2" in bad["reason"]
    assert told in bad["reason"]
    assert (first["score"], last["score"]) == (pytest.approx(0.1), pytest.approx(0.2))


def test_other_fields_and_texts_of_any_size(tmp_path):
    source = write(tmp_path / "in.jsonl", [{"text": "a\x00b", "hypothesis": "w" * 100_000, "id": 1}])
    score_table(Lengths(), source, str(tmp_path / "o.csv"), Settings("text", "hypothesis", output_field="words"))
    assert list(next(read_rows(tmp_path / "o.csv")).fields) == ["text", "hypothesis", "id", "words", "words_reason"]


def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for count in (5_000, 20_000):
        source = tmp_path / f"{count}.jsonl"
        with open(source, "w") as stream:
            for number in range(count):
                stream.write(json.dumps({"document": f"{number} " + "word " * 60, "summary": "a b"}) + "\n")
        tracemalloc.start()
        score_table(Lengths(), str(source), str(tmp_path / "o.jsonl"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 200_000


def test_lines_of_several_systems(tmp_path):
    (tmp_path / "src").write_text("a b\na b c d e f\nlast\n")
    (tmp_path / "one").write_text("x\nx y\nx y z\n")
    (tmp_path / "two").write_text("p q r s\r\np\r\nq\r\n")
    names = [str(tmp_path / name) for name in ("one", "two")]
    found = score_lines(Lengths(), str(tmp_path / "src"), names, str(tmp_path / "o.jsonl"))
    assert found[names[0]].mean == pytest.approx(0.2)
    assert found[names[1]].mean == pytest.approx(0.2)
    assert [found[name].cut for name in names] == [1, 1]
    out = read(tmp_path / "o.jsonl")
    assert [(r["document_id"], r["system"], r["summary"]) for r in out[:3]] == [
        ("1", names[0], "x"),
        ("1", names[1], "p q r s"),
        ("2", names[0], "x y"),
    ]


@pytest.mark.parametrize("stdin", [False, True])
def test_lines_that_do_not_match(tmp_path, monkeypatch, stdin):
    (tmp_path / "src").write_text("a\nb\nc\n")
    source = str(tmp_path / "src")
    for text, told in (("x\ny\n", "ends after line 2"), ("x\n" * 4, "src ends after line 3"), ("x\n\nz\n", "line 2")):
        (tmp_path / "short").write_text(text)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        with pytest.raises(InputError) as error:
            score_lines(Lengths(), source, ["-" if stdin else str(tmp_path / "short")], str(tmp_path / "o.jsonl"))
        assert told in str(error.value)
        assert not (tmp_path / "o.jsonl").exists()
    for systems in ([source] * 2, ["-"] * 2):
        with pytest.raises(InputError, match="given twice"):
            score_lines(Lengths(), source, systems)
    out = tmp_path / "o.parquet"
    found = score_lines(Lengths(), source, [str(tmp_path / "short")], str(out), Settings(on_bad="skip"))
    assert (found[str(tmp_path / "short")].n, found[str(tmp_path / "short")].bad.total()) == (2, 1)
    first, bad, _ = [row.fields for row in read_rows(out)]
    assert list(first) == ["document_id", "system", "summary", "score", "reason"]
    assert first["score"] == pytest.approx(0.1)
    assert "short, line 2" in bad["reason"]


TEXTS = {"document": "a", "summary": "b c"}
SHARES = {"form": 0.2, "form_low": 0.1, "form_high": 0.3, "support": 0.4, "support_percentile": 0.5}


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ({"score": None, "reason": "line 1: blank"}, {}),
        ({"score": 0.9, "aspects": {"form": 1}, "intervals": {"form": [0, 1]}}, {}),
        ({"score": 0.9, "percentile": 0.4, **SHARES}, {}),
        # Without a score, or with another one's, they are the user's own; but a reason is what scoring adds.
        ({"aspects": "plot", "note": "a test", "reason": "mine"}, {"aspects": "plot", "note": "a test"}),
        ({"score": 1, "form": 4, "old": 2, "old_form": 3, "old_form_percentile": 1}, None),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_scoring_again_leaves_nothing_of_the_last_time(tmp_path, before, kept, ending):
    write_table(tmp_path / f"in.{ending}", [{**TEXTS, **before}], list({**TEXTS, **before}))
    tally = score_table(Lengths(), str(tmp_path / f"in.{ending}"), str(tmp_path / "out.jsonl"))
    own = {name for name, value in before.items() if value is not None}
    assert set(tally.replaced) == own & {"score", "reason"}
    assert set(tally.removed) == (own - {"score", "reason"} - kept.keys() if kept is not None else set())
    (found,) = read(tmp_path / "out.jsonl")
    kept = before if kept is None else kept
    assert found.keys() == {**TEXTS, **kept, "score": 0}.keys()
    assert found["score"] == pytest.approx(0.2)


def test_the_interval_of_a_mean_is_students_where_nothing_bounds_it():
    rng = np.random.default_rng(1)
    for count in (400, 2600):  # the second has more scores than blocks
        values = rng.normal(0.5, 0.1, count)
        tally = Tally()
        tally.add(columns_of(*values))
        low, high = stats.t.interval(0.95, count - 1, np.mean(values), stats.sem(values))
        assert tally.mean == pytest.approx(np.mean(values))
        assert tally.interval == pytest.approx((low, high), abs=0.1 * (high - low))
        assert len(tally._sums) == min(count, 1000)


@pytest.mark.parametrize("values", [[1.0] * 9 + [0.4], [0.0] * 10 + [0.3], [0.99, 1.0] * 5, [1.0] * 2999 + [0.0]])
def test_the_interval_stays_within_the_scores(values):
    tally = Tally()
    tally.add(columns_of(*values))
    low, high = tally.interval
    assert min(values) <= low <= tally.mean <= high <= max(values)
    for few in ([0.3], [0.3, 0.4] * 4 + [0.5], [0.3] * 20):
        tally = Tally()
        tally.add(columns_of(*few))
        assert tally.interval is None
    assert (Tally().interval, Tally().mean) == (None, None)


NEWS = "The council has voted to close the bridge, which was built by a firm that is no more. They say it would cost too much."
CHAT = "Ann: Shall we go?\nBo: Yes, to the bridge.\nAnn: It is closed."
SPANISH = "El consejo ha votado a favor de cerrar el puente, que fue construido por una empresa que ya no existe. " * 2


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        (NEWS, []),
        (CHAT, ["short turns"]),
        (joined([NEWS, NEWS]), ["several documents"]),
        (SPANISH, ["not English"]),
        # Turns of a meeting, of forty words and more.
        ("\n".join(f"Ann: {NEWS} {NEWS}" for _ in range(2)), []),
    ],
)
def test_kinds_by_hand(document, kinds) -> None:
    assert text_kind(document) == set(kinds)


def test_what_is_left_unread_is_counted_and_most_of_a_kind_is_told() -> None:
    tally, scorer = Tally(), make_metric("words")
    rows = [{"documents": [NEWS, CHAT], "summary": "The council has voted.", "question": "What now?"}]
    rows += [
        {"documents": [NEWS], "summary": "The council has voted.", "question": ""},
        {"document": NEWS, "summary": " "},
    ]
    look([Row("here", row) for row in [*rows, rows[0]]], [1, 1, math.nan, math.nan], scorer, DEFAULTS, tally)
    assert tally.unread == {"a question, which this score does not read": 1, "several documents, read as one text": 1}
    # A record without a score is of no kind.
    assert tally.kinds["all"] == 2
    assert tally.kinds["several documents"] == 1
    look([Row("here", rows[0])], [1], dataclasses.replace(scorer, several=True), DEFAULTS, tally)
    assert tally.unread["several documents, read as one text"] == 1
    look([Row("here", rows[1])] * 300, [1] * 300, scorer, DEFAULTS, tally)
    assert tally.kinds["all"] == 200


def test_domains_that_the_scorer_does_not_know_are_told_apart_up_to_five() -> None:
    tally, scorer = Tally(), make_metric("words")
    said = [
        Row("here", {"document": "a", "summary": "b", "domain": one}) for one in ["nwes", *"abcdef", "NEWS", "", "a"]
    ]
    look(said, [1] * 10, dataclasses.replace(scorer, domains=frozenset(["news"])), DEFAULTS, tally)
    assert tally.domains == {"news": 1, "": 9}
    assert tally.unknown == {"nwes": 1, "a": 2, "b": 1, "c": 1, "d": 1, "…": 2}
    # One that knows none has nothing to be misspelt.
    look(said, [1] * 10, scorer, DEFAULTS, other := Tally())
    assert not other.unknown


def test_one_line_a_kind_and_only_of_aspects_that_there_are() -> None:
    half = Counter({"all": 10} | dict.fromkeys(WORTHLESS, 5))
    assert not list(notices(half, ("support", "form", "coherence", "coverage")))
    more = Counter({"all": 10} | dict.fromkeys(WORTHLESS, 6))
    told = [line.split(" told nothing")[0].split("'")[1:] for line in notices(more, ("coherence", "form", "coverage"))]
    assert told == [
        ["short turns", ", on which form"],
        ["several documents", ", on which coherence and form"],
        ["not English", ", on which coverage"],
    ]
    assert not list(notices(more, ()))


def chosen(*candidates: tuple[str, float | None]) -> list[Choice]:
    values = [math.nan if value is None else value for _, value in candidates]
    records = [{"document": text, "n": n} for n, (text, _) in enumerate(candidates)]
    return best(zip(records, values, strict=True), "document")


def facts(choices: list[Choice]) -> list[tuple]:
    return [(c.record["n"], c.candidates, None if math.isnan(c.margin) else c.margin) for c in choices]


def test_the_highest_of_each_document_with_its_lead() -> None:
    # Documents come back in the order of their first candidate; white space doesn't make another document.
    found = chosen(("a", 0.25), ("b", 0.5), ("a ", 0.75), ("a", 0.5), ("c", 0.5))
    assert facts(found) == [(2, 3, 0.25), (1, 1, None), (4, 1, None)]
    assert facts(chosen(("a", 0.5), ("a", 0.5), ("a", 0.25))) == [(0, 3, 0.0)]
    assert facts(best([({"n": 0}, 0.5), ({"n": 1}, 0.5)], "document")) == [(0, 1, None), (1, 1, None)]


def test_several_documents_are_one_set() -> None:
    rows = [{"documents": ["a", "b"], "n": 0}, {"documents": ["a", "c"], "n": 1}, {"documents": ["a", "b"], "n": 2}]
    assert facts(best(zip(rows, [0.5, 0.5, 0.75], strict=True), "document")) == [(2, 2, 0.25), (1, 1, None)]


def test_what_is_skipped_is_no_candidate_and_what_is_replaced_is_told(tmp_path) -> None:
    rows = [
        {"document": "a", "summary": "x y", "score": 9, "form": 3, "form_percentile": 0.5, "margin": "mine"},
        {"document": "a", "summary": "x"},
        {"document": "a", "summary": "\u200b"},
        {"document": "b", "summary": " "},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scorer = make_metric("words")
    with pytest.raises(RecordError, match="line 3: field 'summary' is blank"):
        select_best(scorer, table(str(tmp_path / "in.jsonl")))
    settings = Settings(on_bad="skip")
    (choice,), tally = select_best(scorer, table(str(tmp_path / "in.jsonl")), settings=settings)
    assert choice.record == {"document": "a", "summary": "x y", "score": 2, "margin": 1, "candidates": 2}
    assert (tally.n, tally.bad) == (2, {"field 'summary' is blank": 2})
    assert (tally.replaced, tally.removed) == ({"score": 1, "margin": 1}, {"form": 1, "form_percentile": 1})
    settings = Settings(on_bad="skip", output_field="w")
    (choice,), tally = select_best(scorer, table(str(tmp_path / "in.jsonl")), settings=settings)
    assert choice.record == {**rows[0], "w": 2, "w_margin": 1, "w_candidates": 2}
    assert not tally.replaced + tally.removed


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), min_size=1))
def test_as_a_sort_of_each_documents_candidates_says(candidates) -> None:
    found = {c.record["document"]: c for c in chosen(*candidates)}
    assert list(found) == list(dict.fromkeys(text for text, _ in candidates))
    for text, choice in found.items():
        own = [(value, n) for n, (name, value) in enumerate(candidates) if name == text]
        order = sorted(own, key=lambda pair: (pair[0] is None, -(pair[0] or 0), pair[1]))
        good = [value for value, _ in order if value is not None]
        assert facts([choice]) == [(order[0][1], len(own), good[0] - good[1] if len(good) > 1 else None)]


class Model(FakeScorer):
    """A score and an aspect between 0 and 1, and a target on people's scale."""

    aspects = ("support", "likert")
    shares = ("score", "support")


def test_limits_as_they_are_written() -> None:
    assert parse_limits(["support=0.4", "7"]) == {"support": 0.4, "score": 7.0}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["supprt=0.4"], "support"),
        (["0.4", "score=0.5"], "score twice"),
        (["much"], "give a number"),
        (["=2"], "give a number"),
        (["support"], "give a number, as in 0.5 or support=0.4"),
        (["0.4=support"], "give a number"),
        (["nan"], "not a finite number"),
        (["likert=inf"], "not a finite number"),
        (["7"], "score=7 is outside"),
        (["support=40"], "support=40 is outside"),
        (["support=-5"], "support=-5 is outside"),
        ([], "no limit"),
    ],
)
def test_limits_that_can_not_be(words: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Gate(parse_limits(words), Model())  # type: ignore[arg-type]


def test_other_scales_have_other_limits() -> None:
    Gate({"likert": 4.5, "support": 1}, Model())  # type: ignore[arg-type]
    Gate({"score": 7}, FakeScorer())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a finite number"):
        Gate({"likert": "4"}, Model())  # type: ignore[arg-type, dict-item]


def failures(limits: dict[str, float], *values: float | None, each: bool = False, systems: str = "") -> list[str]:
    gate = Gate(limits, Model(), each)  # type: ignore[arg-type]
    gate.add([f"line {n + 1}" for n in range(len(values))], columns_of(*values, support=values), [*systems])
    return gate.failures()


def test_where_nothing_was_measured_no_limit_is_held() -> None:
    with pytest.raises(InputError, match="no pair was measured"):
        failures({"score": 0.1})


def test_the_mean_decides_or_every_record_does() -> None:
    values = (0.5, 0.25, 0.75)
    assert failures({"score": 0.5}, *values) == []
    assert failures({"support": 0.5}, *values, each=True) == [
        "1 of 3 records have support under 0.5; lowest: line 2 (0.2500)"
    ]
    assert failures({"score": 0.51}, *values) == [
        "mean score 0.5000, under 0.51; lowest: line 2 (0.2500), line 1 (0.5000), line 3 (0.7500)"
    ]


def test_a_missing_value_is_under_every_limit_and_no_part_of_a_mean() -> None:
    assert failures({"score": 0.4}, None, 0.5) == []
    assert failures({"score": 0.4}, 0.5, None, each=True) == [
        "1 of 2 records have score under 0.4 (1 have none); lowest: line 2 (none)"
    ]
    assert failures({"score": 0.4}, None) == ["mean score is missing, under 0.4 (1 have none); lowest: line 1 (none)"]


def test_ten_lowest_are_named_the_first_of_equal_ones_first() -> None:
    (line,) = failures({"score": 0.9}, *(k % 12 / 100 for k in range(24)))
    named = line.partition("lowest: ")[2].split(", ")
    assert named == [f"line {n} (0.0{k}00)" for k in range(5) for n in (k + 1, k + 13)]


def test_each_system_has_to_hold_it() -> None:
    told = failures({"score": 0.5}, 0.6, 0.2, 0.4, systems="abb")
    assert [line.partition(";")[0] for line in told] == ["b: mean score 0.3000, under 0.5"]

"""Scoring files: every record back, in order, with its score; bad ones told; nothing half-written."""

import io
import json
import tracemalloc

import numpy as np
import pytest
from fake_scorer import Lengths, columns_of
from scipy import stats

from negsample.errors import InputError, RecordError
from negsample.io.read import read_rows
from negsample.io.write import write_table
from negsample.scoring.files import Settings, lines, table, write_scores
from negsample.scoring.tally import Tally


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
    ('{"document": "", "summary": "a"}', "blank"),
    ('{"document": "a"}', "summary"),
    ('{"document": 3, "summary": "a"}', "not text"),
    ('{"document": "a", "summary": "b"', "JSON"),
    ("[1, 2]", "object"),
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


@pytest.mark.parametrize("values", [[1, 1, 1, 0.4], [0, 0, 0.3], [0.99, 1.0], [1.0] * 5, [1.0] * 2999 + [0.0]])
def test_the_interval_stays_within_the_scores(values):
    tally = Tally()
    tally.add(columns_of(*values))
    low, high = tally.interval
    assert min(values) <= low <= tally.mean <= high <= max(values)
    single = Tally()
    single.add(columns_of(0.3))
    assert (single.interval, Tally().mean) == (None, None)

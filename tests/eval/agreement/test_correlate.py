"""Agreement with people from files to folder: the right rows and columns, nothing dropped in silence."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tac2010_maker
from scipy import stats

from negsample.errors import InputError
from negsample.eval.agreement import columns, correlate
from negsample.eval.agreement.columns import score_columns
from negsample.eval.agreement.correlate import Settings
from negsample.eval.agreement.figures import AgreementFigure, furthest_apart
from negsample.eval.agreement.levels import make_table
from negsample.eval.agreement.significance import MetricsComparison, baseline_verdicts, beats_matrix
from negsample.eval.judgments import load_judgments
from negsample.eval.report.correlate import CSV_COLUMNS, agreement_rows, write_correlation
from negsample.io.files import check_new
from negsample.io.read import read_rows
from negsample.io.run_record import Stopwatch
from negsample.records import Judged
from negsample.scoring.scorer import METRICS, Columns, Item, Scorer, collect

PLACES = ("harbour", "orchard", "bridge", "market", "school", "station", "library", "theatre")
THINGS = ("gate", "roof", "clock", "garden", "ledger", "lamp", "stairs")


@pytest.fixture(autouse=True)
def _no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baselines that need no encoder, so that a test takes no minute; ``cosine`` is tested with the metrics."""
    monkeypatch.setattr(columns, "BASELINES", ("words", "copied", "tf-recall", "lead-overlap"))


def judged(documents: int = 8, systems: int = 6, seed: int = 0) -> list[dict]:
    """Rows whose summaries name ever more things of their document; people's scores follow, with noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for d in range(documents):
        things = [f"{THINGS[k]} of the {PLACES[d % 8]}" for k in range(7)]
        document = " ".join(f"The {thing} was mended in spring." for thing in things) + " Nobody paid."
        for s in range(systems):
            named = [things[k] for k in sorted(rng.choice(7, size=s + 1, replace=False))]
            summary = " ".join(f"The {thing} was mended{' well' if rng.random() < 0.4 else ''}." for thing in named)
            rows.append(
                {
                    "dataset": "made",
                    "document_id": f"d{d}",
                    "system": f"s{s}",
                    "document": document,
                    "summary": summary,
                    "references": [f"The {things[0]} and the {things[1]} were mended."],
                    "scores": {"content": round(s + float(rng.normal()), 2), "form": round(float(rng.normal()), 2)},
                }
            )
    return rows


def write(path: Path, rows: Sequence[dict]) -> str:
    """JSON lines at ``path``."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def run(path: Path, rows: Sequence[dict], **changes: object) -> correlate.Correlation:
    """What is found of ``rows``, written at ``path``."""
    return correlate.correlate(Settings(**{"judgments": (write(path, rows),), "bootstrap": 0, **changes}))  # type: ignore[arg-type]


def test_figures_are_of_the_right_rows(tmp_path: Path) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    rows = judged(12)
    rouge = RougeScorer(["rouge1"], use_stemmer=False)
    by = {
        "words": np.array([len(row["summary"].split()) for row in rows], float),
        "rouge1(value=recall)": np.array(
            [rouge.score(row["references"][0], row["summary"])["rouge1"].recall for row in rows]
        ),
        "random": np.random.default_rng(4).random(len(rows)),
    }
    given = [
        {"doc_id": row["document_id"], "system": row["system"], "score": float(value)}
        for row, value in zip(rows, by["random"], strict=True)
    ]
    scores = (f"random={write(tmp_path / 'random.jsonl', given[::-1])}",)
    result = run(tmp_path / "made.jsonl", rows, metrics=("rouge1(value=recall)",), scores=scores, bootstrap=50)
    (data,) = result.datasets
    assert [column.name for column in result.columns][:2] == ["rouge1(value=recall)", "random"]
    # Rows stand document by document, the six systems in order.
    for (metric, x), human in ((pair, human) for pair in by.items() for human in ("content", "form")):
        y = np.array([row["scores"][human] for row in rows])
        tables = x.reshape(12, 6), y.reshape(12, 6)
        value = {level: data.figure(human, metric, level, "pearson").value for level in ("pooled", "summary", "system")}
        assert value["pooled"] == pytest.approx(stats.pearsonr(x, y)[0])
        within = [stats.pearsonr(*pair)[0] for pair in zip(*tables, strict=True) if np.ptp(pair[0])]
        assert value["summary"] == pytest.approx(np.mean(within))
        assert value["system"] == pytest.approx(stats.pearsonr(*(table.mean(axis=0) for table in tables))[0])
    assert all(f.low is not None and f.low <= f.value <= f.high for f in data.figures if f.level == "summary")


def lengths(name: str = "letters", signature: str = "metric:letters") -> tuple[Scorer, Counter[Item]]:
    """A scorer by the length of summary over document, with an aspect that is sometimes absent; and what it has seen. Pairs
    of more than 400 letters are cut.
    """
    seen: Counter[Item] = Counter()

    def score(items: Sequence[Item]) -> Columns:
        seen.update(items)
        shares = np.array([len(item.summary) / len(item.document) for item in items])
        short = shares < 0.2
        return replace(
            collect(shares),
            aspects={"coverage": 1 - shares, "form": np.where(short, np.nan, shares)},
            reasons=["too short" if s else None for s in short],
            cut=np.array([len(item.document) + len(item.summary) > 400 for item in items]),
        )

    return Scorer(name, signature, True, frozenset({"document"}), score, ("coverage", "form")), seen


def test_every_summary_is_scored_once_and_several_documents_are_averaged() -> None:
    scorer, seen = lengths()
    rows = [Judged("d", system, ("x" * 10,), text) for system, text in (("a", "One."), ("b", "Three"), ("c", "One."))]
    rows.append(Judged("e", "a", ("x" * 10, "y" * 40), "abcd"))
    column, coverage, form = score_columns([scorer], [*rows, *rows])
    assert column.values == pytest.approx([0.4, 0.5, 0.4, (0.4 + 0.1) / 2] * 2)
    assert coverage.values == pytest.approx(1 - column.values)
    assert form.unscored() == "2 × too short"
    assert set(seen.values()) == {1}
    assert len(seen) == 4


def test_lower_is_better_is_turned_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def score(items: Sequence[Item]) -> Columns:
        return collect(-float(len(item.summary.split())) for item in items)

    monkeypatch.setitem(
        METRICS._entries, "brevity", lambda: Scorer("brevity", "metric:brevity", False, frozenset(), score)
    )
    result = run(tmp_path / "made.jsonl", judged(), metrics=("brevity",))
    of = {
        metric: [f.value for f in result.datasets[0].figures if f.metric == metric] for metric in ("brevity", "words")
    }
    assert of["brevity"] == pytest.approx(of["words"])
    write_correlation(result, str(tmp_path / "out"), Stopwatch())
    scores = [row.fields for row in read_rows(tmp_path / "out" / "scores.parquet")]
    raw = [row["score"] for row in scores if row["name"] == "brevity"]
    assert raw == [-len(row["summary"].split()) for row in judged()]
    assert "brevity: lower is better, so its sign is turned" in (tmp_path / "out" / "report.html").read_text()


def test_models_their_names_and_their_aspects_and_what_is_cut_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SimpleNamespace(scorer=lambda name: lengths(name, "model:stub")[0])
    monkeypatch.setattr("negsample.models.load", lambda folder, **_: model)
    rows, models = judged(), ("runs/a/model", "runs/b/model")
    result = run(tmp_path / "made.jsonl", rows, models=models, human=("content",))
    names = [(column.name, column.kind) for column in result.columns if column.kind != "baseline"]
    aspects = ("", ".coverage", ".form")
    assert names == [(f"{run}/model{a}", "aspect" if a else "model") for run in "ab" for a in aspects]
    by_name = {column.name: column for column in result.columns}
    share = np.array([len(row["summary"]) / len(row["document"]) for row in rows])
    assert by_name["a/model.coverage"].values == pytest.approx(1 - share)
    assert by_name["a/model.form"].unscored() == f"{(share < 0.2).sum()} × too short"
    (data,) = result.datasets
    lines = {column.name: figures["pooled"].n for column, figures, _ in data.lines("content")}
    # n is that of the figure beside which it stands.
    assert lines["a/model.form"] == (share >= 0.2).sum() < len(rows) == lines["a/model"]
    cut = sum(len(row["document"]) + len(row["summary"]) > 400 for row in rows)
    told = f"{cut} of 48 summaries: longer with their document than the model reads, and cut"
    assert [note for note in (*result.notes, *data.notes()) if "cut" in note] == [
        f"{run}/model: {told}" for run in "ab"
    ]


def test_score_files_name_what_does_not_match(tmp_path: Path) -> None:
    rows = judged()
    given = [{"doc_id": row["document_id"], "system": row["system"], "score": k} for k, row in enumerate(rows)]
    given[3]["score"] = None
    given[4]["score"] = "n/a"
    given += [{"doc_id": "elsewhere", "system": "s1", "score": 1.0}, given[0]]
    del given[7]
    result = run(tmp_path / "made.jsonl", rows, scores=(f"mine={write(tmp_path / 'mine.jsonl', given)}",))
    column = next(column for column in result.columns if column.name == "mine")
    assert column.unscored() == "2 × the score file has no row for it; 1 × the score file has no number for it"
    told = "\n".join(result.notes)
    assert "1 rows without a judged summary (document elsewhere, system s1)" in told
    assert "field 'score' is not a number" in told
    assert "line 5" in told
    assert "the same document and system again" in told
    figure = result.datasets[0].figure("content", "mine", "pooled", "pearson")
    assert figure is not None
    assert figure.n == len(rows) - 3
    assert figure.left_out["row without a metric score"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"human": ("contents",)}, "did you mean content"),
        ({"levels": ("sumary",)}, "did you mean summary"),
        ({"metrics": ("rogue1",)}, "no metric is called 'rogue1'"),
        ({"scores": ("file.csv",)}, "write NAME=FILE"),
        ({"scores": ("words={path}",)}, "words"),
        ({"judgments": ("missing.jsonl",)}, "missing.jsonl"),
        *(({"bootstrap": count}, f"bootstrap is {count}") for count in (-1, 10**12)),
        ({"scores": ("mine={elsewhere}",)}, r"no row belongs to a judged summary.*'x'.*'d0'"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, changes: dict, message: str) -> None:
    path = write(tmp_path / "made.jsonl", judged(4))
    files = {
        name: write(tmp_path / f"{name}.jsonl", [{"document_id": document, "system": "s0", "score": 1.0}])
        for name, document in (("path", "d0"), ("elsewhere", "x"))
    }
    if "scores" in changes:
        changes = {"scores": tuple(s.format(**files) for s in changes["scores"])}
    with pytest.raises(InputError, match=message):
        correlate.correlate(Settings(**{"judgments": (path,), "bootstrap": 0, **changes}))


def test_data_sets_keep_their_own_names_and_scores_and_ranks_are_averaged(tmp_path: Path) -> None:
    rows, others = judged(), judged(systems=5, seed=1)
    turned = [{**row, "scores": {name: -value for name, value in row["scores"].items()}} for row in others]
    lines = [
        f"{name},{row['document_id']},{row['system']},{row['scores']['content']}"
        for name, part in (("made", rows), ("made-2", turned))
        for row in part
    ]
    (tmp_path / "scores.csv").write_text("\n".join(["dataset,document_id,system,score", *lines]))
    paths = (write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", turned))
    options = {"levels": ("pooled",), "human": ("content",), "scores": (f"mine={tmp_path / 'scores.csv'}",)}
    result = run(tmp_path / "c.jsonl", [], judgments=paths, **options)
    assert [data.source.name for data in result.datasets] == ["made", "made-2"]
    ranks: dict[str, list[float]] = {}
    for data in result.datasets:
        values = {f.metric: f.value for f in data.figures if f.coefficient == "pearson"}
        assert values["mine"] == pytest.approx(1)
        for metric, rank in zip(values, stats.rankdata([-value for value in values.values()]), strict=True):
            ranks.setdefault(metric, []).append(float(rank))
    assert {rank.metric: rank.rank for rank in result.ranks["pooled"]} == {m: sum(r) / 2 for m, r in ranks.items()}
    assert list(result.ranks) == ["pooled"]


def _figure(metric: str, value: float | None) -> AgreementFigure:
    return AgreementFigure("made", "good", metric, "summary", "spearman", value, None, None, None, 10, 5, 2)


def test_verdicts_are_against_the_best_trivial_baseline() -> None:
    figures = [_figure("mine", 0.4), _figure("other", 0.3), _figure("words", 0.35), _figure("copied", 0.1)]
    figures += [_figure("none", None), _figure("align-untrained", 0.9)]
    # Six comparisons: Holm takes the smallest p times six.
    pairs = {
        ("mine", "other"): (0.1, 0.5),
        ("mine", "words"): (0.05, 0.005),
        ("mine", "copied"): (0.3, 0.2),
        ("other", "words"): (-0.05, 0.04),
        ("other", "copied"): (0.2, 0.5),
        ("words", "copied"): (0.25, 0.5),
    }
    about = ("made", "good", "summary", "spearman")
    compared = [
        MetricsComparison(*about, *pair, 10, 5, difference=difference, p_permutation=p)
        for pair, (difference, p) in pairs.items()
    ]
    found = baseline_verdicts(figures, {("good", "summary"): beats_matrix(compared, "permutation")})
    assert set(found) == {("good", name, "summary", "spearman") for name in ("mine", "other", "align-untrained")}
    mine = found["good", "mine", "summary", "spearman"]
    assert (mine.baseline, mine.baseline_value, mine.above, mine.clear) == ("words", 0.35, True, True)
    assert mine.text == "above words"
    # 0.04 × 5 is no longer below 0.05.
    other = found["good", "other", "summary", "spearman"]
    assert (other.above, other.clear, other.text) == (False, False, "not above words")
    assert found["good", "align-untrained", "summary", "spearman"].clear is None


def test_furthest_apart_by_hand() -> None:
    # Places of the metric: 0, 1/4, 2/4, 3/4, 1; people's: 1, 1/4, 2/4, 0, 3/4.
    table = make_table("made", "abcde", ["s"] * 5, {"good": [5, 2, 3, 1, 4]}, {"m": [0.1, 0.2, 0.3, 0.4, 0.5]}, [1] * 5)
    found = furthest_apart(table, "m", "good", count=2)
    assert [(apart.row, round(apart.gap, 6)) for apart in found] == [(3, 0.75), (4, 0.25), (0, -1.0)]
    first = found[0]
    assert (first.metric_place, first.human_place, first.metric_score, first.human_score) == (0.75, 0, 0.4, 1)


def test_the_csv_has_the_promised_columns_and_says_why_a_value_is_missing(tmp_path: Path) -> None:
    rows = judged(systems=3)
    for out in ("out", "again"):
        result = run(tmp_path / "made.jsonl", rows, bootstrap=20)
        write_correlation(result, str(tmp_path / out), Stopwatch())
    for file in ("agreement.json", "agreement.csv", "scores.parquet"):
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    with open(tmp_path / "out" / "agreement.csv", encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader)
        lines = list(reader)
    assert len(lines) == 4 * 2 * 3 * 3 == len(list(agreement_rows(result)))
    assert tuple(header) == CSV_COLUMNS
    system = [dict(zip(header, line, strict=True)) for line in lines if line[3] == "system"]
    assert all(line["value"] == "" and "needs at least 4" in line["left_out"] for line in system)
    made = {"agreement.json", "agreement.csv", "scores.parquet", "report.html", "run.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == made
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["config"]["bootstrap"] == 20
    assert list(record["data"]) == [str(tmp_path / "made.jsonl")]
    scores = [row.fields for row in read_rows(tmp_path / "out" / "scores.parquet")]
    assert len(scores) == len(rows) * (2 + 4)
    assert list(scores[0].values()) == ["made", "d0", "s0", "human", "content", rows[0]["scores"]["content"], None]


def test_tac2010_from_archive_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from negsample.cli import main

    folder = tac2010_maker.make_tac2010(tmp_path / "tac", packed=True)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as end:
        main(
            [
                *("correlate", "--judgments", f"tac2010:{folder}", "--metric", "rouge1(value=recall)"),
                *("--bootstrap", "20", "--human", "modified_pyramid", "--out", str(out)),
            ]
        )
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "tac2010 · modified_pyramid (12 summaries, 3 documents, 4 systems)" in printed
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "modified_pyramid" in page
    figures = json.loads((out / "agreement.json").read_text())["datasets"][0]["figures"]
    words = next(f for f in figures if (f["metric"], f["level"], f["coefficient"]) == ("words", "summary", "spearman"))
    # A system names 4, 3, 2, 1 words of the topic in as many sentences, and its pyramid falls with them.
    assert words["value"] == pytest.approx(1.0)


def halved() -> list[dict]:
    """Rows of four documents: two of the tune half, two of the report half."""
    return [{**row, "half": "tune" if row["document_id"] in ("d0", "d1") else "report"} for row in judged(4)]


def test_a_half_is_measured_alone_and_both_are_told_of(tmp_path: Path) -> None:
    both = run(tmp_path / "made.jsonl", halved())
    told = "12 of 24 judged summaries have half: tune, for choosing settings by; the figures are over both halves"
    assert [note for note in both.notes if "half" in note] == [f"{told}, --half report leaves these out"]
    report = run(tmp_path / "made.jsonl", halved(), half="report")
    assert {row.document_id for row in report.datasets[0].source.rows} == {"d2", "d3"}
    assert not [note for note in report.notes if "half" in note]
    rows = [row for row in halved() if row["half"] == "report"]
    words = [len(row["summary"].split()) for row in rows]
    expected = stats.pearsonr(words, [row["scores"]["form"] for row in rows])[0]
    assert report.datasets[0].figure("form", "words", "pooled", "pearson").value == pytest.approx(expected)


def test_rows_without_the_half_are_counted_and_files_without_it_refused(tmp_path: Path) -> None:
    rows = halved()
    for row in rows[-6:]:
        del row["half"]
    others = [
        {**row, "dataset": "other", "document_id": f"o-{row['document_id']}", "half": "tune", "document": "Another."}
        for row in halved()
    ]
    path = write(tmp_path / "made.jsonl", [*rows, *others])
    found = run(tmp_path / "made.jsonl", [*rows, *others], half="report")
    assert [data.source.name for data in found.datasets] == ["made"]
    assert [note for note in found.notes if "half" in note] == [
        "made: left out 6 × judged summary without a half",
        "other: left out, for no row has half: report",
    ]
    plain = write(tmp_path / "plain.jsonl", judged(4))
    only = write(tmp_path / "only.jsonl", others)
    for paths, half, told in (
        ((path, plain), "report", r"plain\.jsonl: no row has the field 'half'"),
        ((only,), "report", r"only\.jsonl: no row has half: report"),
        ((path,), "reports", "--half reports: did you mean report"),
    ):
        with pytest.raises(InputError, match=told):
            correlate.correlate(Settings(paths, half=half, bootstrap=0))
    # … and so are data sets without the human score.
    other = [{**row, "dataset": "other", "scores": {"fluency": row["scores"]["form"]}} for row in judged(4)]
    paths = (write(tmp_path / "made.jsonl", judged(4)), write(tmp_path / "other.jsonl", other))
    found = run(tmp_path / "c.jsonl", [], judgments=paths, human=("content",))
    assert [data.source.name for data in found.datasets] == ["made"]
    assert "other: left out, for none of its judgments has the score content" in found.notes


def test_a_folder_that_can_not_be_made_stops_before_any_work_and_figures_are_shown_before_they_are_written(
    tmp_path: Path, negsample, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("kept")
    out = tmp_path / "file" / "out"
    for words in (("correlate", "--judgments", "none.jsonl"), ("compare", "--metric", "words", "none.jsonl")):
        assert "a part of the path is a file" in negsample(*words, "--out", out, check=2).stderr
    check_new(str(tmp_path / "new" / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def full(*arguments: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr("negsample.eval.report.correlate.write_correlation", full)
    monkeypatch.setattr("negsample.eval.report.compare.write_comparison", full)
    path = write(tmp_path / "made.jsonl", halved())
    half = ("--half", "report", "--human", "content", "--bootstrap", 0, "--metric", "words")
    done = negsample("correlate", "--judgments", path, *half, "--out", tmp_path / "a", check=2)
    assert "made · content (12 summaries, 2 documents, 6 systems)" in done.stdout
    done = negsample("compare", "--metric", "words", path, "--out", tmp_path / "b", check=2)
    assert "metric:words|" in done.stdout


def within(x: Sequence[float], y: Sequence[float]) -> float:
    """The mean over the eight documents of Spearman's ρ over their six systems."""
    tables = np.reshape(x, (8, 6)), np.reshape(y, (8, 6))
    return float(np.mean([stats.spearmanr(*pair)[0] for pair in zip(*tables, strict=True)]))


def test_a_judge_stands_beside_people_and_in_their_place(tmp_path: Path) -> None:
    rows, rng = judged(), np.random.default_rng(7)
    columns = {name: rng.random(len(rows)).tolist() for name in ("gpt", "gpt-form", "pupil")}
    columns["gpt"][5] = None  # asked, and not answered
    given = {
        name: write(
            tmp_path / f"{name}.jsonl",
            [
                {"doc_id": r["document_id"], "system": r["system"], "score": v}
                for r, v in zip(rows, values, strict=True)
            ],
        )
        for name, values in columns.items()
    }
    scores = tuple(f"{name}={path}" for name, path in given.items())
    result = run(tmp_path / "made.jsonl", rows, scores=scores, judges=("gpt", "gpt-form"), human=("content",))
    people, judge = result.datasets
    content = [row["scores"]["content"] for row in rows]

    def summary(data: correlate.Measured, human: str, metric: str) -> float | None:
        found = data.figure(human, metric, "summary", "spearman")
        return None if found is None else found.value

    # Judge and people, pupil and people, pupil and judge: all in one run.
    assert summary(people, "content", "gpt-form") == pytest.approx(within(columns["gpt-form"], content))
    assert summary(people, "content", "pupil") == pytest.approx(within(columns["pupil"], content))
    assert summary(judge, "gpt-form", "pupil") == pytest.approx(within(columns["pupil"], columns["gpt-form"]))
    assert judge.figure("gpt", "pupil", "pooled", "pearson").n == 47  # type: ignore[union-attr]
    assert judge.figure("gpt-form", "pupil", "summary", "spearman").given_length is not None  # type: ignore[union-attr]
    assert [data.source.by for data in result.datasets] == ["people", "judge:gpt, gpt-form"]
    # No judge agrees with itself in the table, and none counts among the people's data sets.
    assert summary(judge, "gpt-form", "gpt") is None
    assert result.ranks == {}
    assert "its scores are by judge:gpt, gpt-form, not by people" in judge.notes()
    write_correlation(result, str(tmp_path / "out"), Stopwatch())
    kinds = Counter(row.fields["kind"] for row in read_rows(tmp_path / "out" / "scores.parquet"))
    assert kinds["human"] == 48
    assert kinds["judge"] == 47 + 48 + 47  # and the mean of both, where both are
    assert json.loads((tmp_path / "out" / "agreement.json").read_text())["datasets"][1]["by"].startswith("judge:")
    with pytest.raises(InputError, match=r"--judge gtp: no metric or scores are called so; did you mean gpt"):
        run(tmp_path / "made.jsonl", rows, scores=scores, judges=("gtp",))


def test_scores_by_a_judge_are_not_peoples(tmp_path: Path) -> None:
    rows = judged()
    judges = [{**row, "by": "judge:m", "scores": {"content": -row["scores"]["content"]}} for row in rows]
    path = write(tmp_path / "judge.jsonl", judges)
    both = run(tmp_path / "made.jsonl", [*rows, *judges], human=("content",))
    assert [(data.source.name, data.source.by, len(data.source.rows)) for data in both.datasets] == [
        ("made", "people", 48),
        ("made by judge:m", "judge:m", 48),
    ]
    values = [data.figure("content", "words", "summary", "spearman").value for data in both.datasets]  # type: ignore[union-attr]
    assert values[0] == pytest.approx(-values[1])
    assert not both.ranks
    with pytest.raises(InputError, match=r"has scores by judge:m, which are not people's; negsample train labels="):
        load_judgments(path)
    with pytest.raises(InputError, match="field 'by' is neither 'people' nor 'judge:NAME'"):
        load_judgments(write(tmp_path / "odd.jsonl", [{**rows[0], "by": "gpt"}]))

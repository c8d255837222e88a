"""``reinforce`` and ``generate-summaries``, from the command line."""

import json
import re
from pathlib import Path

import pytest
from tests_support import story

import negsample.train.reinforce as job
from negsample.eval.report import plots
from negsample.models.summarizers.language_model import load_summarizer
from negsample.resampling import NO_INTERVAL

SETTINGS = "encoder=glove(unit=sentence) sentences=2 reward=rouge1 ml_epochs=1 epochs=1 batch_size=8 limit=30".split()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reinforce")


def test_a_run_leaves_a_summarizer_its_curve_and_a_table(negsample, run_folder: Path, pairs_file: Path) -> None:
    out = run_folder / "model"
    arguments = ["reinforce", f"corpus={pairs_file}", *SETTINGS, "metrics=[rouge1,words]", "--out", out]
    found = negsample(*arguments)
    assert "validation reward" in found.stdout
    assert "rouge1" in found.stdout
    rows = [json.loads(line) for line in (out / "summaries.jsonl").read_text().splitlines()]
    assert {row["system"] for row in rows} == {"start", "trained", "lead", "oracle"}
    assert all(row["summary"] and row["references"] for row in rows)
    lines = [json.loads(line) for line in (out / "training.jsonl").read_text().splitlines()]
    # 24 documents in batches of 8, twice.
    steps = [line for line in lines if line["kind"] == "step"]
    assert [(line["step"], "reward" in line) for line in steps] == [(n, n > 2) for n in range(6)]
    curve = [line for line in lines if line["kind"] == "epoch"]
    assert [line["phase"] for line in curve] == ["likelihood", "reward"]
    assert curve[1]["outputs"]["words"] > 0
    record = json.loads((out / "run.json").read_text())
    assert record["reward"].startswith("reward:1*rouge1|metric:rouge1")
    assert record["figures"]["data"]["documents"] == {"train": 24, "validation": 3, "test": 3}
    assert (out / "test" / "report.html").is_file()
    # The picture has both panels and both curves of each.
    picture = (out / "training.svg").read_text()
    marks = ("loss", "reward", "training", "validation", "step")
    assert [picture.count(f">{word}</text>") for word in marks] == [1, 1, 2, 2, 1]
    assert not (out / "work").exists()
    # The table's own numbers are those of the reward.
    assert "rouge1" in (out / "test" / "compare.json").read_text()
    # Where the table could not be made it is made later.
    (out / "test" / "report.html").unlink()
    assert negsample(*arguments, "--resume").stdout.startswith(f"{out}: the run is finished")
    assert (out / "test" / "report.html").is_file()
    assert negsample(*arguments, "--resume").stdout.startswith(f"{out}: the run is finished")
    assert "another configuration" in negsample(*arguments, "seed=5", "--resume", check=2).stderr


def test_summaries_of_a_model_the_lead_and_textrank_go_on_to_compare(negsample, run_folder: Path) -> None:
    documents = run_folder / "documents.jsonl"
    rows = [{"doc_id": str(n), "document": d, "summary": s} for n, (d, s) in enumerate(map(story, range(5)))]
    documents.write_text("\n".join(map(json.dumps, rows)) + "\n")
    files = []
    for name in (str(run_folder / "model"), "lead", "textrank"):
        files.append(run_folder / f"{Path(name).name}.jsonl")
        budget = [] if "/" in name else ["--sentences", 2]
        negsample("generate-summaries", documents, "--model", name, "-o", files[-1], *budget)
    lead = json.loads(files[1].read_text().splitlines()[0])
    assert lead["summary"] == " ".join(rows[0]["document"].split(". ")[:2][i].rstrip(".") + "." for i in (0, 1))
    assert (lead["references"], lead["system"]) == ([rows[0]["summary"]], "lead")
    told = negsample("compare", *files, "--metric", "rouge1", "--bootstrap", 10).stdout
    assert ("textrank" in told, f"–: {NO_INTERVAL}" in told) == (True, True)


def test_a_table_of_summaries_keeps_what_is_no_score_of_the_one_before(negsample, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(
        "document,summary,score,form,form_percentile,plot\nA cat. B.,,1,2,0.5,x\nC.,c,1,2,0.5,y\n"
    )
    negsample("generate-summaries", "in.csv", "--model", "lead", "--sentences", 1, "-o", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "plot,document,summary,system,references",
        "x,A cat. B.,A cat.,lead,[]",
        'y,C.,C.,lead,"[""c""]"',
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ml_learning_rate=1e12"], "lower learning_rate"),
        (["learning_rate=1e12", "ml_epochs=0"], "lower learning_rate"),
        (["metrics=[rouge9]"], "rouge9"),
    ],
)
def test_nothing_is_left_of_a_training_that_cannot_end_well(words, told, negsample, tmp_path, pairs_file) -> None:
    kept = [word for word in SETTINGS if word.partition("=")[0] not in str(words)]
    found = negsample("reinforce", f"corpus={pairs_file}", *kept, *words, "--out", tmp_path / "out", check=2)
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_told_of_a_summarizer_does_not_lose_it(negsample, tmp_path, pairs_file, monkeypatch) -> None:
    arguments = ["reinforce", f"corpus={pairs_file}", *SETTINGS, "--out", tmp_path / "out"]
    for module, name in ((job, "samples"), (plots, "training_curves")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *_: 1 / 0)
            told = negsample(*arguments, "--resume", check=2).stderr
        assert re.search("what was trained is whole|training.svg can't be made", told)
        assert len(told.splitlines()) == 1
        assert load_summarizer(str(tmp_path / "out")).summarize(["A baker sold a lamp. It rained."])
    negsample(*arguments, "--resume")
    assert (tmp_path / "out" / "test" / "report.html").is_file()

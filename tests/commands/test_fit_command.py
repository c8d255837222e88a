"""``negsample fit``, and its folder in the hands of the other commands, from a small untrained model."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests_support import command_line, story

from negsample import assert_quality
from negsample.corpora import load_pairs
from negsample.models import load
from negsample.models.dataframe import ScoreBatches
from negsample.models.estimator import Estimator
from negsample.models.fitted import FittedEstimator, save_fitted
from negsample.models.folder import read_percentiles
from negsample.rewards import Reward

DOCUMENTS = 8


@pytest.fixture(scope="module")
def judgments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each document a summary, its first half, that of another document, and a repetition."""
    rows = []
    for number in range(DOCUMENTS):
        document, summary = story(number)
        made = [summary, summary[: len(summary) // 2], story(number + 20)[1], f"{summary} {summary}"]
        for system, (text, grade) in enumerate(zip(made, [5, 3 + number % 2, 1, 4], strict=True)):
            rows.append(
                {
                    "document_id": f"d{number}",
                    "system": f"s{system}",
                    "document": document,
                    "summary": text,
                    "references": [summary],
                    "scores": {"relevance": grade, "coherence": [grade, 6 - grade, grade]},
                    "half": "tune" if number < 6 else "report",
                }
            )
    path = tmp_path_factory.mktemp("judged") / "judged.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def fitted(align_model: Path, judgments: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "model"
    given = ("--judgments", judgments, "--model", align_model, "--out", out, "--metric", "words", "--bootstrap", 50)
    command_line("fit", *given)
    return out


def test_the_folder_scores_explains_and_correlates(
    negsample, fitted: Path, align_model: Path, judgments: Path, tmp_path: Path
) -> None:
    negsample("score", "--model", fitted, judgments, "-o", tmp_path / "out.jsonl", "--aspects")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert list(rows[0]["aspects"]) == ["coverage", "support", "coherence", "form", "relevance", "people_coherence"]
    for row in rows:
        low, high = row["intervals"]["relevance"]
        assert 1 <= low <= row["aspects"]["relevance"] <= high <= 5
        assert 0 < row["score"] < 1
        assert 0 <= row["percentile"] <= 1
        assert all(0 <= share <= 1 for share in row["aspect_percentiles"].values())
    # The judgments' own summaries are above those of other documents.
    answers = np.array([row["aspects"]["relevance"] for row in rows]).reshape(DOCUMENTS, 4)
    assert (answers[:, 0] > answers[:, 2]).all()
    about = dict(line.split("  ", 1) for line in negsample("info", fitted).stdout.splitlines())
    about = {name: value.strip() for name, value in about.items()}
    assert about["fitted from"] == load(align_model).signature
    assert about["targets"] == "relevance, people_coherence (people's coherence)"
    assert about["metrics"] == "words"
    assert about["judgments"] == f"{judgments}: 24 summaries of 6 documents, seed 0"
    told = negsample("explain", "--model", fitted, judgments, "--limit", 1).stdout
    assert "relevance" in told
    assert "(interval" in told
    correlate = ("correlate", "--judgments", judgments, "--model", fitted, "--bootstrap", 0, "--out")
    assert "was fitted to judgments of 6 of the documents" in negsample(*correlate, tmp_path / "agreement").stdout
    assert "was fitted" not in negsample(*correlate, tmp_path / "apart", "--half", "report").stdout


def test_every_way_loads_a_model_that_weighs_metrics(fitted: Path, align_model: Path) -> None:
    documents, summaries = map(list, zip(*(story(number) for number in range(3)), strict=True))
    pair, model = (documents[1:2], summaries[1:2]), load(fitted)
    assert isinstance(model, FittedEstimator)
    score, together = model.score(*pair), model.score_pairs(documents, summaries)
    for name, values in model.score_pairs(*pair).named().items():
        assert values[0] == pytest.approx(together.named()[name][1], abs=1e-5)
    assert pickle.loads(pickle.dumps(model)).score(*pair) == pytest.approx(score)
    assert ScoreBatches(str(fitted))({"document": pair[0], "summary": pair[1]})["score"] == pytest.approx(score)
    assert Reward(str(fitted)).score(*pair, [()]) == pytest.approx(score)
    with pytest.raises(AssertionError, match="mean relevance"):
        assert_quality(*pair, model=fitted, relevance=5)
    assert list(model.explain(documents[1], summaries[1])["targets"]) == ["relevance", "people_coherence"]
    # Where nothing can be judged the score is the unfitted one.
    scored, base = model.score_pairs(pair[0], ["… !!"]), Estimator.load(align_model)
    assert scored.scores[0] == pytest.approx(base.score(pair[0], ["… !!"])[0], abs=1e-6)
    assert np.isnan(scored.aspects["relevance"][0])
    assert scored.reasons == ["the summary has no word, so no aspect can be judged"]


def test_percentiles_by_kind_of_text(fitted: Path, align_model: Path, tmp_path: Path) -> None:
    own = json.loads((fitted / "percentiles.json").read_text())
    sample = list(load_pairs("sample"))
    model = load(fitted)
    assert isinstance(model, FittedEstimator)
    news = [pair for pair in sample if pair.domain == "news"]
    named = model.score_pairs([pair.document for pair in news], [pair.summary for pair in news]).named()
    assert set(own["domains"]) == {pair.domain for pair in sample}
    for name in ("score", "relevance", "people_coherence"):
        assert own["domains"]["news"]["values"][name] == pytest.approx(sorted(named[name]), abs=2e-5)
    # Aspects are ranked where the model that was fitted ranked them.
    base = Estimator.load(align_model)
    base._percentiles = {
        "": {"score": np.array([0.5]), "form": np.array([0.25, 0.75])},
        "law": {"form": np.array([0.1, 0.2])},
    }
    save_fitted(base, model.fitted, tmp_path / "again", "A card.")
    made = read_percentiles(tmp_path / "again" / "percentiles.json")
    assert made is not None
    assert set(made) == {"", "law", *own["domains"]}
    assert {name: column.tolist() for name, column in made["law"].items()} == {"form": [0.1, 0.2]}
    assert made[""]["form"].tolist() == [0.25, 0.75]
    assert len(made[""]["score"]) == len(sample)
    assert "form" not in made["news"]


def test_the_base_is_kept_and_a_fit_can_be_fitted_again(
    negsample, align_model: Path, judgments: Path, tmp_path: Path, fitted: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    fit = ("fit", "--judgments", judgments, "--target", "relevance", "--all", "--bootstrap", 0, "--model")
    assert "relevance: 32 summaries of 8 documents" in negsample(*fit, align_model, "--out", one).stdout
    negsample(*fit, fitted, "--out", two)
    base, loaded, again = load(align_model), load(one), load(two)
    assert isinstance(loaded, FittedEstimator)
    assert loaded.description["weights_sha256"] == base.description["weights_sha256"]
    assert loaded.fingerprint != base.fingerprint
    # The features may differ in their last digits from one reading to the next, and the weights with them.
    assert isinstance(again, FittedEstimator)
    assert dict(again.fitted.score) == pytest.approx(dict(loaded.fitted.score), abs=1e-4)
    record = json.loads((one / "run.json").read_text())
    assert record["fitted"]["half"] == "all"
    assert len(record["fitted"]["document_keys"]) == DOCUMENTS
    assert (one / "fit" / "report.html").is_file()
    card = (one / "README.md").read_text()
    assert "summaries of 8 documents (" in " ".join(card.split())
    assert "people's relevance" in card


def test_references_where_they_will_be_there(negsample, align_model: Path, judgments: Path, tmp_path: Path) -> None:
    out = tmp_path / "with"
    options = ["--metric", "rouge1(against=references)", "--target", "relevance", "--bootstrap", 0]
    fit = ["fit", "--judgments", judgments, "--model", align_model, "--out", out, *options]
    assert "--references" in negsample(*fit, check=2).stderr
    assert not out.exists()
    negsample(*fit, "--references")
    negsample("score", "--model", out, judgments, "-o", tmp_path / "scored.jsonl", "--aspects")
    assert all(json.loads(line)["score"] is not None for line in (tmp_path / "scored.jsonl").read_text().splitlines())
    negsample("correlate", "--judgments", judgments, "--model", out, "--out", tmp_path / "agreement", "--bootstrap", 0)


def test_the_preset_of_the_paper(negsample, judgments: Path, tmp_path: Path) -> None:
    metrics = ["--metric", "words", "--metric", "tf-recall"]
    fit = ["fit", "--judgments", judgments, *metrics, "--target", "relevance", "--all", "--preset"]
    told = negsample(*fit, "p2", "--out", tmp_path / "p2").stdout
    assert "words + tf-recall" in told
    assert "equal weights" in told
    learned = tmp_path / "p2" / "learned.json"
    negsample("score", "--metric", f"learned:{learned}", judgments, "-o", tmp_path / "s.jsonl")
    negsample(*fit, "equal", "--out", tmp_path / "equal")
    assert json.loads((tmp_path / "equal" / "learned.json").read_text())["weights"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--target", "relevanse"], "--target relevanse: no judgments have that score"),
        (["--confidence", "1.2"], "--confidence 1.2"),
        (["--preset", "p2"], "--preset weighs metrics alone"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    negsample, align_model: Path, judgments: Path, tmp_path: Path, options: list[str], told: str
) -> None:
    out = tmp_path / "out"
    found = negsample("fit", "--judgments", judgments, "--model", align_model, "--out", out, *options, check=2)
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert not out.exists()

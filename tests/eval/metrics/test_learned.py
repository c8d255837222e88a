"""The learned metric: ridge against scikit-learn and by hand, held-out halves, JSON, use as a metric."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from negsample.errors import InputError
from negsample.eval.fit.preset import _ridge, fit_learned, geometric_mean, learn
from negsample.eval.metrics.learned import HeldOut, Learned, learned_metric, p2
from negsample.records import Judged
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item
from negsample.seeds import generator

ROWS = [f"d{row:02}" for row in range(80)]  # each of a document of its own


def noisy(n: int = 80) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = generator("test learned")
    x = rng.normal(size=(3, n))
    truth = 5 + x[0] - 0.5 * x[1] + 0.3 * rng.normal(size=n)
    return {"words": x[0], "copied": x[1], "tf-recall": x[2]}, {"good": truth}


def test_ridge_by_hand() -> None:
    # Centred x = ∓0.5, y = ∓1: w = 1/(0.5 + 1), b = 3 − 1.5w.
    weights, base = _ridge(np.array([[1.0], [2.0]]), np.array([2.0, 4.0]), 1.0)
    assert weights == pytest.approx([2 / 3])
    assert base == pytest.approx(2.0)


@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_ridge_equals_scikit_learn(penalty: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = generator("ridge")
    x, y = rng.normal(size=(40, 5)) + 1000.0, rng.normal(size=40)
    weights, base = _ridge(x, y, penalty)
    peer = linear.Ridge(alpha=penalty, solver="svd").fit(x, y)
    assert weights == pytest.approx(peer.coef_, abs=1e-10)
    assert base == pytest.approx(peer.intercept_, abs=1e-7)


def test_no_penalty_and_collinear_columns() -> None:
    x = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    weights, base = _ridge(x, np.array([3.0, 5.0, 7.0]), 0.0)
    assert weights == pytest.approx([1.0, 1.0])
    assert base == pytest.approx(1.0)


def test_geometric_mean() -> None:
    found = geometric_mean({"a": np.array([4.0, 0.0, 3.0]), "b": np.array([9.0, 5.0, np.nan])})
    assert found[:2] == pytest.approx([6.0, 0.0])
    assert np.isnan(found[2])
    with pytest.raises(InputError, match="'b' has a negative"):
        geometric_mean({"a": np.ones(2), "b": np.array([1.0, -1.0])})


def test_fit_finds_what_is_there() -> None:
    columns, human = noisy()
    fitted = fit_learned(columns, human, ROWS, penalty=1.0, splits=200)
    assert fitted.weights[0] == pytest.approx(1.0, abs=0.15)
    assert fitted.weights[1] == pytest.approx(-0.5, abs=0.15)
    assert fitted.intercept == pytest.approx(5.0, abs=0.15)
    assert fitted.rows == 80
    held = fitted.held_out
    assert held is not None
    assert held.mean is not None
    assert 0.85 < held.mean < 1
    assert held.sd is not None
    assert 0 < held.sd < 0.1
    assert (held.splits, held.undefined) == (200, 0)
    assert fit_learned(columns, human, ROWS, splits=200) == fitted
    assert fit_learned(columns, human, ROWS, splits=200, seed=1).held_out != held


def test_held_out_is_what_a_plain_loop_gives() -> None:
    columns, human = noisy(20)
    documents = [f"d{row // 2}" for row in range(20)]
    fitted = fit_learned(columns, human, documents, splits=5, seed=3)
    order = generator("learned metric", 3).permuted(np.tile(np.arange(10), (5, 1)), axis=1)
    x, y = np.stack(list(columns.values()), axis=1), human["good"]
    names = sorted(set(documents))
    values = []
    for split in range(5):
        first = {names[code] for code in order[split, :5]}
        inside = np.array([document in first for document in documents])
        assert inside.sum() == 10
        weights, base = _ridge(x[inside], y[inside], 1.0)
        values.append(spearmanr(x[~inside] @ weights + base, y[~inside])[0])
    assert fitted.held_out == HeldOut(
        pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)), splits=5, undefined=0
    )


def test_noise_does_not_agree_on_held_out_rows() -> None:
    rng = generator("noise")
    columns = {f"c{k}": rng.normal(size=60) for k in range(10)}
    held = fit_learned(columns, {"h": 3 + rng.random(60)}, ROWS[:60]).held_out
    assert held is not None
    assert held.mean is not None
    assert abs(held.mean) < 0.2


def test_missing_values_are_left_out_and_counted() -> None:
    columns, human = noisy()
    columns["words"] = np.where(np.arange(80) % 10 == 0, np.nan, columns["words"])
    fitted = fit_learned(columns, human, ROWS, splits=10)
    assert (fitted.rows, fitted.left_out) == (72, 8)
    assert np.isfinite(fitted.weights).all()


def test_constant_predictions_are_counted() -> None:
    held = fit_learned({"c": np.ones(10)}, {"h": np.arange(10.0)}, ROWS[:10], splits=7).held_out
    assert held == HeldOut(None, None, splits=0, undefined=7)


def test_fit_refuses() -> None:
    columns, human = noisy()
    few = {name: values[:5] for name, values in columns.items()}
    with pytest.raises(InputError, match="only 5 rows"):
        fit_learned(few, {"good": human["good"][:5]}, ROWS[:5])
    with pytest.raises(InputError, match="one document"):
        fit_learned(columns, human, ["d"] * 80)


def test_saved_loaded_and_used(tmp_path: Path) -> None:
    fitted = Learned(("words", "copied"), (0.5, 2.0), intercept=1.0, human=("a", "b"), held_out=HeldOut(0.4, 0.1, 9, 1))
    path = tmp_path / "learned.json"
    fitted.save(path)
    assert Learned.load(path) == fitted
    metric = make_metric(f"learned:{path}")
    assert metric.needs == {"document"}
    assert metric.name == f"learned({path})"
    # Three words, two of them copied: 1 + 0.5·3 + 2·2/3.
    scores = metric.score([Item("storm port", "storm port shop"), Item("storm port", "")])
    assert scores.scores[0] == pytest.approx(1 + 1.5 + 4 / 3)
    assert scores.reasons == [None, "copied: the summary has fewer than 1 words"]
    other = learned_metric(Learned(("words", "copied"), (0.5, 2.5), intercept=1.0))
    assert other.signature != metric.signature


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "other"}, "no learned metric"),
        ({"weights": [1.0]}, "one weight for each column"),
        ({"weights": [1.0, "2"]}, "finite numbers"),
        ({"weights": [1.0, float("nan")]}, "finite numbers"),
        ({"columns": "words"}, "list of names"),
        ({"columns": ["words", "words"]}, "each column once"),
        ({"intercept": None}, "intercept"),
        ({"held_out": {"mean": 1}}, "held_out"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_damaged_files(tmp_path: Path, change: dict[str, object], told: str) -> None:
    path = tmp_path / "learned.json"
    Learned(("words", "copied"), (0.5, 2.0)).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=told):
        make_metric(f"learned:{path}")


def test_other_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    with pytest.raises(InputError, match="no such file"):
        make_metric(f"learned:{path}")
    path.write_text("weights: 1")
    with pytest.raises(InputError, match="not JSON"):
        make_metric(f"learned:{path}")
    Learned((f"learned:{path}",), (1.0,)).save(path)
    with pytest.raises(InputError, match="learned metric itself"):
        make_metric(f"learned:{path}")
    for spec, told in (
        ("learned", "give either"),
        ("learned(preset=p2)", "question-answering model"),
        ("learned(preset=p3)", "p2"),
        ("learned(x.json, preset=p2)", "give either"),
        ("learned(x.json, model=y)", "belongs to preset"),
        ("learned(x.json, y.json)", "not an option"),
    ):
        with pytest.raises(InputError, match=told):
            make_metric(spec)


def test_preset_has_the_published_weights() -> None:
    preset = p2("some/model")
    assert dict(zip((column.partition("(")[0] for column in preset.columns), preset.weights, strict=True)) == {
        "rougeL": 0.8576, "summaqa-conf": 2.274, "summaqa-f1": 0.6413,
    }  # fmt: skip
    assert preset.intercept == 0.0
    assert preset.predict(np.array([[1.0, 1.0, 1.0]])) == pytest.approx([3.7729])


def test_learn_scores_one_half_only() -> None:
    rows = [
        Judged(f"d{n}", "s", (f"storm port {n}",), "storm " * (n % 5 + 1), scores={"good": float(n % 5 + 1)}, half=half)
        for half in ("tune", "report") for n in range(8)
    ]  # fmt: skip
    fitted = learn(["words", "copied"], rows, ["good"])
    assert fitted.columns == ("words", "copied")
    assert fitted.rows == 8
    assert fitted.weights[0] > 0.8
    with pytest.raises(InputError, match="known: good"):
        learn(["words"], rows, ["bad"])
    # Whatever people said of the other half changes nothing.
    wrong = [replace(row, scores={"good": -1.0}) if row.half == "report" else row for row in rows]
    assert learn(["words", "copied"], wrong, ["good"]) == fitted
    with pytest.raises(InputError, match="half='dev'"):
        learn(["words"], rows, ["good"], half="dev")
    with pytest.raises(InputError, match="at least one"):
        learn([], rows, ["good"])

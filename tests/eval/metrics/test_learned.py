"""The learned metric: ridge against scikit-learn, held-out halves, JSON, use as a metric."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge

from negsample.errors import InputError
from negsample.eval.metrics.learned import HeldOut, Learned, fit_learned, fit_preset, geometric_mean, learned_metric
from negsample.records import Judged
from negsample.scoring.scorer import Item, make_metric
from negsample.seeds import generator

ROWS = [f"d{row:02}" for row in range(80)]  # each of a document of its own


def noisy(n: int = 80) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = generator("test learned")
    x = rng.normal(size=(3, n))
    truth = 5 + x[0] - 0.5 * x[1] + 0.3 * rng.normal(size=n)
    return {"words": x[0], "copied": x[1], "tf-recall": x[2]}, {"good": truth}


def test_weights_are_scikit_learns_ridge_far_from_zero_and_collinear_too() -> None:
    rng = generator("ridge")
    x, y = rng.normal(size=(40, 5)) + 1000.0, rng.normal(size=40)
    x[:, 4] = x[:, 3]
    found = fit_learned({str(k): x[:, k] for k in range(5)}, {"h": y + 9}, ROWS[:40], splits=1)
    peer = Ridge(alpha=1.0, solver="svd").fit(x, y + 9)
    assert found.weights == pytest.approx(peer.coef_, abs=1e-8)
    assert found.intercept == pytest.approx(peer.intercept_, abs=1e-5)


def test_geometric_mean() -> None:
    found = geometric_mean({"a": np.array([4.0, 0.0, 3.0]), "b": np.array([9.0, 5.0, np.nan])})
    assert found[:2] == pytest.approx([6.0, 0.0])
    assert np.isnan(found[2])
    with pytest.raises(InputError, match="'b' has a negative"):
        geometric_mean({"a": np.ones(2), "b": np.array([1.0, -1.0])})


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
        values.append(spearmanr(Ridge().fit(x[inside], y[inside]).predict(x[~inside]), y[~inside])[0])
    assert fitted.held_out == HeldOut(
        pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)), splits=5, undefined=0
    )
    assert fit_learned(columns, human, documents, splits=5, seed=3) == fitted
    assert fit_learned(columns, human, documents, splits=5, seed=4).held_out != fitted.held_out


def test_what_is_missing_constant_or_too_little() -> None:
    columns, human = noisy()
    holes = columns | {"words": np.where(np.arange(80) % 10 == 0, np.nan, columns["words"])}
    fitted = fit_learned(holes, human, ROWS, splits=10)
    assert (fitted.rows, fitted.left_out) == (72, 8)
    assert np.isfinite(fitted.weights).all()
    held = fit_learned({"c": np.ones(10)}, {"h": np.arange(10.0)}, ROWS[:10], splits=7).held_out
    assert held == HeldOut(None, None, splits=0, undefined=7)
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
    found = metric.score([Item("storm port", "storm port shop"), Item("storm port", "")])
    assert found.scores[0] == pytest.approx(1 + 1.5 + 4 / 3)
    assert found.reasons == [None, "copied: the summary has fewer than 1 words"]
    assert learned_metric(replace(fitted, weights=(0.5, 2.5))).signature != metric.signature


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"weights": [1.0]},
        {"weights": [1.0, "2"]},
        {"weights": [1.0, float("nan")]},
        {"columns": "words"},
        {"columns": ["words", "words"]},
        {"columns": [], "weights": []},
        {"intercept": None},
        {"held_out": {"mean": 1}},
        {"surprise": 1},
        {"columns": ["words", "learned:x"]},
        "weights: 1",
        None,
    ],
)
def test_damaged_files_are_named(tmp_path: Path, change: dict[str, object] | str | None) -> None:
    path = tmp_path / "learned.json"
    if isinstance(change, dict):
        Learned(("words", "copied"), (0.5, 2.0)).save(path)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    elif change is not None:
        path.write_text(change)
    with pytest.raises(InputError, match="learned"):
        make_metric(f"learned:{path}")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("learned", "give either"),
        ("learned(preset=p2)", "question-answering model"),
        ("learned(preset=p3)", "p2"),
        ("learned(x.json, preset=p2)", "give either"),
        ("learned(x.json, model=y)", "belongs to preset"),
    ],
)
def test_what_does_not_go_together_is_told(spec: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make_metric(spec)


def test_one_half_alone_is_scored_and_fitted_every_subset_measured() -> None:
    rows = [
        Judged(f"d{n}", "s", (f"storm port {n}",), "storm " * (n % 5 + 1), scores={"good": float(n % 5 + 1)}, half=half)
        for half in ("tune", "report") for n in range(8)
    ]  # fmt: skip
    found = fit_preset("p2", ["words", "copied"], rows, ["good"], splits=20)
    assert list(found.table) == ["words", "copied", "words + copied", "equal weights"]
    assert (found.learned.columns, found.learned.rows) == (("words", "copied"), 8)
    assert found.learned.weights[0] > 0.8
    # Whatever people said of the other half changes nothing.
    wrong = [replace(row, scores={"good": -1.0}) if row.half == "report" else row for row in rows]
    assert fit_preset("p2", ["words", "copied"], wrong, ["good"], splits=20) == found
    assert fit_preset("equal", ["words", "copied"], rows, ["good"], splits=20).learned.weights == (1.0, 1.0)
    for specs, human, half, told in (
        (["words"], ["bad"], "tune", "known: good"),
        (["words"], ["good"], "dev", "half='dev'"),
        ([], ["good"], "tune", "at least one"),
    ):
        with pytest.raises(InputError, match=told):
            fit_preset("p2", specs, rows, human, half=half)

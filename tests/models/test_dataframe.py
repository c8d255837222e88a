"""ScoreBatches: one callable for whatever hands out batches of columns."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests_support import story

from negsample import Estimator, ScoreBatches, models
from negsample.errors import InputError

STORIES = [story(number) for number in range(6)]
COLUMNS = {"document": [d for d, _ in STORIES], "summary": [s for _, s in STORIES], "id": list(range(6))}


@pytest.fixture(scope="module")
def model(cls_model: Path) -> str:
    return str(cls_model)


@pytest.fixture(scope="module")
def scores(model: str) -> np.ndarray:
    return Estimator.load(model).score(COLUMNS["document"], COLUMNS["summary"])


def test_a_model_is_loaded_once_in_a_process(model: str, scores: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, load = [], models.load
    monkeypatch.setattr(models, "load", lambda name, **how: calls.append(name) or load(name, **how))
    models.load_once.cache_clear()
    sent = pickle.dumps(ScoreBatches(model))
    assert len(sent) < 1000
    found = [
        pickle.loads(sent)({name: np.array(values)[part] for name, values in COLUMNS.items()})
        for part in (slice(4), slice(4, 6))
    ]
    assert calls == [model]
    np.testing.assert_allclose(np.concatenate([batch["score"] for batch in found]), scores, atol=1e-5)
    assert [*found[0]["id"], *found[1]["id"]] == COLUMNS["id"]
    empty = ScoreBatches(model)({name: [] for name in COLUMNS})
    assert {name: len(values) for name, values in empty.items()} == dict.fromkeys([*COLUMNS, "score", "reason"], 0)


def test_frames_of_pandas_and_spark(model: str, scores: np.ndarray) -> None:
    score, frame = ScoreBatches(model), pd.DataFrame(COLUMNS, index=range(10, 16))
    assert pd.DataFrame(score(frame)).index.tolist() == frame.index.tolist()

    # The function of mapInPandas gets an iterator of frames, of any size, and yields frames.
    def score_frames(batches):
        return (pd.DataFrame(score(batch)) for batch in batches)

    parts = pd.concat(score_frames(iter([frame[:4], frame[4:]])))
    assert parts.columns.tolist() == ["document", "summary", "id", "score", "reason"]
    np.testing.assert_allclose(parts["score"], scores, atol=1e-5)
    assert parts["id"].tolist() == COLUMNS["id"]


def test_datasets_in_two_processes(model: str, scores: np.ndarray) -> None:
    from datasets import Dataset

    done = Dataset.from_dict(COLUMNS).map(ScoreBatches(model), batched=True, batch_size=2, num_proc=2)
    np.testing.assert_allclose(done["score"], scores, atol=1e-5)
    assert list(done["id"]) == COLUMNS["id"]


def test_a_process_forked_from_one_that_has_scored_scores(model: str, tmp_path: Path) -> None:
    code = """if True:
        import os, sys, torch
        from negsample import Estimator
        estimator, texts = Estimator.load(sys.argv[1]), (["A cat sat on the mat. " * 40] * 8, ["A cat sat."] * 8)
        # Work that torch divides among threads, which the forked process does not have.
        torch.nn.functional.layer_norm(torch.ones(512, 512, 64), (64,))
        before = estimator.score(*texts)
        if os.fork():
            _, status = os.wait()
            sys.exit(os.waitstatus_to_exitcode(status))
        torch.nn.functional.layer_norm(torch.ones(512, 512, 64), (64,))
        os._exit(0 if abs(estimator.score(*texts) - before).max() < 1e-5 else 3)
    """
    # Not what other tests have set for this process.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    environment = {**kept, "OMP_NUM_THREADS": "2", "NEGSAMPLE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, model], env=environment, timeout=600)
    assert done.returncode == 0


def test_rows_without_a_score_and_columns_by_other_names(model: str, scores: np.ndarray) -> None:
    batch = {"text": [COLUMNS["document"][0], None], "tldr": COLUMNS["summary"][:2], "score": [0, 0]}
    found = ScoreBatches(model, "text", "tldr", prefix="new_")(batch)
    np.testing.assert_allclose(found["new_score"], [scores[0], np.nan], atol=1e-5)
    assert found["new_reason"] == ["", "the document is missing"]
    with pytest.raises(InputError, match="'score' is there already"):
        ScoreBatches(model, "text", "tldr")(batch)
    with pytest.raises(InputError, match="there is no column 'document'"):
        ScoreBatches(model)(batch)

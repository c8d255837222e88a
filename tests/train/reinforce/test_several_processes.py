"""Two processes that train a summarizer together do what one does."""

import json
from pathlib import Path

import numpy as np
from processes import launch
from safetensors.numpy import load_file

SETTINGS = [
    *("corpus=sample", "limit=31", "encoder=glove(unit=sentence)", "sentences=2", "reward=rouge1", "metrics=[rouge1,words]"),
    *("ml_epochs=1", "epochs=2", "gamma=0.5", "samples=2", "batch_size=8", "gradient_accumulation=2", "--out"),
]  # fmt: skip


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_two_processes_come_to_what_one_comes_to(negsample, tmp_path: Path) -> None:
    done = launch("-m", "negsample", "reinforce", *SETTINGS, tmp_path / "two", seconds=1200)
    assert done.returncode == 0, done.stderr
    negsample("reinforce", *SETTINGS, tmp_path / "one")
    one, two = tmp_path / "one", tmp_path / "two"
    assert [json.loads((run / "run.json").read_text())["processes"] for run in (one, two)] == [1, 2]
    # 25 documents: of each epoch's last step there is one, and nothing for the second process or part.
    assert json.loads((one / "figures.json").read_text())["data"]["documents"]["train"] == 25
    alone, together = lines(one / "training.jsonl"), lines(two / "training.jsonl")
    assert len(alone) == len(together) == 3 * (4 + 1)
    for line, other in zip(alone, together, strict=True):
        for name in ("loss", "reward", "train_loss", "validation_loss", "validation_reward"):
            if name in line:
                np.testing.assert_allclose(line[name], other[name], rtol=1e-4, err_msg=f"{name} of {line}")
    weights, others = (load_file(run / "model.safetensors") for run in (one, two))
    for name in weights:
        np.testing.assert_allclose(weights[name], others[name], rtol=0, atol=1e-4, err_msg=name)
    # The same test summaries, and a table of them.
    assert lines(one / "summaries.jsonl") == lines(two / "summaries.jsonl")
    assert (two / "test" / "compare.json").is_file()

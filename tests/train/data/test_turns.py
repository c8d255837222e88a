"""Epochs that take turns with a split's sets of negatives."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.train.config import make_config
from negsample.train.data.turns import members
from negsample.train.job import train


def test_members_by_hand():
    # Two pairs with two sets of two negatives; of the second, the last could not be made.
    kinds = np.array([0, 1, 2, 1, 1, 0, 2, 2, 1])
    first, second = members(kinds, ["original", "add", "delete"], 2, 2)
    assert first.tolist() == [0, 1, 2, 5, 6, 7]
    assert second.tolist() == [0, 3, 4, 5, 8]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(1, 3), st.integers(1, 4))
def test_every_turn_has_all_originals_and_every_negative_one_turn(counts, negatives, redraws):
    most = negatives * redraws
    kinds = np.concatenate([[1, *[0] * min(count, most)] for count in counts])
    turns = members(kinds, ["crosspair", "original"], negatives, redraws)
    originals = np.flatnonzero(kinds == 1)
    assert len(turns) == redraws
    for turn in turns:
        assert set(originals) <= set(turn.tolist())
        assert (np.diff(turn) > 0).all()
    seen = np.concatenate([np.setdiff1d(turn, originals) for turn in turns])
    assert sorted(seen.tolist()) == np.flatnonzero(kinds == 0).tolist()


def test_epochs_see_other_negatives_and_the_test_split_stays(pairs_file, tmp_path):
    common = {"corpus": str(pairs_file), "head": "fc", "encoder": "glove:unit=sentence", "log_examples": True}
    train(make_config({**common, "epochs": 3, "redraws": 2}), tmp_path / "two")
    train(make_config({**common, "epochs": 1}), tmp_path / "one")
    lines = [json.loads(line) for line in (tmp_path / "two" / "training.jsonl").read_text("utf-8").splitlines()]
    epochs = [[]]
    for line in lines:
        if line["kind"] == "step":
            epochs[-1] += line["ids"]
        else:
            epochs.append([])
    assert len(epochs) == 4
    numbers = [{name.rpartition("-")[2] for name in epoch if not name.endswith("/original")} for epoch in epochs[:3]]
    assert numbers == [{"1"}, {"2"}, {"1"}]
    originals = [sorted(name for name in epoch if name.endswith("/original")) for epoch in epochs[:3]]
    assert originals[0] == originals[1]
    assert len(set(originals[0])) == len(originals[0])
    one, two = (
        json.loads((tmp_path / name / "run.json").read_text("utf-8"))["data"]["splits"] for name in ("one", "two")
    )
    assert one["test"] == two["test"]
    assert one["validation"] == two["validation"]
    assert two["train"]["negatives"]["crosspair"] == 2 * one["train"]["negatives"]["crosspair"]


def test_align_has_no_turns():
    with pytest.raises(InputError, match="give negatives instead of redraws"):
        make_config({"head": "align", "redraws": 2})

"""Settings of a training run: what is refused, and what is filled in."""

import pytest

from negsample.errors import InputError
from negsample.train.config import TrainConfig, make_config


def test_defaults_follow_the_head():
    assert TrainConfig().resolved().optimizer == "adamw"
    frozen = TrainConfig(freeze_encoder=True).resolved()
    fc = TrainConfig(head="fc").resolved()
    assert frozen.optimizer == fc.optimizer == "rmsprop"
    assert fc.learning_rate == 0.001
    assert TrainConfig(learning_rate=0.5).resolved().learning_rate == 0.5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rat", 1),
        ("epochs", "many"),
        ("epochs", 0),
        ("loss", "hinge"),
        ("learning_rate", 0),
        ("learning_rate", 1e308),
        ("weight_decay", 1e308),
        ("seed", 2**63),
        ("seed", -1),
        ("warmup", 2.0),
        ("max_gradient_norm", float("nan")),
        ("corpus", [1, 2]),
        ("sample", 1.5),
        ("lm", " "),
    ],
)
def test_a_wrong_value_is_refused_by_name(key, value):
    with pytest.raises(InputError, match=f"configuration: .*{key}") as error:
        make_config({key: value})
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="redraws"):
        make_config({"head": "align", "redraws": 2})


def test_no_set_of_negatives_beyond_the_last_epoch():
    assert make_config({"head": "fc", "redraws": 1000}).resolved().redraws == 30
    assert make_config({"head": "fc", "redraws": 10, "epochs": 4}).resolved().redraws == 4
    assert make_config({"head": "fc", "redraws": 2}).resolved().redraws == 2

"""Configuration: YAML and key=value words, and what is refused."""

import pytest

from negsample.errors import InputError
from negsample.train.config import TrainConfig, make_config, read_config


def test_words_win_over_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("corpus: a.jsonl\nlearning_rate: 3e-5\nepochs: 2\n")
    config = read_config(path, ["epochs=7", "limit=10", "corpus=[x.jsonl, y.csv]", "loss=null"])
    assert (config.epochs, config.limit, config.learning_rate) == (7, 10, 3e-5)
    assert config.corpora() == ["x.jsonl", "y.csv"]
    assert config.loss is None


def test_yaml_words_that_are_not_booleans():
    assert read_config(None, ["mixed_precision=no"]).mixed_precision == "no"
    with pytest.raises(InputError, match="mixed_precision"):
        read_config(None, ["mixed_precision=yes"])


def test_defaults_follow_the_head():
    assert TrainConfig().resolved().optimizer == "adamw"
    frozen = TrainConfig(freeze_encoder=True).resolved()
    fc = TrainConfig(head="fc").resolved()
    assert frozen.optimizer == fc.optimizer == "rmsprop"
    assert fc.learning_rate == 0.001
    assert TrainConfig(learning_rate=0.5).resolved().learning_rate == 0.5


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"learning_rat": 1}, "learning_rate"),
        ({"epochs": "many"}, "epochs must be"),
        ({"epochs": 0}, "at least 1"),
        ({"epochs": True}, "epochs must be"),
        ({"loss": "hinge"}, "bce, mse, ranking"),
        ({"learning_rate": 0}, "above 0"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"warmup": 2.0}, "[0, 1]"),
        ({"corpus": [1, 2]}, "corpus must be"),
    ],
)
def test_wrong_values_are_named(values, told):
    with pytest.raises(InputError, match="configuration") as error:
        make_config(values)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "epochs: {x: 1}\n"])
def test_wrong_files_are_named(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"c\.yaml"):
        read_config(path)


def test_missing_file_and_bad_word(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.yaml"):
        read_config(tmp_path / "nothing.yaml")
    with pytest.raises(InputError, match="expected key=value"):
        read_config(None, ["epochs"])

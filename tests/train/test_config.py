"""Configuration: YAML and key=value words, and what is refused."""

import pytest

from negsample.errors import InputError
from negsample.train.config import TrainConfig, make_config, read_config, read_values


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
        ({"weight_decay": float("inf")}, "weight_decay must be a finite number"),
        ({"max_gradient_norm": float("nan")}, "max_gradient_norm must be a finite number"),
        ({"corpus": [1, 2]}, "corpus must be"),
    ],
)
def test_wrong_values_are_named(values, told):
    with pytest.raises(InputError, match="configuration") as error:
        make_config(values)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_key_that_is_given_twice_is_named(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("corpus: x\nhead: fc\nrecipe: {add: 1}\nhead: cnn\n")
    with pytest.raises(InputError, match=r"c\.yaml, line 4: not valid YAML \('head' is given twice\)"):
        read_config(path)
    # The same key in another mapping is another key, and one that is merged in may be given again.
    path.write_text("base: &a {add: 1}\nother: {<<: *a, add: 2}\n")
    assert read_values(path) == {"base": {"add": 1}, "other": {"add": 2}}


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "epochs: {x: 1}\n"])
def test_wrong_files_are_named(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"c\.yaml"):
        read_config(path)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("sources: {a: a.jsonl}\nheads: [fc]\n", "transfer"),
        ("train: {corpus: a.jsonl}\nspace: {epochs: {low: 1, high: 3}}\n", "tune"),
        ("table: p3-table2\ncorpus: a.jsonl\n", "tables p3-table2"),
        ("corpus: a.jsonl\nencoders: [use]\n", "tables TABLE"),
        ("corpus: a.jsonl\nheads: [fc, cnn]\n", "tables TABLE"),
    ],
)
def test_a_file_for_another_command_is_told_from_a_slip(tmp_path, text, command):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"c\.yaml: is not for train .* run negsample {command} --config") as error:
        read_config(path, ["epochs=2"])
    assert "\n" not in str(error.value)
    path.write_text("corpus: a.jsonl\nheads: fc\n")
    with pytest.raises(InputError, match=r"unknown key 'heads'; did you mean head\?"):
        read_config(path)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("p3_table1_newsroom", "tables p3-table1"),
        ("p3_table2_cnn_dailymail", "tables p3-table2"),
        ("p3_table3_transfer", "transfer"),
    ],
)
def test_packaged_files_name_their_command(negsample, tmp_path, name, command):
    done = negsample("train", "--config", name, "--out", tmp_path / "m", check=2)
    assert f"{name}: is not for train" in done.stderr
    assert f"run negsample {command} --config {name}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_missing_file_and_bad_word(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.yaml"):
        read_config(tmp_path / "nothing.yaml")
    with pytest.raises(InputError, match="expected key=value"):
        read_config(None, ["epochs"])


def test_no_set_of_negatives_beyond_the_last_epoch():
    assert make_config({"head": "fc", "redraws": 1000}).resolved().redraws == 30
    assert make_config({"head": "fc", "redraws": 10, "epochs": 4}).resolved().redraws == 4
    assert make_config({"head": "fc", "redraws": 2}).resolved().redraws == 2

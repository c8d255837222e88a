"""Settings of training by a reward."""

import pytest

from negsample.errors import InputError
from negsample.train.reinforce.config import make_reinforce_config, read_reinforce_config


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"rewrad": "words"}, "reward"),
        ({"policy": "compress"}, "policy"),
        ({"policy": "abstract"}, "model"),
        ({"policy": "abstract", "model": "x", "words": 5}, "words"),
        ({"model": "x"}, "model"),
        ({"gamma": 1.5}, "gamma"),
        ({"gamma": float("nan")}, "gamma"),
        ({"length": "20 to 30"}, "length"),
        ({"words": 5, "sentences": 2}, "sentences"),
        ({"epochs": 0, "ml_epochs": 0}, "ml_epochs"),
        ({"references": False, "unsupervised": "x"}, "unsupervised"),
        ({"system": "lead"}, "system"),
        ({"unsupervised_share": 1.0}, "unsupervised_share"),
        ({"validation_share": 0.5, "test_share": 0.5}, "test_share"),
        ({"learning_rate": 0}, "learning_rate"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(values: dict, key: str) -> None:
    with pytest.raises(InputError, match=key):
        make_reinforce_config(values)


def test_what_depends_on_other_settings_is_filled_in() -> None:
    plain = make_reinforce_config({"references": False, "length": "20-30"}).resolved()
    assert (plain.gamma, plain.ml_epochs, plain.sentences, plain.band) == (1.0, 0, 3, (20, 30))
    assert make_reinforce_config({"policy": "abstract", "model": "x"}).resolved().sentences is None


def test_the_packaged_file_is_read() -> None:
    assert read_reinforce_config("reinforce_sample", ["epochs=2"]).epochs == 2

"""Settings of training by a reward."""

import pytest

from negsample.configs import find_config
from negsample.errors import InputError
from negsample.train.config import read_config
from negsample.train.reinforce.config import make_reinforce_config, read_reinforce_config


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"rewrad": "words"}, "did you mean reward"),
        ({"policy": "compress"}, "one of extract, abstract"),
        ({"policy": "abstract"}, "needs model"),
        ({"policy": "abstract", "model": "x", "words": 5}, "go with policy=extract"),
        ({"model": "x"}, "goes with policy=abstract"),
        ({"gamma": 1.5}, "lie in"),
        ({"gamma": float("nan")}, "at least 0"),
        ({"length": "20 to 30"}, "band of words"),
        ({"words": 5, "sentences": 2}, "not both"),
        ({"epochs": 0, "ml_epochs": 0}, "nothing would be trained"),
        ({"references": False, "unsupervised": "x"}, "leave unsupervised out"),
        ({"system": "lead"}, "name of its own"),
        ({"unsupervised_share": 1.0}, "between 0 and 1"),
    ],
)
def test_wrong_settings_are_told(values: dict, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        make_reinforce_config(values)


def test_what_depends_on_other_settings_is_filled_in() -> None:
    plain = make_reinforce_config({"references": False, "length": "20-30"}).resolved()
    assert (plain.gamma, plain.ml_epochs, plain.sentences, plain.band) == (1.0, 0, 3, (20, 30))
    assert make_reinforce_config({"policy": "abstract", "model": "x"}).resolved().sentences is None


def test_the_packaged_file_is_read_and_train_sends_it_here() -> None:
    assert read_reinforce_config("reinforce_sample", ["epochs=2"]).epochs == 2
    with pytest.raises(InputError, match="negsample reinforce"):
        read_config(find_config("reinforce_sample"))

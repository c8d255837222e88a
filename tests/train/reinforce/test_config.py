"""Settings and documents of training by a reward."""

import json
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.settings import make_settings
from negsample.train.reinforce import read_sources
from negsample.train.reinforce.config import ReinforceConfig

STORY = "One came. Two came. Three came. Four came. Five came. Six came."


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"rewrad": "words"}, "reward"),
        ({"policy": "abstract"}, "model"),
        ({"policy": "abstract", "model": "x", "words": 5}, "words"),
        ({"model": "x"}, "model"),
        ({"gamma": 1.5}, "gamma"),
        ({"length": "20 to 30"}, "length"),
        ({"words": 5, "sentences": 2}, "sentences"),
        ({"epochs": 0, "ml_epochs": 0}, "ml_epochs"),
        ({"references": False, "unsupervised": "x"}, "unsupervised"),
        ({"system": "lead"}, "system"),
        ({"unsupervised_share": 1.0}, "unsupervised_share"),
        ({"validation_share": 0.5, "test_share": 0.5}, "test_share"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(values: dict, key: str) -> None:
    with pytest.raises(InputError, match=key):
        make_settings(ReinforceConfig, values, "settings")


def test_what_depends_on_other_settings_is_filled_in() -> None:
    plain = make_settings(ReinforceConfig, {"references": False, "length": "20-30"}, "settings").resolved()
    assert (plain.gamma, plain.ml_epochs, plain.sentences, plain.band) == (1.0, 0, 3, (20, 30))
    assert make_settings(ReinforceConfig, {"policy": "abstract", "model": "x"}, "settings").resolved().sentences is None


def test_headlines_are_first_lines_and_stories_five_sentences(tmp_path: Path) -> None:
    rows = [
        # Two highlights; a summary of one line; one that is too short; many more that are well.
        (f"{STORY} 1", "Five came, said one\nSix came, said two"),
        (f"{STORY.replace('One', 'Ten')}", "Ten came, they say. Others came."),
        (f"{STORY.replace('One', 'Ann')}", "Short"),
        *((STORY.replace("One", f"Bob {n}"), f"Bob {n} came, they say") for n in range(17)),
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"document": d, "summary": s}) + "\n" for d, s in rows))
    values = {"corpus": str(path), "headlines": True, "headline_characters": 10}
    sources, _, about = read_sources(make_settings(ReinforceConfig, values, "settings"))
    found = {source.document: source.references for part in sources.values() for source in part}
    assert len(found) == 19
    assert found["One came. Two came. Three came. Four came. Five came."] == ("Five came, said one",)
    assert found["Ten came. Two came. Three came. Four came. Five came."] == ("Ten came, they say.",)
    assert about["skipped"] == "skipped 1 record: 1 a headline of fewer than 10 characters"
    few, _, _ = read_sources(make_settings(ReinforceConfig, {"corpus": str(path), "sample": 6}, "settings"))
    assert sum(map(len, few.values())) == 6

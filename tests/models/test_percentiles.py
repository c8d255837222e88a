"""Percentiles: what is kept of real summaries' scores, and what share is lower."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models.folder import percentiles_of, read_percentiles, share_below


def test_few_are_kept_as_they_are(tmp_path: Path) -> None:
    made = percentiles_of(
        {"score": np.float32([0.5, 0.25, 0.75, 0.25]), "form": np.array([np.nan, 0.5]), "support": np.array([np.nan])},
        "mine",
    )
    assert made["values"] == {"score": [0.25, 0.25, 0.5, 0.75], "form": [0.5]}
    assert made["summaries"] == {"score": 4, "form": 1}
    (tmp_path / "p.json").write_text(json.dumps(made))
    known = read_percentiles(tmp_path / "p.json")
    assert known is not None
    scores = np.array([0.1, 0.25, 0.3, 0.75, 0.9, np.nan])
    # Strictly lower: a summary is not better than itself.
    assert share_below(known[""]["score"], scores)[:5].tolist() == [0, 0, 0.5, 0.75, 1]
    assert np.isnan(share_below(known[""]["score"], scores)[5])
    # The same score from another batch differs in its last digits.
    assert share_below(known[""]["score"], np.float32([0.2500003])) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=900), st.floats(0, 1))
def test_many_are_kept_as_quantiles_that_are_right_to_a_third_of_a_percent(values, score) -> None:
    known = np.array(percentiles_of({"score": np.array(values)}, "")["values"]["score"])
    assert len(known) == min(len(values), 200)
    assert (np.diff(known) >= 0).all()
    found = share_below(known, np.array([score]))[0]
    exact = np.mean(np.round(values, 5) < np.round(score, 5))
    assert found == pytest.approx(exact, abs=1e-9 if len(values) <= 200 else 0.0051)


def test_a_domain_with_twenty_summaries_has_its_own() -> None:
    # News scores 0, .01, … .19 and law .5, .51, … .68; one summary is of a kind that nobody told.
    scores = np.array([*(np.arange(20) / 100), *(0.5 + np.arange(19) / 100), 0.9])
    form = np.where(np.arange(40) == 3, np.nan, scores)
    made = percentiles_of({"score": scores, "form": form}, "mine", ["news"] * 20 + ["law"] * 19 + [""])
    # Of form, news has 19 values.
    told = {"summaries": {"score": 20}, "values": {"score": [k / 100 for k in range(20)]}}
    assert made["domains"] == {"news": told}
    assert made["summaries"] == {"score": 40, "form": 39}
    assert {**made, "domains": {}} == percentiles_of({"score": scores, "form": form}, "mine")


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=120), st.data())
def test_a_domains_values_are_those_of_its_summaries_alone(domains, data) -> None:
    scores = np.array([data.draw(st.floats(0, 1)) for _ in domains])
    made = percentiles_of({"score": scores}, "", domains)["domains"]
    assert set(made) == {domain for domain, count in Counter(domains).items() if domain and count >= 20}
    for domain, part in made.items():
        alone = [score for score, own in zip(scores, domains, strict=True) if own == domain]
        assert part["values"] == percentiles_of({"score": np.array(alone)}, "")["values"]


def test_no_more_than_the_fifty_largest_domains() -> None:
    domains = [f"d{k:02}" for k in range(60) for _ in range(20)] + ["large"] * 21
    made = percentiles_of({"score": np.linspace(0, 1, len(domains))}, "", domains)["domains"]
    assert sorted(made) == [f"d{k:02}" for k in range(49)] + ["large"]


def test_no_file_and_a_damaged_one(tmp_path: Path) -> None:
    assert read_percentiles(tmp_path / "none.json") is None
    for content in (
        "{",
        "[]",
        '{"values": {"score": [0.5, 0.2]}}',
        '{"values": {"score": "x"}}',
        '{"values": {"a": []}}',
        '{"values": {"a": [1]}, "domains": ["news"]}',
        '{"values": {"a": [1]}, "domains": {"news": {"values": {"a": [0.5, 0.2]}}}}',
    ):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(InputError, match=r"p\.json: damaged"):
            read_percentiles(tmp_path / "p.json")

"""The gate: means and single records against limits, and what is named where they are not held."""

import pytest
from fake_scorer import FakeScorer, columns_of

from negsample.errors import InputError
from negsample.scoring.gate import Gate, parse_limits


class Model(FakeScorer):
    """A score and an aspect between 0 and 1, and a target on people's scale."""

    aspects = ("support", "likert")
    shares = ("score", "support")


def test_limits_as_they_are_written() -> None:
    assert parse_limits(["support=0.4", "7"]) == {"support": 0.4, "score": 7.0}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["supprt=0.4"], "support"),
        (["0.4", "score=0.5"], "score twice"),
        (["much"], "give a number"),
        (["support"], "give a number, as in 0.5 or support=0.4"),
        (["0.4=support"], "give a number"),
        (["nan"], "not a finite number"),
        (["likert=inf"], "not a finite number"),
        (["7"], "score=7 is outside"),
        (["support=40"], "support=40 is outside"),
        (["support=-5"], "support=-5 is outside"),
        ([], "no limit"),
    ],
)
def test_limits_that_can_not_be(words: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Gate(parse_limits(words), Model())  # type: ignore[arg-type]


def test_other_scales_have_other_limits() -> None:
    Gate({"likert": 4.5, "support": 1}, Model())  # type: ignore[arg-type]
    Gate({"score": 7}, FakeScorer())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a finite number"):
        Gate({"likert": "4"}, Model())  # type: ignore[arg-type, dict-item]


def failures(limits: dict[str, float], *values: float | None, each: bool = False, systems: str = "") -> list[str]:
    gate = Gate(limits, Model(), each)  # type: ignore[arg-type]
    gate.add([f"line {n + 1}" for n in range(len(values))], columns_of(*values, support=values), [*systems])
    return gate.failures()


def test_where_nothing_was_measured_no_limit_is_held() -> None:
    with pytest.raises(InputError, match="no pair was measured"):
        failures({"score": 0.1})


def test_the_mean_decides_or_every_record_does() -> None:
    values = (0.5, 0.25, 0.75)
    assert failures({"score": 0.5}, *values) == []
    assert failures({"support": 0.5}, *values, each=True) == [
        "1 of 3 records have support under 0.5; lowest: line 2 (0.2500)"
    ]
    assert failures({"score": 0.51}, *values) == [
        "mean score 0.5000, under 0.51; lowest: line 2 (0.2500), line 1 (0.5000), line 3 (0.7500)"
    ]


def test_a_missing_value_is_under_every_limit_and_no_part_of_a_mean() -> None:
    assert failures({"score": 0.4}, None, 0.5) == []
    assert failures({"score": 0.4}, 0.5, None, each=True) == [
        "1 of 2 records have score under 0.4 (1 have none); lowest: line 2 (none)"
    ]
    assert failures({"score": 0.4}, None) == ["mean score is missing, under 0.4 (1 have none); lowest: line 1 (none)"]


def test_ten_lowest_are_named_the_first_of_equal_ones_first() -> None:
    (line,) = failures({"score": 0.9}, *(k % 12 / 100 for k in range(24)))
    named = line.partition("lowest: ")[2].split(", ")
    assert named == [f"line {n} (0.0{k}00)" for k in range(5) for n in (k + 1, k + 13)]


def test_each_system_has_to_hold_it() -> None:
    told = failures({"score": 0.5}, 0.6, 0.2, 0.4, systems="abb")
    assert [line.partition(";")[0] for line in told] == ["b: mean score 0.3000, under 0.5"]

"""The gate: means and single records against limits, and what is named where they are not held."""

import pytest

from negsample.errors import InputError
from negsample.scoring.gate import Gate, parse_limits
from negsample.scoring.outcomes import Outcome


def test_limits_as_they_are_written() -> None:
    assert parse_limits(["support=0.4", "0.5"], ["support"]) == {"support": 0.4, "score": 0.5}
    for words, told in (
        (["supprt=0.4"], "support"),
        (["0.4", "score=0.5"], "score twice"),
        (["much"], "give a number"),
        (["nan"], "give a number"),
        (["0.4=support"], "write support=0.4"),
        (["7"], "between 0 and 1"),
    ):
        with pytest.raises(InputError, match=told):
            parse_limits(words, ["support"])
    assert parse_limits(["7"]) == {"score": 7.0}


def filled(limits: dict[str, float], values: list[float | None], each: bool = False) -> Gate:
    gate = Gate(limits, each)
    for number, value in enumerate(values, start=1):
        gate.add(f"line {number}", Outcome(value, aspects={"support": value}))
    return gate


def test_the_mean_decides_or_every_record_does() -> None:
    values: list[float | None] = [0.5, 0.25, 0.75]
    assert filled({"score": 0.5}, values).failures() == []
    assert filled({"support": 0.5}, values, each=True).failures() == [
        "1 of 3 records have support under 0.5; lowest: line 2 (0.2500)"
    ]
    assert filled({"score": 0.51}, values).failures() == [
        "mean score 0.5000, under 0.51; lowest: line 2 (0.2500), line 1 (0.5000), line 3 (0.7500)"
    ]


def test_a_missing_value_is_under_every_limit_and_no_part_of_a_mean() -> None:
    assert filled({"score": 0.4}, [None, 0.5]).failures() == []
    assert filled({"score": 0.4}, [0.5, None], each=True).failures() == [
        "1 of 2 records have score under 0.4 (1 have none); lowest: line 2 (none)"
    ]
    assert filled({"score": 0.4}, [None]).failures() == [
        "mean score is missing, under 0.4 (1 have none); lowest: line 1 (none)"
    ]


def test_ten_lowest_are_named_the_first_of_equal_ones_first() -> None:
    (line,) = filled({"score": 0.9}, [k % 12 / 100 for k in range(24)]).failures()
    named = line.partition("lowest: ")[2].split(", ")
    assert named == [f"line {n} (0.0{k}00)" for k in range(5) for n in (k + 1, k + 13)]


def test_each_system_has_to_hold_it() -> None:
    gate = Gate({"score": 0.5})
    for system, value in (("a", 0.6), ("b", 0.2), ("b", 0.4)):
        gate.add("line 1", Outcome(value), system)
    assert [line.partition(";")[0] for line in gate.failures()] == ["b: mean score 0.3000, under 0.5"]

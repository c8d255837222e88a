"""What the README shows is what a reader gets."""

import re
from pathlib import Path

import pytest
from tests_support import command_line

from negsample.cli import app

README = Path(__file__).parents[1] / "README.md"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_the_table_that_it_shows_is_what_the_first_command_prints() -> None:
    text = README.read_text(encoding="utf-8")
    (command,) = re.findall(r"\.venv/bin/(negsample score sample.*?) &&", text)
    shown = re.search(r"^record .*?(?=^```)", text, re.M | re.S)[0].splitlines()
    assert len(shown) == 10
    printed = command_line(*command.split()[1:]).stdout.splitlines()[:10]
    assert [_NUMBER.sub("#", line).split() for line in printed] == [_NUMBER.sub("#", line).split() for line in shown]
    for one, other in zip(printed, shown, strict=True):
        # The last digit is another one on some processors; a percentile moves by one of the 80 summaries.
        numbers = [[float(number) for number in _NUMBER.findall(line)] for line in (one, other)]
        for new, old in zip(*numbers, strict=True):
            assert new == pytest.approx(old, abs=0.002 if old < 1 else 2), (one, other)


def test_it_names_every_command() -> None:
    told = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z-]+)[^`]*`", re.sub(r"```.*?```", "", told, flags=re.S)))
    named |= set(re.findall(r"negsample ([a-z-]+)", told))
    missing = {
        command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands
    } - named
    assert not missing

"""The pages: texts are inert, numbers are there, nothing is fetched; the plots, and the map of two sets of texts."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from pages import check

from negsample.errors import InputError
from negsample.eval.agreement import columns
from negsample.eval.agreement.compare import Settings as CompareSettings
from negsample.eval.agreement.compare import compare
from negsample.eval.agreement.correlate import Correlation, Settings, correlate
from negsample.eval.agreement.figures import SampleSize
from negsample.eval.agreement.levels import MAIN_COEFFICIENT
from negsample.eval.report import plots, render
from negsample.eval.report.compare import comparison_page
from negsample.eval.report.correlate import agreement_json, correlation_page
from negsample.eval.report.plots import curve_plot, map_texts, project, scatter, shared_scale
from negsample.terminal import number, p_text, short

HOSTILE = (
    "<script>alert('x')</script><img src=http://example.com/a.png onerror=alert(1)> & \"quoted\" {{ 7*7 }} ]]> </p>"
)


def hostile_rows() -> list[dict]:
    """Judgments whose every text and name tries to break out of the page."""
    rng = np.random.default_rng(0)
    return [
        {
            "dataset": f"set {HOSTILE}",
            "document_id": f"d{d} {HOSTILE}",
            "system": f"s{s} {HOSTILE}",
            "document": f"Document {d} of many words. {HOSTILE}",
            "summary": f"Summary {'word ' * (s + 1)} {HOSTILE}",
            "references": [f"Reference {d} {HOSTILE}"],
            "scores": {f"good {HOSTILE}": float(rng.normal()), "plain": float(s + rng.normal())},
        }
        for d in range(10)
        for s in range(5)
    ]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Correlation:
    """The agreement of ROUGE and the baselines that need no encoder with both human scores."""
    path = tmp_path_factory.mktemp("report") / "made.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in hostile_rows()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BASELINES", ("words", "copied", "tf-recall", "lead-overlap"))
        return correlate(Settings((str(path),), metrics=("rouge1",), bootstrap=30))


def test_hostile_texts_are_inert_and_shown_as_they_are(result: Correlation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["negsample", "correlate", HOSTILE])
    page = check(correlation_page(result))
    assert "img" not in {tag for tag, _ in page.tags}
    shown = "".join(page.words)
    assert shown.count(HOSTILE) > 10
    assert "49" not in re.findall(r"quoted\" (\S+) \]\]", shown)


def test_the_page_shows_every_metric_with_the_figures_of_the_json(result: Correlation) -> None:
    page = check(correlation_page(result))
    shown = "".join(page.words)
    plain = agreement_json(result)
    json.dumps(plain, allow_nan=False)
    for figure in plain["datasets"][0]["figures"]:
        if figure["coefficient"] == MAIN_COEFFICIENT[figure["level"]]:
            assert number(figure["value"]) in shown
    values = [figures["summary"].value for _, figures, _ in result.datasets[0].lines("plain")]
    assert values == sorted(values, key=lambda v: -2 if v is None else v, reverse=True)
    # One table cell a metric and metric in each matrix of who beats whom, for each human score.
    cells = [a for tag, a in page.tags if tag == "td" and a.get("class") in ("same", "win", "loss", "tie", "none")]
    matrices = len(cells) / len(result.columns) ** 2
    assert matrices + shown.count("no two metrics could be compared: ") == 3 * len(result.datasets[0].table.human)


def test_the_comparison_page(tmp_path: Path) -> None:
    rows = [
        {
            "document_id": f"d{d}",
            "document": f"Text {d}. {HOSTILE}",
            "system": f"{s} {HOSTILE}",
            "summary": "w " * (d % 3 + k) + HOSTILE,
        }
        for k, s in enumerate(("old", "new"), start=1)
        for d in range(6)
    ]
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = compare(CompareSettings(metrics=("words",), inputs=(str(path),), bootstrap=50))
    page = check(comparison_page(result))
    assert "1.0000" in "".join(page.words)


def test_bars_stand_where_their_values_are(result: Correlation) -> None:
    page = check(correlation_page(replace(result, settings=replace(result.settings, levels=("pooled",)))))
    bars = [(a.get("class"), a.get("style")) for tag, a in page.tags if tag in ("span", "i")]
    drawn = [f for f in result.datasets[0].figures if (f.level, f.coefficient) == ("pooled", "pearson")]
    drawn = [figure for figure in drawn if figure.value is not None]
    assert [name for name, _ in bars].count("bar") == len(drawn) > 2
    for figure in drawn:
        place = bars.index(("dot", f"--at:{figure.value}"))
        assert bars[place - 1] == ("span", f"--at:{figure.low};--to:{figure.high}")
        assert bars[place - 2] == ("zero", "--at:0")


@pytest.mark.parametrize(
    ("values", "zero", "expected"),
    [
        ([0.31, 0.52], True, (0, 0.6)),
        ([-0.3, 0.7], True, (-0.5, 0.75)),
        ([20.2, 21.7], False, (20, 22)),
        ([3.0, 3.0], False, None),
        ([0.0, 1e-9], False, (0, 1e-9)),
        ([None, float("nan")], True, None),
    ],
)
def test_a_shared_scale_is_round_and_holds_its_values(
    values: list[float | None], zero: bool, expected: tuple[float, float] | None
) -> None:
    low, high = shared_scale(values, zero=zero)
    assert low < high
    assert all(low <= value <= high for value in values if value is not None and np.isfinite(value))
    assert not zero or low <= 0 <= high
    if expected is not None:
        assert (low, high) == pytest.approx(expected)


def paths(plot: str, colour: str) -> list[list[str]]:
    """The places of each line of ``colour`` in a plot."""
    lines = re.findall(r'<path d="([^"]*)" style="[^"]*stroke: var\(--' + colour, plot)
    return [re.findall(r"[ML] (\S+ \S+)", line) for line in lines]


def test_plots_hold_all_points_and_survive_constants() -> None:
    arguments = {"x_label": "<x> $y$", "y_label": "y", "description": '"d"'}
    plot = scatter(np.array([0.0, 1.0, 1.0]), np.array([2.0, 3.0, 3.0]), [("s<s>", 0.5, 2.5)], **arguments)
    # Two summaries on one place are one point: a line from it to itself.
    (points,) = paths(plot, "c0")
    assert len(points) == 4
    assert len(set(points)) == 2
    assert ">&lt;x&gt; $y$</text>" in plot
    assert 'aria-label="&quot;d&quot;"' in plot
    assert "<title>s&lt;s&gt;: 0.5, 2.5</title>" in plot
    # Nothing that holds for the page, clashes with another plot, or keeps a colour of its own.
    assert not re.search(r"<style|<defs|<use| id=|clip-path|url\(|http|#[0-9a-f]{6}", plot)
    assert plot == scatter(np.array([0.0, 1.0, 1.0]), np.array([2.0, 3.0, 3.0]), [("s<s>", 0.5, 2.5)], **arguments)
    assert "nan" not in scatter(np.zeros(3), np.ones(3), [], x_label="x\x00", y_label="y" * 99, description="d")
    plot = curve_plot([("m", [(1, 0.2, -1.5, 0.3), (8, 0.6, 0.5, 0.7)])], (-1, 1), "n", "r", "d")
    assert [len(line) for line in paths(plot, "c0")] == [2]
    assert ">8</text>" in plot
    assert "−1.00</text>" in plot
    assert "−1.25" not in plot
    assert "nan" not in curve_plot([("m", [(4, 0.2, 0.2, 0.2)])], (-1, 1), "n", "r", "d")


def test_sizes_without_a_correlation_are_left_out_of_the_curve(result: Correlation) -> None:
    sizes = (SampleSize(1, 0.2, 0.1, 50, 0), SampleSize(4, None, None, 0, 50), SampleSize(8, 0.6, None, 50, 0))
    data = replace(result.datasets[0], sampling={("plain", "rouge1"): sizes})
    page = correlation_page(replace(result, datasets=(data,)))
    plot = page[page.index("System-level Pearson r with plain") :]
    assert "rouge1 0.2 to 0.6" in plot
    assert len(paths(plot, "c0")[0]) == 2


def test_the_command_is_shown_as_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/x/negsample", "transfer", "a b"])
    page = render("base.html.j2")
    assert ">negsample transfer &#39;a b&#39;</pre>" in page


def test_printed_forms() -> None:
    assert (number(-0.5), number(None), number(0.25, 2), number(-0.0001)) == ("−0.500", "–", "0.25", "0.000")
    assert (p_text(0.0004), p_text(0.05), p_text(None)) == ("< 0.001", "0.050", "–")
    assert (short(0.000123456), short(-1e-5), short(3), short("fc"), short(None)) == (
        "0.0001235",
        "−1e−05",
        "3",
        "fc",
        "–",
    )


# --- the map of two sets of texts


def groups(n: int = 30, m: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 12)), rng.normal(size=(m, 12)) + 9


def test_separate_groups_stay_separate_and_calls_repeat() -> None:
    first, second = project(*groups())
    everything = np.concatenate([first, second])
    near = np.linalg.norm(everything[:, None] - everything[None], axis=2) + np.diag([np.inf] * 50)
    own = np.arange(50) < 30
    assert (own[near.argmin(axis=1)] == own).all()
    assert np.array_equal(first, project(*groups())[0])
    line = np.arange(9.0)[:, None]
    assert np.isfinite(np.concatenate(project(line, line + 0.5))).all()


@pytest.mark.parametrize(
    "sides",
    [*(groups(*sizes) for sizes in ((1, 1), (2, 1), (3, 2), (1, 7))), (np.ones((8, 3)), np.ones((9, 3)))],
)
def test_few_points_and_one_point(sides: tuple[np.ndarray, np.ndarray]) -> None:
    places = project(*sides)
    assert [len(place) for place in places] == [len(side) for side in sides]
    assert all(place.shape[1] == 2 and np.isfinite(place).all() for place in places)


def test_texts_beyond_the_limit_and_without_a_vector_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path))
    letters: Any = SimpleNamespace(name="letters", dim=3, unit="sentence", fingerprint="8" * 64, counts=Counter())
    letters.encode = lambda texts: np.array([[text.count(c) for c in "abc"] for text in texts], dtype=np.float32)
    texts, names = (["a", "aab", "b", "?"], ["c", "cc", "bc"]), ("one & $x$", "right")
    svg = map_texts(*texts, letters, names=names)
    assert svg == map_texts(*texts, letters, names=names)
    shown = "".join(ElementTree.fromstring(svg).itertext())
    assert "one & $x$ (3 of 4)" in shown
    assert "right (3)" in shown
    assert map_texts(*texts, letters, format="png").startswith(b"\x89PNG")
    monkeypatch.setattr(plots, "_MOST", 2)
    assert b"right (2 of 3)" in map_texts(*texts, letters, names=names)
    with pytest.raises(InputError, match="none of the 1 reference texts"):
        map_texts(["a"], ["?"], letters)

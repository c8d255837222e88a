"""The pages in a real browser: nothing fetched, nothing logged, nothing wider than a phone, and printable."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium

from negsample.eval.agreement import columns
from negsample.eval.agreement.compare import Settings as CompareSettings
from negsample.eval.agreement.compare import compare
from negsample.eval.agreement.correlate import Settings, correlate
from negsample.eval.report.compare import comparison_page
from negsample.eval.report.correlate import correlation_page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium under Playwright, or a skip that says what is missing."""
    with chromium() as started:
        yield started


def _rows() -> list[dict]:
    rng = np.random.default_rng(1)
    return [
        {
            "dataset": "made",
            "document_id": f"d{d}",
            "system": f"a_system_with_a_long_name_{s}.txt",
            "document": f"Report {d}. " + "The harbour was closed on Monday and opened later. " * 30,
            "summary": "The harbour was closed. " * (s % 4 + 1) + f"Report {d}. " + "x" * 300 * (s == 4),
            "references": ["The harbour was closed on Monday."],
            "scores": {"a_human_score_with_a_long_name": float(s + rng.normal()), "form": float(rng.normal())},
        }
        for d in range(12)
        for s in range(8)
    ]


@pytest.fixture(scope="module", params=["correlate", "compare"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Either page, on disk."""
    folder = tmp_path_factory.mktemp("page")
    path = folder / "made.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _rows()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["negsample", request.param, "x" * 200])
        if request.param == "correlate":
            patch.setattr(columns, "BASELINES", ("words", "copied", "tf-recall", "lead-overlap"))
            settings = Settings((str(path),), metrics=("rouge1(value=recall)", "rouge2", "novelty2"), bootstrap=50)
            text = correlation_page(correlate(settings))
        else:
            metrics = ("words", "tf-recall")
            text = comparison_page(compare(CompareSettings(metrics=metrics, inputs=(str(path),), bootstrap=50)))
    (folder / "report.html").write_text(text, encoding="utf-8")
    return folder / "report.html"


# Contrast (WCAG 2, relative luminance) of every element with text of its own against the page's ground.
_CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = text => {
    const [r, g, b] = rgb(text).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  return [...document.body.querySelectorAll('*')].filter(own).map(e => {
    const style = getComputedStyle(e);
    const ink = light(e.ownerSVGElement ? style.fill : style.color);
    const [a, b] = [Math.max(ink, ground), Math.min(ink, ground)];
    return {element: e.tagName + '.' + (e.getAttribute('class') || ''), ratio: (a + 0.05) / (b + 0.05)};
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_fetched_logged_or_too_wide(browser: Any, page: Path, width: int, scheme: str) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    try:
        requests: list[str] = []
        faults: list[str] = []
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("console", lambda message: faults.append(message.text))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.goto(page.as_uri())
        tab.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
        assert faults == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("table.figures").count() >= 2
        assert tab.locator("table.figures").first.is_visible()
        assert [found for found in tab.evaluate(_CONTRAST) if found["ratio"] < 4.5] == []
    finally:
        tab.close()


def test_it_prints_and_speaks(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    try:
        tab.goto(page.as_uri())
        data = tab.pdf(format="A4", landscape=True)
        assert data.startswith(b"%PDF-")
        assert len(data) > 10_000
        assert tab.evaluate("document.documentElement.lang") == "en"
        silent = "s => !s.getAttribute('aria-label') && s.ariaHidden !== 'true'"
        assert tab.evaluate(f"[...document.querySelectorAll('svg')].filter({silent}).length") == 0
        assert tab.evaluate("[...document.querySelectorAll('th')].filter(t => !t.scope).length") == 0
        assert tab.evaluate("document.querySelectorAll('h1').length") == 1
    finally:
        tab.close()

"""The page in a real browser: pasted texts, files, clicks, keys, widths, and texts that look like markup."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import chromium

DOCUMENT = "The harbour was closed on Monday. Nobody was hurt. The mayor will speak tomorrow."
SUMMARY = "The harbour was closed on Friday. Nobody was hurt"
HOSTILE = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"
HEBREW = "הנמל נסגר ביום שני. איש לא נפגע."


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium under Playwright, or a skip that says what is missing."""
    with chromium() as started:
        yield started


@contextmanager
def page(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A tab at ``url``, in which nothing is logged and nothing asked of others."""
    tab = browser.new_page(**options)
    tab.set_default_timeout(120_000)
    faults: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    try:
        tab.goto(url)
        yield tab
        assert faults == []
        own = tab.evaluate("location.origin") + "/" if url.startswith("http") else url
        assert [address for address in asked if not address.startswith((own, "data:"))] == []
        assert tab.title() == "negsample: why a summary scores as it does"
    finally:
        tab.close()


def paste(tab: Any, document: str, *summaries: str) -> None:
    """Type the texts, and have them scored."""
    tab.get_by_role("textbox", name="Document").fill(document)
    for place, summary in enumerate(summaries, start=1):
        if place > 1:
            tab.get_by_role("button", name="Add another summary").click()
        tab.get_by_label(f"Summary {place}" if place > 1 else "Summary", exact=True).fill(summary)
    tab.get_by_role("button", name="Score", exact=True).click()
    tab.locator("#view").wait_for()


def test_pasted_texts_and_what_a_sentence_rests_on(browser: Any, start: Any) -> None:
    with page(browser, f"http://127.0.0.1:{start().port}/") as tab:
        paste(tab, DOCUMENT, SUMMARY, "The mayor will speak.", "  ")
        assert tab.locator("#status").text_content() == "2 summaries scored."
        assert tab.locator(".card").count() == 2
        first = tab.locator(".card").first
        assert first.locator("mark.unsupported").all_text_contents() == ["Friday.", "hurt"]
        assert first.locator(".fault").text_content() == "Nobody was hurt"
        assert "Not borne out by the document: Friday.; hurt" in first.locator(".notes").text_content()
        # 7 of 9 words; half of that as percentile; one aspect that can't be judged.
        assert first.locator("dl").inner_text().split("\n") == [
            *("score", "0.778", "above 39 % of real summaries", "support", "0.778", "form", "–")
        ]
        units = tab.locator("#source-text .unit")
        assert [unit.get_attribute("class") for unit in units.all()] == ["unit said", "unit said", "unit left missing"]
        first.get_by_role("button", name="Nobody was hurt").click()
        assert tab.locator(".rested").text_content() == "Nobody was hurt. (said in the summary)"
        assert tab.locator("#rests").text_content() == (
            "Sentence 2 rests on sentence 2 of the document (support 0.667): Nobody was hurt."
        )
        # The keyboard does the same, and the document is then shown as the other summary covers it.
        other = tab.locator(".card").nth(1).get_by_role("button", name="The mayor will speak.")
        other.focus()
        tab.keyboard.press("Enter")
        assert other.get_attribute("aria-pressed") == "true"
        assert tab.locator(".rested").text_content() == "The mayor will speak tomorrow. (said in the summary)"
        assert "left missing" in str(units.nth(1).get_attribute("class"))


FORMS: dict[str, Callable[[list[dict[str, str]]], str]] = {
    "records.jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "records.json": lambda rows: json.dumps(rows, indent=1),
    "records.csv": lambda rows: (
        "\ufeffsystem,document,summary\r\n"
        + "".join(
            f'{row["system"]},"{row["document"]}","{row["summary"].replace(chr(34), chr(34) * 2)}"\r\n' for row in rows
        )
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_twenty_records(browser: Any, start: Any, tmp_path: Path, name: str) -> None:
    rows = [
        {"system": f"s{n}", "document": f"{DOCUMENT}\nIt was day {n // 2}.", "summary": f'It was, "day" {n}.'}
        for n in range(20)
    ]
    path = tmp_path / name
    path.write_bytes(FORMS[name]([*rows, {"system": "bad", "document": "", "summary": "a"}]).encode())
    service = start(pairs=8)
    with page(browser, f"http://127.0.0.1:{service.port}/") as tab:
        tab.get_by_label("Open a file").set_input_files(path)
        tab.locator("#view").wait_for()
        left = "1 records have no document or no summary and were left out."
        assert tab.locator("#status").text_content() == f"20 summaries scored. {left}"
        assert service.reader.batches == [8, 8, 4]
        assert tab.locator("#records-body tr").count() == 20
        assert tab.locator("#records-body td:last-child").nth(6).text_content() == 'It was, "day" 6.'
        tab.get_by_role("button", name="s7", exact=True).click()
        assert tab.locator(".card h3 span").all_text_contents() == ["s6", "s7"]
        assert tab.locator(".card.shown h3 span").text_content() == "s7"
        assert "It was day 3." in tab.locator("#source-text").text_content()
        assert tab.locator("#view-title").text_content() == "2 summaries of one document"


def test_a_file_that_is_none_says_so(browser: Any, start: Any, tmp_path: Path) -> None:
    told = {
        '{"document": "a", "summary": "b"}\n{"document": ': ("a.jsonl", "a.jsonl: line 2 is no JSON"),
        'document,summary\n"a,b': ("a.csv", "a.csv: a quote is not closed in record 2"),
        '{"text": "a"}': ("b.jsonl", "b.jsonl: no record has both a document and a summary."),
    }
    with page(browser, f"http://127.0.0.1:{start().port}/") as tab:
        for text, (name, fault) in told.items():
            (tmp_path / name).write_text(text)
            tab.get_by_label("Open a file").set_input_files(tmp_path / name)
            tab.locator("#status.wrong", has_text=fault).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_texts_stay_texts_and_nothing_is_too_wide(browser: Any, start: Any, width: int, scheme: str) -> None:
    with page(
        browser,
        f"http://127.0.0.1:{start(token='t').port}/",
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
    ) as tab:
        tab.get_by_label("Token").fill("t")
        texts = f"{HOSTILE} {HEBREW} {'X' * 300} 😀 was."
        paste(tab, texts, f"{texts} 😀 1,500", HEBREW)
        assert tab.locator("#source-text .unit > span:first-child").all_text_contents() == [
            f"{HOSTILE} {HEBREW.split('. ')[0]}.",
            "איש לא נפגע.",
            f"{'X' * 300} 😀 was.",
        ]
        assert tab.locator(".card").first.locator("mark").all_text_contents() == ["1,500"]
        assert tab.locator("main img, main script").count() == 0
        hebrew = tab.locator(".card").nth(1).locator(".text")
        assert hebrew.evaluate("e => getComputedStyle(e).direction") == "rtl"
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate(_POOR_CONTRAST) == []


# Elements with text of their own whose contrast to the ground behind them is below 4.5 (WCAG 2, relative luminance).
_POOR_CONTRAST = """() => {
  const pixel = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const mixed = colours => {
    pixel.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...pixel.getImageData(0, 0, 1, 1).data].map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = e => e ? [...grounds(e.parentElement), getComputedStyle(e).backgroundColor] : [];
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.checkVisibility();
  return [...document.body.querySelectorAll('*:not(script, noscript)')].filter(own).map(e => {
    const [a, b] = [mixed(grounds(e)), mixed([getComputedStyle(e).color])].sort((x, y) => y - x);
    return {element: e.outerHTML.slice(0, 80), ratio: (a + 0.05) / (b + 0.05)};
  }).filter(found => found.ratio < 4.5);
}"""


def test_the_page_says_what_the_service_refuses(browser: Any, start: Any) -> None:
    tab = browser.new_page()
    try:
        tab.goto(f"http://127.0.0.1:{start(token='right').port}/docs")
        assert tab.locator("h2").all_text_contents()[0] == "POST /v1/score"
        tab.get_by_role("link", name="here").click()
        tab.get_by_role("textbox", name="Document").fill(DOCUMENT)
        tab.get_by_label("Summary", exact=True).fill(SUMMARY)
        tab.get_by_role("button", name="Score", exact=True).click()
        tab.locator("#status.wrong", has_text="send the service's token: Authorization: Bearer TOKEN").wait_for()
    finally:
        tab.close()


def test_a_model_without_aspects_is_shown_with_its_score(browser: Any, start: Any) -> None:
    with page(browser, f"http://127.0.0.1:{start(aspects=()).port}/") as tab:
        paste(tab, "a b\n\nc d", "a x")
        assert tab.locator("dl.bars dt").first.text_content() == "score"
        assert tab.locator(".card .text").text_content() == "a x"
        assert tab.locator("#source-text").inner_text() == "a b\n\nc d"


def test_a_page_to_send(browser: Any, tmp_path: Path) -> None:
    from service import explain

    from negsample.serve.page import file_page

    texts = [(DOCUMENT, SUMMARY), (DOCUMENT, HOSTILE), (HEBREW, HEBREW), (f"{HOSTILE} a.", "a.")]
    records = [
        {"label": f"r{n}", "document": document, "summary": summary, "explanation": explain(document, summary)}
        for n, (document, summary) in enumerate(texts)
    ]
    (tmp_path / "told.html").write_text(file_page("model:x|encoder:hf:/home/ann/x", records).html, encoding="utf-8")
    with page(browser, (tmp_path / "told.html").as_uri(), viewport={"width": 390, "height": 844}) as tab:
        assert tab.locator("form").count() == 0
        assert tab.locator("#records-body tr").count() == 4
        assert tab.locator(".card .text").nth(1).text_content().strip() == HOSTILE
        tab.get_by_role("button", name="Nobody was hurt").click()
        assert "rests on sentence 2" in tab.locator("#rests").text_content()
        tab.get_by_role("button", name="r3").click()
        assert tab.locator("#source-text .unit > span:first-child").text_content() == f"{HOSTILE} a."
        assert tab.locator("#signature").text_content().startswith("model:x|encoder:hf:x · negsample ")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390

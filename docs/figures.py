"""The pictures of these pages, made by the product from the embedded sample: ``python docs/figures.py [FOLDER]``.

Some minutes; needs the extra [sample], Playwright and a Chromium. Without FOLDER those of docs/figures/ are made anew.
"""

import contextlib
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml
from PIL import Image
from playwright.sync_api import sync_playwright

from negsample import cli
from negsample.io.read import SAMPLE_PATH, read_rows

WIDTH = 1000
# Name, the page it is taken of, what of the page, and at most how much of its height.
SHOTS = [
    ("page", "explained.html", "body", 900),
    ("report", "compared/report.html", "body", 900),
    ("heat-map", "transfer/transfer.html", "table.heat", 600),
]


def negsample(words: str) -> None:
    """Run a command in this process; reports show how it was called."""
    sys.argv = ["negsample", *words.split()]
    try:
        cli.main(sys.argv[1:])
    except SystemExit as end:
        if end.code:
            raise


def make_pages() -> None:
    """What the pictures are taken of: a page of `explain`, a report of `compare`, the heat map of `transfer`."""
    records = [row.fields for row in read_rows(str(SAMPLE_PATH))]
    negsample("explain sample --limit 1 --html explained.html")

    write("people.jsonl", [{**record, "system": "people"} for record in records])
    negsample("generate-summaries sample --model lead -o lead.jsonl")
    negsample("generate-summaries sample --model textrank -o textrank.jsonl")
    negsample("compare people.jsonl lead.jsonl textrank.jsonl --model ready --metric copied --out compared")

    domains = dict.fromkeys(record["domain"] for record in records)
    for domain in domains:
        write(f"{domain}.jsonl", [record for record in records if record["domain"] == domain])
    settings = {"recipes": ["delete"], "heads": ["fc"], "mixture": True}
    training = {"negatives": 20, "epochs": 60, "learning_rate": 0.003, "patience": 60}
    sources = {domain: f"{domain}.jsonl" for domain in domains}
    Path("domains.yaml").write_text(yaml.safe_dump({"sources": sources, **settings, "train": training}))
    negsample("transfer --config domains.yaml --out transfer")


def write(path: str, records: list[dict[str, object]]) -> None:
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


def take(out: Path) -> None:
    """Pictures of few colours: small files."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"])
        for name, page, part, height in SHOTS:
            tab = browser.new_page(viewport={"width": WIDTH, "height": height}, device_scale_factor=1.25)
            tab.goto(Path(page).absolute().as_uri())
            box = tab.locator(part).first.bounding_box()
            x, y = (max(0, box[side] - 10) for side in "xy")
            clip = {"x": x, "y": y, "width": box["width"] + 20, "height": min(height, box["height"] + 20)}
            picture = Image.open(io.BytesIO(tab.screenshot(clip=clip, full_page=True)))
            picture.convert("RGB").quantize(160, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
                out / f"{name}.png", optimize=True
            )
        browser.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else Path(__file__).absolute().with_name("figures")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, contextlib.chdir(work):
        make_pages()
        take(folder)

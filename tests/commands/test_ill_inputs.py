"""Whatever is written on the command line and stands in the files: an exit code, a line, and no traceback.

NEGSAMPLE_FUZZ=2000 tries as many.
"""

import gzip
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import command_line

NAMES = ("a.jsonl", "b.csv", "c.tsv", "d.json", "e.jsonl.gz", "f.parquet", "g.txt", "h.yaml", "i.csv.gz", "folder")
# Ordinary words among those that no program likes.
WORDS = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\x00",
        "\x1b[31mred\x1b[0m",
        "\ud800",
        "\u200b",
        "\ufeff",
        "\u202eright",
        "a",
        "A cat sat.",
        "猫が。",
    ]
    + ["nan", "-1", "0", "1e999", "null", "[", "{", '"', "'", "=", "a=b", ":", "x" * 3000, "../..", "%s{0}", "-"]
)
TEXTS = WORDS | st.text(max_size=12) | st.sampled_from(["The cat sat on the mat. It slept.", "A cat slept."])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FIELDS = (
    "document",
    "summary",
    "references",
    "system",
    "document_id",
    "id",
    "score",
    "scores",
    "label",
    "kind",
    "half",
)
# Most records are good, or nothing would be reached behind the reading of them.
GOOD = st.fixed_dictionaries(
    {"document": st.just("The cat sat. It slept."), "summary": TEXTS, "system": st.sampled_from("pq")},
    optional={"document_id": st.sampled_from("123"), "scores": st.just({"x": 1.5}), "label": st.sampled_from([0, 1])},
)
RECORDS = st.lists(GOOD | st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=5), max_size=6)
YAML = (
    "corpus: a.jsonl",
    "encoder: [",
    "recipe: {add: x}",
    "metrics: 3",
    "train: {}",
    "sources: {a: none.jsonl}",
    "- 1",
    "space: 1",
)


@st.composite
def contents(draw: Any) -> bytes:
    kind = draw(st.sampled_from(["json", "json", "json", "array", "cells", "yaml", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
    if kind == "yaml":
        return "\n".join(draw(st.lists(st.sampled_from(YAML) | TEXTS, max_size=4))).encode("utf-8", "surrogatepass")
    records = draw(RECORDS)
    if kind == "cells":
        comma = draw(st.sampled_from(",;\t"))
        rows = [FIELDS[:4], *(map(str, record.values()) for record in records)]
        text = "\n".join(comma.join(row) for row in rows)
    else:
        text = json.dumps(records) if kind == "array" else "".join(json.dumps(one) + "\n" for one in records)
    made = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"])), "replace")
    return made[: draw(st.integers(1, len(made)))] if made and draw(st.integers(0, 3)) == 0 else made


FILE = st.sampled_from([*NAMES, *NAMES[:5], "none.jsonl", "sample", "-"])
OUT = st.sampled_from(["o.jsonl", "o.csv", "o.tsv", "o.parquet", "-", "a.jsonl", "folder", "no/o.jsonl", "o.gif", ""])
METRIC = st.sampled_from(
    ["words", "copied", "rouge1", "rougeL(against=references)", "novelty2", "tf-recall", "words(", "rouge1(x=1)"]
)
NUMBER = st.sampled_from(["0", "1", "5", "-1", "x", "1e9", ""])


def option(name: str, values: Any) -> Any:
    """``name`` and a value, or nothing."""
    return st.just([]) | values.map(lambda value: [name, value])


def verb(name: str, *parts: Any) -> Any:
    return st.tuples(*parts).map(lambda found: [name, *(word for part in found for word in part)])


def just(*words: str) -> Any:
    return st.just(list(words))


FIELD = st.sampled_from(["document", "summary", "id", "score", ""]) | TEXTS
ON_BAD = option("--on-bad", st.sampled_from(["stop", "skip", "x"]))
INPUTS = st.lists(FILE, min_size=1, max_size=2)
PLAIN = st.tuples(FILE, FILE).map(lambda two: ["-s", two[0], "-t", two[1]])
SCORED = (
    option("--metric", METRIC).filter(bool),
    ON_BAD,
    option("--document-field", FIELD),
    option("--summary-field", FIELD),
)
ENDED = option("--bootstrap", NUMBER.filter(lambda text: text != "1e9"))
SETTINGS = st.lists(
    st.sampled_from(
        ["negatives=2", "negatives=x", "recipe=crosspair", "recipe=[", "seed=-1", "sample=3", "limit=2", "on_bad=skip"]
    )
    | st.sampled_from(
        ["corpus_config=x", "document_field=text", "corpus_split=a", "=", "split_sizes=[1,1]", "vocabulary=frequency"]
    )
    | TEXTS,
    max_size=3,
)
COMMANDS = st.one_of(
    verb("score", INPUTS | PLAIN, *SCORED, option("-o", OUT), option("--output-field", FIELD), option("--limit", NUMBER),
         option("--fail-under", NUMBER | st.sampled_from(["score=1", "support=0", "nan"])), just() | just("--each")),
    verb("select", INPUTS | PLAIN, *SCORED, OUT.map(lambda out: ["-o", out]), option("--by", FIELD)),
    verb("compare", INPUTS | PLAIN, SCORED[0], ON_BAD, ENDED, option("--out", OUT), option("--baseline", FIELD)),
    verb("correlate", FILE.map(lambda name: ["--judgments", name]), SCORED[0], ENDED, OUT.map(lambda out: ["--out", out]),
         option("--level", st.sampled_from(["pooled", "summary", "x"])), option("--scores-columns", FIELD),
         option("--human", FIELD), option("--half", FIELD), option("--scores", FILE.map(lambda name: f"x={name}"))),
    verb("fit", FILE.map(lambda name: ["--judgments", name]), just("--preset", "equal", "--target", "x", "--metric", "words"),
         OUT.map(lambda out: ["--out", out])),
    verb("generate", FILE.map(lambda name: [f"corpus={name}"]), SETTINGS, option("--config", FILE), just("--out", "made")),
    verb("generate-summaries", FILE.map(lambda name: [name]), just("--model") , st.sampled_from(["lead", "textrank", "no"]).map(lambda m: [m]),
         OUT.map(lambda out: ["-o", out]), ON_BAD, option("--words", NUMBER), option("--document-field", FIELD)),
    verb("info", FILE.map(lambda name: [name])),
    verb("corpus", INPUTS, FILE.map(lambda name: [name]), option("--field", FIELD), just("--metric", "x")),
    # What would take long if it were right ends at a setting that is wrong.
    *(verb(name, just("--config"), FILE.map(lambda name: [name]), just("--out", "made"), SETTINGS, just("limit=0"))
      for name in ("train", "reinforce")),
    verb("transfer", FILE.filter("sample".__ne__).map(lambda name: ["--config", name]), just("--out", "made")),
    verb("tune", FILE.map(lambda name: ["--config", name]), just("--out", "made", "--study", "s", "--storage", "x", "--trials", "1")),
    verb("evaluate", FILE.map(lambda name: ["--model", name]), FILE.map(lambda name: ["--examples", name])),
    st.lists(st.sampled_from(["score", "info", "--help", "cache", "tables", "p1-table1", "--out", "-o", "publish", "-h"]) | TEXTS, max_size=4)
    .filter(lambda words: "serve" not in words and "demo" not in words),
)  # fmt: skip


@settings(
    max_examples=int(os.environ.get("NEGSAMPLE_FUZZ", "60")), suppress_health_check=list(HealthCheck), database=None
)
@given(words=COMMANDS, files=st.dictionaries(st.sampled_from(NAMES[:-1]), contents(), max_size=4), stdin=contents())
def test_ill_inputs_end_in_a_line(words: list[str], files: dict[str, bytes], stdin: bytes) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr("negsample.eval.agreement.columns.BASELINES", ("words", "copied"))
        folder = Path(place)
        (folder / "folder").mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        done = command_line(*words, check=None, cwd=folder, input=stdin)
        assert done.returncode in (0, 1, 2), (words, done)
        if done.returncode == 2:
            assert re.fullmatch(r"(?s)(.*\n)?negsample: [^\n]+\n", done.stderr), (words, done.stderr)
        shown = done.stderr + ("" if "-" in words else done.stdout)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown), (words, shown)
        assert not [path for path in folder.rglob(".*") if path.name.endswith((".part", ".lock"))], words
        for name, content in files.items():
            if name in words and not name.endswith(".gz"):
                assert (folder / name).read_bytes() == content, words

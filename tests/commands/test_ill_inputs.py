"""Whatever stands on the command line and in the files: an exit code, a line, and no traceback.

``NEGSAMPLE_FUZZ=1000`` tries as many, others each time.
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

NAMES = "a.jsonl b.csv c.tsv d.json e.jsonl.gz f.parquet g.txt h.yaml i.csv.gz".split()
# Ordinary words among those that no program likes.
STEERING = "\x00|\x1b[31mred\x1b[0m|\ud800|\u200b|\ufeff|\u202eright|\n|".split("|")
WORDS = "a|A cat slept.|猫が。|nan|-1|0|1e999|null|[|{|\"|'|=|a=b|:|-|../..".split("|")
TEXTS = st.sampled_from([*STEERING, *WORDS, "x" * 3000]) | st.text(max_size=12)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FIELDS = "document summary references system document_id id score scores label kind half".split()
# Most records, files and options are good, or nothing would be reached behind the reading of them.
GOOD = st.fixed_dictionaries(
    {"document": st.just("The cat sat. It slept.") | TEXTS, "summary": TEXTS, "system": st.sampled_from("pq")},
    optional={
        "document_id": st.sampled_from("1234"),
        "scores": st.fixed_dictionaries({"x": st.floats(0, 5)}),
        "label": st.sampled_from([0, 1]),
        "references": st.just(["A cat."]),
        "kind": st.just("original"),
    },
)
GRID = st.lists(st.floats(1, 5), min_size=6, max_size=8).map(
    lambda marks: [
        {"document_id": str(k // 2), "system": "pq"[k % 2], "document": f"The cat sat {k // 2} times. It slept.",
         "summary": "A cat slept." * (k % 3 + 1), "scores": {"x": mark}, "label": k % 2, "kind": "original"}
        for k, mark in enumerate(marks)
    ]
)  # fmt: skip
RECORDS = (
    GRID
    | st.lists(GOOD, min_size=1, max_size=6)
    | st.lists(GOOD | st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=5), max_size=6)
)
YAML = (
    "corpus: a.jsonl|encoder: [|recipe: {add: x}|metrics: 3|train: {}|sources: {a: none.jsonl}|- 1|space: 1|sources: 3"
)


@st.composite
def contents(draw: Any, name: str = "a.jsonl") -> bytes:
    usual = "cells" if "csv" in name else "tabs" if "tsv" in name else "yaml" if "yaml" in name else "lines"
    kind = draw(st.sampled_from([usual] * 8 + ["lines", "array", "cells", "yaml", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
    if kind == "yaml":
        lines = st.lists(st.sampled_from(YAML.split("|")) | TEXTS, max_size=4)
        return "\n".join(draw(lines)).encode("utf-8", "surrogatepass")
    records = draw(RECORDS)
    if kind in ("cells", "tabs"):
        comma = "\t" if kind == "tabs" else draw(st.sampled_from(",,;"))
        head = list(dict.fromkeys(key for one in records for key in one))
        rows = [head, *([json.dumps(one[key]) if key in one else "" for key in head] for one in records)]
        text = "\n".join(comma.join(map(str, row)) for row in rows)
    else:
        text = json.dumps(records) if kind == "array" else "".join(json.dumps(one) + "\n" for one in records)
    made = text.encode(draw(st.sampled_from(["utf-8"] * 8 + ["utf-16", "latin-1"])), "replace")
    return made[: draw(st.integers(0, len(made)))] if draw(st.integers(0, 9)) == 9 else made


def one_of(words: str, *before: str) -> Any:
    """One of the words, behind those that go before it."""
    return st.sampled_from(words.split()).map(lambda word: [*before, word])


def verb(name: str, *parts: Any) -> Any:
    """A command line of that many parts, lists of words or strategies of them."""
    given = [st.just(part.split()) if isinstance(part, str) else part for part in parts]
    return st.tuples(*given).map(lambda found: [name, *(word for part in found for word in part)])


def option(name: str, values: Any) -> Any:
    """``name`` and one of the values, or nothing."""
    named = one_of(values, name) if isinstance(values, str) else values.map(lambda value: [name, value])
    return st.integers(0, 4).flatmap(lambda chance: named if chance == 4 else st.just([]))


FILES = " ".join(["a.jsonl"] * 8 + ["b.csv"] * 4 + NAMES + ["folder none.jsonl - sample"])
OUTS = "o.jsonl o.jsonl o.csv o.csv o.tsv o.parquet out out - a.jsonl folder no/o.jsonl"
NUMBERS = "0 1 5 -1 x"
FIELD = st.sampled_from(FIELDS) | TEXTS
ON_BAD = option("--on-bad", "stop skip x")
GIVEN = one_of(FILES) | st.tuples(one_of(FILES, "-s"), one_of(FILES, "-t")).map(lambda two: two[0] + two[1])
METRIC = one_of(
    "words words rouge1 copied rouge1 rougeL(against=references) novelty2 tf-recall words( rouge1(x=1)", "--metric"
)
READ = (METRIC, ON_BAD, option("--document-field", FIELD), option("--summary-field", FIELD))
BOOTSTRAP = option("--bootstrap", NUMBERS)
KEYS = "negatives=2 negatives=x recipe=crosspair recipe=[ seed=-1 sample=3 limit=2 on_bad=skip vocabulary=frequency ="
SETTINGS = st.lists(st.sampled_from(KEYS.split() * 2) | TEXTS, max_size=2)
LOOSE = st.sampled_from("score info --help cache tables p1-table1 --out -o publish -h".split()) | TEXTS
COMMANDS = st.one_of(
    verb("score", GIVEN, *READ, option("-o", OUTS), option("--output-field", FIELD), option("--limit", NUMBERS)),
    verb("score", GIVEN, METRIC, one_of("1 score=1 support=0 nan x", "--fail-under"), st.just([]) | st.just(["--each"])),
    verb("select", GIVEN, *READ, one_of(OUTS, "-o"), option("--by", FIELD)),
    verb("compare", GIVEN, METRIC, ON_BAD, BOOTSTRAP, option("--out", OUTS), option("--baseline", FIELD)),
    verb("correlate", one_of(FILES, "--judgments"), METRIC, BOOTSTRAP, one_of(OUTS, "--out"),
         option("--level", "pooled summary x"), option("--scores-columns", FIELD), option("--human", FIELD)),
    verb("estimate", GIVEN, METRIC, option("--choose", NUMBERS), option("--human", FIELD), option("--by", FIELD),
         option("--baseline", FIELD), option("--json", OUTS)),
    verb("fit", one_of(FILES, "--judgments"), "--preset equal --target x --metric words", one_of(OUTS, "--out")),
    verb("generate", one_of(FILES).map(lambda name: [f"corpus={name[0]}"]), SETTINGS, option("--config", FILES), "--out made"),
    verb("generate-summaries", one_of(FILES), one_of("lead textrank", "--model"), one_of(OUTS, "-o"), ON_BAD,
         option("--words", NUMBERS), option("--document-field", FIELD)),
    verb("info", one_of(FILES)),
    verb("corpus", one_of(FILES), one_of(FILES), option("--field", FIELD), "--metric x"),
    verb("evaluate", one_of(FILES, "--model"), one_of(FILES, "--examples")),
    # What would take long if all were right ends at a setting that is wrong.
    verb("train", one_of(FILES, "--config"), SETTINGS, "--out made limit=0"),
    verb("reinforce", one_of(FILES, "--config"), SETTINGS, "--out made limit=0"),
    verb("transfer", one_of(" ".join(NAMES), "--config"), "--out made"),
    verb("tune", one_of(FILES, "--config"), "--out made --study s --storage x --trials 1"),
    st.lists(LOOSE, max_size=4),
)  # fmt: skip


SEVERAL = st.lists(st.sampled_from(NAMES), max_size=3).flatmap(
    lambda names: st.fixed_dictionaries({name: contents(name) for name in ("a.jsonl", "b.csv", *names)})
)


@settings(
    max_examples=int(os.environ.get("NEGSAMPLE_FUZZ", "80")),
    derandomize="NEGSAMPLE_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(words=COMMANDS, files=SEVERAL, stdin=contents())
def test_ill_inputs_end_in_a_line(words: list[str], files: dict[str, bytes], stdin: bytes) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr("negsample.eval.agreement.columns.BASELINES", ("words", "copied"))
        folder = Path(place)
        (folder / "folder").mkdir()
        before = {name: gzip.compress(text) if name.endswith(".gz") else text for name, text in files.items()}
        for name, content in before.items():
            (folder / name).write_bytes(content)
        done = command_line(*words, check=None, cwd=folder, input=stdin)
        assert done.returncode in (0, 1, 2), words
        if done.returncode == 2:
            assert re.fullmatch(r"(?s)(.*\n)?negsample: [^\n]+\n", done.stderr), (words, done.stderr)
        shown = done.stderr + ("" if "-" in words else done.stdout)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown), (words, shown)
        assert not list(folder.rglob("*.part")), words
        assert {name: (folder / name).read_bytes() for name in before if name in words} == {
            name: content for name, content in before.items() if name in words
        }, words

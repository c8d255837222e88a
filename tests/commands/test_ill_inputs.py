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
# Most records are good, or nothing would be reached behind the reading of them.
GOOD = st.fixed_dictionaries(
    {"document": st.just("The cat sat. It slept."), "summary": TEXTS, "system": st.sampled_from("pq")},
    optional={"document_id": st.sampled_from("123"), "scores": st.just({"x": 1.5}), "label": st.sampled_from([0, 1])},
)
RECORDS = st.lists(GOOD | st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=5), max_size=6)
YAML = (
    "corpus: a.jsonl|encoder: [|recipe: {add: x}|metrics: 3|train: {}|sources: {a: none.jsonl}|- 1|space: 1|sources: 3"
)


@st.composite
def contents(draw: Any) -> bytes:
    kind = draw(st.sampled_from("json json json array cells yaml bytes".split()))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
    if kind == "yaml":
        lines = st.lists(st.sampled_from(YAML.split("|")) | TEXTS, max_size=4)
        return "\n".join(draw(lines)).encode("utf-8", "surrogatepass")
    records = draw(RECORDS)
    if kind == "cells":
        comma = draw(st.sampled_from(",;\t"))
        text = "\n".join(comma.join(row) for row in [FIELDS[:4], *(map(str, record.values()) for record in records)])
    else:
        text = json.dumps(records) if kind == "array" else "".join(json.dumps(one) + "\n" for one in records)
    made = text.encode(draw(st.sampled_from("utf-8 utf-8 utf-8 utf-16 latin-1".split())), "replace")
    return made[: draw(st.integers(0, len(made)))] if draw(st.integers(0, 3)) == 0 else made


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
    return st.just([]) | named


FILES = " ".join([*NAMES, *NAMES[:5], "folder none.jsonl - sample"])
OUTS = "o.jsonl o.csv o.tsv o.parquet - a.jsonl folder no/o.jsonl o.gif"
NUMBERS = "0 1 5 -1 x"
FIELD = st.sampled_from(FIELDS) | TEXTS
ON_BAD = option("--on-bad", "stop skip x")
GIVEN = one_of(FILES) | st.tuples(one_of(FILES, "-s"), one_of(FILES, "-t")).map(lambda two: two[0] + two[1])
METRIC = one_of("words copied rouge1 rougeL(against=references) novelty2 tf-recall words( rouge1(x=1)", "--metric")
READ = (METRIC, ON_BAD, option("--document-field", FIELD), option("--summary-field", FIELD))
BOOTSTRAP = option("--bootstrap", NUMBERS)
KEYS = "negatives=2 negatives=x recipe=crosspair recipe=[ seed=-1 sample=3 limit=2 on_bad=skip vocabulary=frequency ="
SETTINGS = st.lists(st.sampled_from(KEYS.split()) | TEXTS, max_size=3)
LOOSE = st.sampled_from("score info --help cache tables p1-table1 --out -o publish -h".split()) | TEXTS
COMMANDS = st.one_of(
    verb("score", GIVEN, *READ, option("-o", OUTS), option("--output-field", FIELD), option("--limit", NUMBERS)),
    verb("score", GIVEN, METRIC, one_of("1 score=1 support=0 nan x", "--fail-under"), st.just([]) | st.just(["--each"])),
    verb("select", GIVEN, *READ, one_of(OUTS, "-o"), option("--by", FIELD)),
    verb("compare", GIVEN, METRIC, ON_BAD, BOOTSTRAP, option("--out", OUTS), option("--baseline", FIELD)),
    verb("correlate", one_of(FILES, "--judgments"), METRIC, BOOTSTRAP, one_of(OUTS, "--out"),
         option("--level", "pooled summary x"), option("--scores-columns", FIELD), option("--human", FIELD)),
    verb("fit", one_of(FILES, "--judgments"), "--preset equal --target x --metric words", one_of(OUTS, "--out")),
    verb("generate", one_of(FILES).map(lambda name: [f"corpus={name[0]}"]), SETTINGS, option("--config", FILES), "--out made"),
    verb("generate-summaries", one_of(FILES), one_of("lead textrank no", "--model"), one_of(OUTS, "-o"), ON_BAD,
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


@settings(
    max_examples=int(os.environ.get("NEGSAMPLE_FUZZ", "60")),
    derandomize="NEGSAMPLE_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(words=COMMANDS, files=st.dictionaries(st.sampled_from(NAMES), contents(), max_size=4), stdin=contents())
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

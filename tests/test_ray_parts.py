"""Parts: together they are the whole and split no document; what an input is; which columns all parts have."""

import gzip
import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_scorer import FakeScorer
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.io.write import write_table
from negsample.ray import (
    Part,
    Source,
    count_part,
    head_schema,
    output_schema,
    parts_of,
    score_part,
    sources_of,
)
from negsample.scoring.files import DEFAULTS, Settings
from negsample.scoring.scorer import Columns
from negsample.scoring.tally import Tally


class Words(FakeScorer):
    """Words of the summary, in tenths; half of that is its aspect ``form``; a summary of over four words is cut."""

    signature = "words"
    aspects = ("form",)
    columns = ("score", "percentile", "form", "form_percentile", "reason")

    def score_pairs(self, documents, summaries, *, batch_size=32):
        words = np.array([len(text.split()) for text in summaries])
        scores, none = (words / 10).astype(np.float32), [None] * len(words)
        return Columns(scores, none, words > 4, {"form": words / 20}, percentiles={"score": scores / 2, "form": scores})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf")


@given(st.lists(st.sampled_from(["a", "b", "c", 1, None]), min_size=1, max_size=30), st.integers(1, 5))
def test_parts_are_the_whole_in_order_and_split_no_document(shelf: Path, documents: list, size: int) -> None:
    path = shelf / "in.jsonl"
    path.write_text("".join(json.dumps({"document": d, "n": n}) + "\n" for n, d in enumerate(documents)))
    parts = list(parts_of(Source(str(path), "k"), DEFAULTS, size))
    assert [row.fields["n"] for _, rows in parts for row in rows] == list(range(len(documents)))
    assert [row.where for _, rows in parts for row in rows] == [f"{path}, line {n + 1}" for n in range(len(documents))]
    assert [part.start for part, _ in parts] == [0, *(part.stop for part, _ in parts[:-1])]
    for (_, before), (_, after) in itertools.pairwise(parts):
        assert size <= len(before) <= 4 * size
        assert before[-1].fields["document"] != after[0].fields["document"] or len(before) == 4 * size


def test_what_stands_before_damage_is_a_part(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"document": str(n * 7919), "summary": "s"}) + "\n" for n in range(2000)).encode()
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(lines)[:-3000])
    (source,) = sources_of(str(tmp_path / "in.jsonl.gz"))
    parts = parts_of(source, DEFAULTS, 300)
    found = [next(parts)[0]]
    with pytest.raises(InputError, match=r"in\.jsonl\.gz: the gzip file is cut short"):
        # What has been yielded before the error is kept.
        found.extend(part for part, _ in parts)
    assert [part.start for part in found] == [0, *(part.stop for part in found[:-1])]
    assert len(found) > 1
    assert 0 < found[-1].stop - found[-1].start <= 300
    assert found[-1].stop < 2000
    assert found[0].file == f"in-{source.key}-000000000000-000000000300.parquet"
    assert head_schema(source, DEFAULTS).names == ["document", "summary"]


def test_a_part_is_written_and_counted(tmp_path: Path) -> None:
    rows = [{"document": "d", "summary": "word " * n, "score": "old" if n == 2 else None, "n": n} for n in range(6)]
    path = tmp_path / "in.jsonl"
    write_table(path, rows, [])
    settings = Settings(on_bad="skip")
    source = Source(str(path), "k")
    ((part, found),) = parts_of(source, settings, 10)
    schema = output_schema([head_schema(source, settings)], Words(), settings)
    score_part(Words(), part, found, tmp_path, schema, settings)
    out = pq.read_table(tmp_path / part.file).to_pylist()
    assert [record["n"] for record in out] == list(range(6))
    assert list(out[3]) == ["document", "summary", "n", *Words.columns]
    assert [out[3][name] for name in Words.columns[:-1]] == pytest.approx([0.3, 0.15, 0.15, 0.3])
    assert (out[0]["score"], out[0]["reason"]) == (None, f"{path}, line 1: field 'summary' is blank")
    tallies = Tally(), Tally()
    count_part(tmp_path / part.file, settings, *tallies)
    assert tallies[0] == tallies[1]
    assert (tallies[0].n, tallies[0].cut, tallies[0].mean) == (5, 1, pytest.approx(0.3))
    assert tallies[0].bad == Counter({"field 'summary' is blank": 1})
    assert tallies[0].replaced == Counter({"score": 1})


def test_columns_are_those_of_all_files(tmp_path: Path) -> None:
    schemas = []
    for number, rows in enumerate([[{"a": 1, "score": 2, "empty": []}], [{"a": 0.5, "b": ["x"], "empty": None}]]):
        path = tmp_path / f"{number}.jsonl"
        write_table(path, rows, [])
        schemas.append(head_schema(Source(str(path), ""), DEFAULTS))
    kept = [("a", pa.float64()), ("empty", pa.string()), ("b", pa.list_(pa.string()))]
    assert output_schema(schemas, Words(), DEFAULTS) == pa.schema(
        [*kept, *((name, pa.float64()) for name in Words.columns[:-1]), ("reason", pa.string())]
    )
    with pytest.raises(InputError, match=r"different things in one column \(.*make them one type"):
        output_schema([*schemas, pa.schema([("a", pa.string())])], Words(), DEFAULTS)


def test_inputs_are_files_folders_and_what_fsspec_opens(tmp_path: Path) -> None:
    for name in ("b.csv", "a.parquet", "deep/c.jsonl", "_SUMMARY.json", ".hidden.jsonl", "_old/x.json", "read.me"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    names = [source.name for source in sources_of(str(tmp_path))]
    assert names == [str(tmp_path / name) for name in ("a.parquet", "b.csv", "deep/c.jsonl")]
    before = sources_of(str(tmp_path / "b.csv"))
    assert sources_of(str(tmp_path / "b.csv")) == before
    (tmp_path / "b.csv").write_text("longer")
    assert sources_of(str(tmp_path / "b.csv")) != before
    (tmp_path / "empty").mkdir()
    for name, told in (
        (str(tmp_path / "empty"), "no file in this folder"),
        (str(tmp_path / "none.csv"), r"none\.csv: can't be read \(no such file"),
        ("nowhere://bucket", "nowhere://bucket: can't be read"),
    ):
        with pytest.raises(InputError, match=told):
            sources_of(name)


def test_files_of_a_store_are_told_by_their_names(tmp_path: Path) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe_file("/store/one.jsonl", b'{"document": "d", "summary": "s"}\nno JSON\n')
    files.pipe_file("/store/two.csv", b"document\n")
    one, two = sources_of("memory://store")
    assert (one.name, two.name) == ("memory:///store/one.jsonl", "memory:///store/two.csv")
    ((part, rows),) = parts_of(one, DEFAULTS, 10)
    assert part == Part(one, 0, 2)
    assert [row.where for row in rows] == [f"{one.name}, line 1", f"{one.name}, line 2"]
    assert str(rows[1].error).startswith(f"{one.name}, line 2: not JSON")
    with pytest.raises(InputError, match=r"^memory:///store/two\.csv: no records"):
        next(parts_of(two, DEFAULTS, 10))
    files.rm("/store/one.jsonl")
    with pytest.raises(InputError, match=r"one\.jsonl: can't be read"):
        next(parts_of(one, DEFAULTS, 10))

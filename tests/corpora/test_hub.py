"""Hub corpora, on small local folders in the hub's layout, and with the hub out of reach."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError, RecordError

datasets = pytest.importorskip("datasets")


def table(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def summaries(name: str, **options: Any) -> list[str]:
    return [pair.summary for pair in load_pairs(name, CorpusOptions(**options))]


CARD = """---
configs:
- config_name: 1.0.0
  data_files: 1.0.0/train-*
- config_name: 3.0.0
  data_files:
  - {split: train, path: 3.0.0/train-*}
  - {split: validation, path: 3.0.0/validation-*}
  - {split: test, path: 3.0.0/test-*}
---
"""


@pytest.fixture(params=["card", "no card"])
def cnn(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "cnn"
    for config in ("1.0.0", "3.0.0"):
        for split, texts in {"test": ["d"], "train": ["a", "b"], "validation": ["c"]}.items():
            table(
                folder / config / f"{split}-00000-of-00001.parquet",
                article=[f"article {config} {x}" for x in texts],
                highlights=[f"high {x}\nlight" for x in texts],
                id=[f"id-{x}" for x in texts],
            )
    if request.param == "card":
        (folder / "README.md").write_text(CARD)
    return folder


def test_cnn_dailymail_layout(cnn: Path) -> None:
    found = list(load_pairs(f"cnn_dailymail:{cnn}"))
    assert [(p.id, p.document, p.summary) for p in found] == [
        (f"id-{x}", f"article 3.0.0 {x}", f"high {x}\nlight") for x in ("a", "b", "c", "d")
    ]
    assert {p.corpus for p in found} == {"cnn_dailymail"}
    assert summaries(f"cnn_dailymail:{cnn}", split="validation") == ["high c\nlight"]
    assert summaries(f"cnn_dailymail:{cnn}", limit=2) == ["high a\nlight", "high b\nlight"]
    for options, told in ({"split": "trian"}, "trian"), ({"config": "9.9.9"}, r"9\.9\.9"):
        with pytest.raises(InputError, match=told):
            load_pairs(f"cnn_dailymail:{cnn}", CorpusOptions(**options))


@pytest.mark.parametrize(
    ("name", "place", "splits", "columns", "options", "expected"),
    [
        ("billsum", "data/{split}-00000-of-00001", "ca_test test train", "text summary", {}, "train test ca_test"),
        ("arxiv", "document/{split}-00000-of-00001", "train validation test", "article abstract", {}, None),
        ("arxiv", "section/{split}-00000-of-00001", "train test", "article abstract", {"config": "section"}, None),
        ("big_patent", "all/{split}/0000", "partial-train validation test", "description abstract", {}, None),
        ("big_patent", "a/{split}/0000", "train", "description abstract", {"config": "a", "split": "train"}, None),
    ],
)
def test_layouts(
    tmp_path: Path, name: str, place: str, splits: str, columns: str, options: dict[str, Any], expected: str | None
) -> None:
    document, summary = columns.split()
    if name != "billsum":  # which has one configuration
        table(tmp_path / "other" / "train" / "0000.parquet", **{document: ["of another"], summary: ["configuration"]})
    for split in splits.split():
        table(tmp_path / (place.format(split=split) + ".parquet"), **{document: ["d"], summary: [split]})
    assert summaries(f"{name}:{tmp_path}", **options) == (expected or splits).split()


def test_fields_are_told_from_columns_or_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"dialogue": "A: Hi.", "summary": "Greeting."}\n')
    (found,) = load_pairs(str(tmp_path))
    assert (found.document, found.summary, found.corpus) == ("A: Hi.", "Greeting.", tmp_path.name)
    table(tmp_path / "more" / "train.parquet", body=["b"], summary=["s"], article=["x"], text=["y"])
    told = r"can't tell which field is the document; its fields are body, summary, article, text; give --document-field"
    with pytest.raises(InputError, match=told):
        list(load_pairs(str(tmp_path / "more")))
    assert [p.document for p in load_pairs(str(tmp_path / "more"), CorpusOptions(document_field="body"))] == ["b"]


def test_bad_records_and_repeated_ids_of_a_hub_corpus(tmp_path: Path) -> None:
    table(tmp_path / "train.parquet", text=["a", "b", "c", "d"], summary=["1", " ", None, "4"], id=["x", "y", "z", "x"])
    with pytest.raises(RecordError, match="train, record 2: field 'summary' is blank"):
        list(load_pairs(str(tmp_path)))
    found = list(load_pairs(str(tmp_path), CorpusOptions(on_bad="skip")))
    # The publisher's ids can't be mended by the user, so a repeated one is told apart instead of refused.
    assert [(p.id, p.summary) for p in found] == [("x", "1"), ("x-2", "4")]


@pytest.mark.parametrize("damage", ["empty folder", "damaged file"])
def test_a_folder_that_can_not_be_read(tmp_path: Path, damage: str) -> None:
    if damage == "damaged file":
        (tmp_path / "train.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(InputError) as caught:
        list(load_pairs(str(tmp_path)))
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


# --- the hub itself, played


def play(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[tuple[str, dict[str, Any]]]:
    """What ``datasets.load_dataset`` is asked from now on; it answers with, or raises, one of ``answers`` after the other."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def load(path: str, **arguments: Any) -> Any:
        calls.append((path, arguments))
        answer = answers[len(calls) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(datasets, "load_dataset", load)
    return calls


def test_the_hub_is_streamed_only_where_a_part_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"test": [{"article": "d", "highlights": "2"}], "train": [{"article": "d", "highlights": "1"}]}
    calls = play(monkeypatch, data, data, data["train"])
    assert summaries("cnn_dailymail") == ["1", "2"]
    assert summaries("cnn_dailymail", limit=1) == ["1"]
    assert summaries("abisee/cnn_dailymail", split="train[:10%]", limit=5) == ["1"]
    assert calls == [
        ("abisee/cnn_dailymail", {"streaming": False, "name": "3.0.0"}),
        ("abisee/cnn_dailymail", {"streaming": True, "name": "3.0.0"}),
        ("abisee/cnn_dailymail", {"split": "train[:10%]", "streaming": False, "name": "3.0.0"}),
    ]


def test_a_corpus_published_as_a_script_is_read_from_the_parquet_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    script = RuntimeError("Dataset scripts are no longer supported, but found big_patent.py")
    calls = play(monkeypatch, script, {"train": [{"description": "d", "abstract": "s"}]})
    assert summaries("big_patent", limit=3) == ["s"]
    assert calls[1][1] == {"streaming": True, "data_dir": "all", "revision": "refs/convert/parquet"}


def test_a_hub_that_can_not_be_reached_or_has_no_such_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants
    from datasets.exceptions import DatasetNotFoundError

    # The real client, offline.
    with monkeypatch.context() as patch:
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        with pytest.raises(InputError, match="can't reach the hub"):
            load_pairs("nobody/has-this-data-set", CorpusOptions(limit=1))

    def broken() -> Iterator[dict[str, str]]:
        yield {"text": "d", "summary": "s"}
        raise TimeoutError("read timed out")

    unknown = DatasetNotFoundError("Dataset 'a/b' doesn't exist on the Hub or cannot be accessed.")
    play(monkeypatch, ConnectionError("Couldn't reach 'FiscalNote/billsum'"), unknown, {"train": broken()})
    with pytest.raises(InputError, match=r"FiscalNote/billsum: can't reach the hub; download the data set elsewhere"):
        load_pairs("billsum")
    with pytest.raises(InputError, match="a/b: not on the hub"):
        load_pairs("a/b")
    pairs = load_pairs("billsum", CorpusOptions(limit=5))
    assert next(pairs).summary == "s"
    with pytest.raises(InputError, match="can't reach the hub"):
        next(pairs)

"""Corpora by name and by file: what a name means, ids, bad records. Texts are written for these tests."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests_support import SHARED_DATA

from negsample.corpora import CORPORA, CorpusOptions, corpus_name, describe_skipped, load_pairs
from negsample.corpora import pairs as corpus_pairs
from negsample.corpora.pairs import describe_part, sampled
from negsample.errors import InputError, RecordError
from negsample.records import Pair, Row
from negsample.seeds import digest
from negsample.train.config import make_config
from negsample.train.data import find_corpora, pairs_of

DATA = SHARED_DATA / "pairs"


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records), "utf-8")
    return path


def pair(number: int, **more: Any) -> dict[str, Any]:
    return {"document": f"Document {number}.", "summary": f"Summary {number}.", **more}


# --- names


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cnn_dailymial", "did you mean cnn_dailymail"),
        ("bilsum", "did you mean billsum"),
        ("zzz", "known: arxiv, big_patent, billsum, cnn_dailymail, newsroom, sample"),
        ("", "known: "),
        ("nwsroom:/data/newsroom", "did you mean newsroom"),
        ("missing.jsonl", "no such file"),
        ("folder/missing.csv.gz", "no such file"),
        ("./missing", "no such file or folder"),
        ("/missing/at/all", "no such file or folder"),
        ("three/parts/name", "neither a file nor a hub id"),
        ("sample:nws", "no domain 'nws'; did you mean news"),
        ("newsroom", "newsroom:DIR"),
        ("newsroom:/missing", "no such file or folder"),
        ("cnn_dailymail:/missing", "no such folder"),
        ("mine", "write ./mine"),
        ("pairs.txt", "known endings"),
    ],
)
def test_a_wrong_name_is_refused_at_the_call(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    lines(tmp_path / "pairs.txt", pair(1))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_pairs(name)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_corpus_can_be_registered() -> None:
    def load(argument: str, options: CorpusOptions, skipped: Counter[str]) -> Any:
        return iter([Pair("1", f"about {argument}", "s", "mine")])

    CORPORA.register("test-only", load)
    assert [p.document for p in load_pairs("test-only:cats")] == ["about cats"]


def test_options_are_checked(tmp_path: Path) -> None:
    for options, told in (({"limit": 0}, "limit"), ({"limit": -3}, "limit"), ({"on_bad": "ignore"}, "on-bad")):
        with pytest.raises(InputError, match=told):
            CorpusOptions(**options)
    path = str(lines(tmp_path / "a.jsonl", pair(1)))
    for name, option in ((path, "split"), ("sample", "config")):
        with pytest.raises(InputError, match=f"has no {option}"):
            load_pairs(name, CorpusOptions(**{option: "x"}))


# --- the sample


def test_sample_has_four_domains_of_twenty() -> None:
    everything = list(load_pairs("sample"))
    assert len({p.id for p in everything}) == len({p.document for p in everything}) == len(everything) == 80
    for domain in ("news", "legislation", "science", "patents"):
        assert [p.domain for p in load_pairs(f"sample:{domain}")] == [domain] * 20
    assert {p.corpus for p in everything} == {"sample"}
    assert list(load_pairs("sample", CorpusOptions(limit=3))) == everything[:3]


# --- files


def test_corpus_name() -> None:
    paths = ("data/bbc.jsonl.gz", "a.b.csv", "x.parquet", "/p/.jsonl", "-")
    assert [corpus_name(path) for path in paths] == ["bbc", "a.b", "x", ".jsonl", "standard input"]


def test_ids_are_the_files_own_or_made_of_corpus_and_texts(tmp_path: Path) -> None:
    records = [pair(1, id="first"), pair(2, id=7), pair(3), pair(4, id=None), pair(5, id=" ")]
    pairs = list(load_pairs(str(lines(tmp_path / "mine.jsonl", *records))))
    assert [p.id for p in pairs[:2]] == ["first", "7"]
    assert all(len(p.id) == 16 and int(p.id, 16) >= 0 for p in pairs[2:])
    assert pairs[0] == Pair("first", "Document 1.", "Summary 1.", "mine")
    said = ("News\n", " long reviews ", 7, None, "two\nlines", "\ud800")
    named = load_pairs(str(lines(tmp_path / "kinds.jsonl", *(pair(n, domain=one) for n, one in enumerate(said)))))
    assert [p.domain for p in named] == ["news", "long reviews", "", "", "", ""]
    (tmp_path / "elsewhere").mkdir()
    other = lines(tmp_path / "elsewhere" / "mine.jsonl", pair(4), pair(3), pair(3), pair(3))
    made = [p.id for p in load_pairs(str(other))]
    assert made == [pairs[3].id, pairs[2].id, f"{pairs[2].id}-2", f"{pairs[2].id}-3"]
    (renamed,) = load_pairs(str(lines(tmp_path / "b.jsonl", pair(3))))
    assert renamed.id != pairs[2].id


def ids_of(ids: list[str], **options: Any) -> list[str]:
    rows = [Row(f"line {n}", {"id": i, **pair(n)}) for n, i in enumerate(ids)]
    found = corpus_pairs.pairs_from(rows, "c", "document", "summary", CorpusOptions(), Counter(), **options)
    return [p.id for p in found]


def test_ids_that_come_again() -> None:
    with pytest.raises(RecordError, match=r"line 2: repeats an id \('a'\)"):
        ids_of(["a", "b", "a"])
    found = ids_of(["a", "b", "a", "a-2", "c", "a", "b"], unique_ids=False)
    assert found == ["a", "b", "a-2", "a-2-2", "c", "a-3", "b-2"]


def test_other_field_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,body,short\nk1,Long text,Text\n")
    options = CorpusOptions(document_field="body", summary_field="short")
    assert list(load_pairs(str(path), options)) == [Pair("k1", "Long text", "Text", "a")]
    with pytest.raises(RecordError, match=r"line 2: no field 'document'; it has: 'id', 'body', 'short'"):
        list(load_pairs(str(path)))


BAD = [
    ({"document": "", "summary": "s"}, "field 'document' is blank"),
    ({"document": "d", "summary": " \n"}, "field 'summary' is blank"),
    ({"document": "d"}, "no field 'summary'"),
    ({"document": {"d": 1}, "summary": "s"}, "field 'document' is not text"),
    ({"document": "d", "summary": None}, "field 'summary' is missing"),
    ({"document": "d", "summary": "a\ud800"}, "field 'summary' has a lone surrogate"),
    ({"document": "d", "summary": "s", "id": ["x"]}, "field 'id' is not text or a number"),
    ("not json", "not JSON"),
    ("[1]", "not a JSON object"),
]


@pytest.mark.parametrize(("record", "reason"), BAD)
def test_a_bad_record_stops_or_is_counted(tmp_path: Path, record: Any, reason: str) -> None:
    path = lines(tmp_path / "a.jsonl", pair(1), record, pair(3))
    pairs = load_pairs(str(path))
    assert next(pairs).summary == "Summary 1."
    with pytest.raises(RecordError, match=r"a\.jsonl, line 2: ") as caught:
        next(pairs)
    assert reason in str(caught.value)
    skipped: Counter[str] = Counter()
    kept = list(load_pairs(str(path), CorpusOptions(on_bad="skip"), skipped))
    assert [p.summary for p in kept] == ["Summary 1.", "Summary 3."]
    assert skipped == {reason: 1}


def test_skipped_records_are_told_by_reason(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    twice = [pair(number, id="x", doc_id="d", document_id="d") for number in (1, 2)]
    path = lines(tmp_path / "a.jsonl", *(record for record, _ in BAD), "{", *twice)
    kept = list(load_pairs(str(path), CorpusOptions(on_bad="skip"), skipped))
    assert [p.id for p in kept] == ["x"]
    assert describe_skipped(skipped).startswith("skipped 11 records: 2 not JSON, 1 field 'document' is blank, ")
    assert skipped["repeats an id"] == 1
    assert describe_skipped(Counter()) == ""
    with pytest.raises(InputError, match=r"not one record can be used \(skipped 2 records: 2 not JSON\)"):
        list(load_pairs(str(lines(tmp_path / "b.jsonl", "x", "y")), CorpusOptions(on_bad="skip")))


# --- Newsroom


def newsroom(folder: Path) -> Path:
    for split, texts in {"train": ["a", "b"], "dev": ["c"], "test": ["d"]}.items():
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            rows = [{"url": "u", "text": f"text {text}", "summary": f"sum {text}", "density": 1.5} for text in texts]
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def test_newsroom_folder_split_and_file(tmp_path: Path) -> None:
    folder = newsroom(tmp_path)
    found = list(load_pairs(f"newsroom:{folder}"))
    assert [(p.document, p.summary, p.corpus) for p in found] == [
        (f"text {x}", f"sum {x}", "newsroom") for x in ("a", "b", "c", "d")
    ]
    for split in ("dev", "validation"):
        assert [p.summary for p in load_pairs(f"newsroom:{folder}", CorpusOptions(split=split))] == ["sum c"]
    assert [p.summary for p in load_pairs(f"newsroom:{folder}/test.jsonl.gz")] == ["sum d"]
    with pytest.raises(InputError, match=r"has none of nope\.jsonl\.gz"):
        load_pairs(f"newsroom:{folder}", CorpusOptions(split="nope"))


# --- real data


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}")
def test_real_corpora() -> None:
    counts = {"bbc": 2127, "scitldr": 3229, "legal": 446, "cnndm_sample": 100, "dialogsum": 991, "qmsum": 64}
    for name, count in counts.items():
        assert len({p.id for p in load_pairs(str(DATA / f"{name}.jsonl.gz"))}) == count


def pairs(count: int) -> list[Pair]:
    return [Pair(f"p{number}", f"Document {number}.", f"Summary {number}.", "c") for number in range(count)]


def test_those_with_the_lowest_hashes_in_the_order_of_the_corpus() -> None:
    places = {pair.id: digest(7, "sample", pair.id, size=8) for pair in pairs(40)}
    lowest = sorted(places, key=places.__getitem__)[:9]
    found = [pair.id for pair in sampled(iter(pairs(40)), 9, 7)]
    assert sorted(found) == sorted(lowest)
    assert found == sorted(found, key=lambda name: int(name[1:]))
    # A quarter of the range of the first byte is 0x00 to 0x3f.
    quarter = [name for name, place in places.items() if place[0] < 0x40]
    assert [pair.id for pair in sampled(iter(pairs(40)), 0.25, 7)] == quarter


@given(st.integers(0, 12), st.integers(1, 9), st.integers(0, 5), st.integers(0, 3), st.permutations(range(12)))
def test_laws(count: int, small: int, more: int, seed: int, order: list[int]) -> None:
    every = pairs(count)
    found, larger = list(sampled(iter(every), small, seed)), list(sampled(iter(every), small + more, seed))
    assert len(found) == min(small, count)
    # A part of a larger one, in the order of the corpus, whatever that order is.
    assert [pair for pair in larger if pair in found] == found
    turned = [pair for pair in (pairs(12)[place] for place in order) if pair in every]
    assert [pair for pair in turned if pair in found] == list(sampled(iter(turned), small, seed))


def test_each_part_is_as_likely_as_any_other() -> None:
    times = Counter(tuple(pair.id for pair in sampled(iter(pairs(6)), 3, seed)) for seed in range(4000))
    every = list(combinations([f"p{number}" for number in range(6)], 3))
    assert set(times) == set(every)
    assert chisquare([times[each] for each in every]).pvalue > 0.01
    share = [sum(1 for _ in sampled(iter(pairs(50)), 0.1, seed)) for seed in range(400)]
    # Binomial, 20,000 draws: mean 2,000, standard deviation 42.
    assert sum(share) == pytest.approx(2000, abs=4 * 42)


def test_limit_comes_first_and_each_corpus_is_sampled(tmp_path: Path) -> None:
    for name, count in (("one", 30), ("two", 5)):
        rows = [json.dumps({"id": p.id, "document": p.document, "summary": p.summary}) for p in pairs(count)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    one, two = (str(tmp_path / f"{name}.jsonl") for name in ("one", "two"))
    first = {pair.id for pair in load_pairs(one, CorpusOptions(limit=10))}
    found = [pair.id for pair in load_pairs(one, CorpusOptions(limit=10, sample=6, seed=2))]
    assert len(found) == 6
    assert set(found) < first
    config = make_config({"corpus": [one, two], "sample": 6, "limit": 10, "seed": 2})
    assert [pair.id for pair in pairs_of(config, Counter())] == [*found, *(f"p{number}" for number in range(5))]


def test_looking_for_a_corpus_does_not_read_it_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"document": "One.", "summary": "1."}\nnot JSON\n')
    find_corpora(make_config({"corpus": str(path), "sample": 1}))


@pytest.mark.parametrize("sample", [0, -3, 1.5, 0.0, -0.5, float("nan")])
def test_what_is_neither_number_nor_share_is_refused(sample: float) -> None:
    with pytest.raises(InputError, match=r"sample is .*; give a whole number of pairs, or a share between 0 and 1"):
        CorpusOptions(sample=sample)
    with pytest.raises(InputError, match="sample"):
        make_config({"sample": sample})


def test_what_is_read_in_words() -> None:
    assert describe_part({}) == ""
    assert describe_part({"sample": 30000.0}) == ", a sample of 30000 pairs of each"
    assert describe_part({"limit": 7, "sample": 0.1}) == ", a sample of a share of 0.1 of the first 7 pairs of each"


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
    assert {(p.corpus, p.domain) for p in found} == {("cnn_dailymail", "news")}
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
    told = (
        r"can't tell which field is the document; its fields are body, summary, article, text; give document_field=NAME"
    )
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

import errno
import gzip
import json
import os
import random
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.negatives import generate as module
from negsample.negatives.index import PairStore
from negsample.negatives.recipe import parse_recipe
from negsample.negatives.split import SPLITS
from negsample.records import Pair

PEOPLE = ["Ada", "Boris", "Chen", "Dana", "Emil", "Farah", "Gita", "Hugo"]
THINGS = ["bridge", "harvest", "ferry", "library", "glacier", "orchard", "tunnel", "market", "museum", "harbour"]
DEEDS = ["closed", "reopened", "flooded", "expanded", "burned", "moved"]


def corpus(count):
    """``count`` pairs with different documents and summaries of two sentences."""
    pairs = []
    for number in range(count):
        rng = random.Random(number)
        thing, deed, person = rng.choice(THINGS), rng.choice(DEEDS), rng.choice(PEOPLE)
        document = f"Report {number}. The {thing} {deed} last week, said {person}. " + " ".join(
            rng.choices(THINGS, k=20)
        )
        summary = f"The {thing} {deed} in week {number}. Witness {person} saw it happen."
        pairs.append(Pair(f"p{number}", document, summary, "made"))
    return pairs


def options(recipe="delete", **more):
    return {"recipe": parse_recipe(recipe), **more}


def generate(pairs, options, out):
    return module.generate(pairs, out=out, **options)


def alike(summary):
    """Thirty pairs with one summary, or one each by number."""
    return [Pair(str(number), f"Text number {number}.", summary.format(number)) for number in range(30)]


def read(folder):
    return {
        name: [json.loads(line) for line in gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8")]
        for name in SPLITS
    }


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_three_files_with_originals_and_negatives(tmp_path):
    pairs = corpus(40)
    report = generate(pairs, options("delete", negatives=3, seed=7), tmp_path / "new" / "out")
    splits = read(tmp_path / "new" / "out")
    assert sorted(contents(tmp_path / "new" / "out")) == ["test.jsonl.gz", "train.jsonl.gz", "validation.jsonl.gz"]
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 128, "validation": 16, "test": 16}
    by_id = {pair.id: pair for pair in pairs}
    rows = [row for part in splits.values() for row in part]
    assert len({row["id"] for row in rows}) == 160
    for row in rows:
        assert list(row) == ["id", "document_id", "document", "summary", "label", "kind", "change"]
        source = by_id[row["document_id"]]
        assert row["document"] == source.document
        if row["kind"] == "original":
            assert (row["id"], row["label"], row["change"]) == (f"{source.id}/original", 1.0, {})
            assert row["summary"] == source.summary
        else:
            assert row["id"].startswith(f"{source.id}/delete-")
            kept, total = len(row["summary"].split()), len(source.summary.split())
            assert row["label"] == pytest.approx(kept / total)
            assert 1 <= kept < total
    counts = {"documents": 4, "originals": 4, "negatives": {"delete": 12}, "refusals": {}, "missing": 0, "repeated": 0}
    assert report["splits"]["test"] == {**counts, "fingerprint": report["splits"]["test"]["fingerprint"]}
    assert [report[name] for name in ("pairs", "duplicates", "documents", "linked")] == [40, 0, 40, 0]
    json.dumps(report, allow_nan=False)


def test_what_the_seed_the_number_and_the_recipe_change(tmp_path):
    ways = {"own": {}, "seed": {"seed": 1}, "more": {"negatives": 3}, "kind": {"recipe": "crosspair"}}
    prints, rows = {}, {}
    for way, more in ways.items():
        report = generate(corpus(30), options(**{"recipe": "replace", **more}), tmp_path / way)
        prints[way] = [report["splits"][name]["fingerprint"] for name in SPLITS]
        rows[way] = [row for part in read(tmp_path / way).values() for row in part]
    first, other = ({row["id"]: row["summary"] for row in rows[way]} for way in ("own", "seed"))
    assert sum(first[key] != other[key] for key in first) > 20
    # More negatives keep the first ones; the splits are the same for all recipes.
    assert all(row in rows["more"] for row in rows["own"])
    assert prints["own"] == prints["kind"] == prints["more"] != prints["seed"]
    assert len(set(prints["own"])) == 3


def test_crosspair_stays_inside_the_split(tmp_path):
    pairs = corpus(60)
    generate(pairs, options("crosspair", negatives=2), tmp_path / "out")
    for rows in read(tmp_path / "out").values():
        originals = {row["document_id"]: row["summary"] for row in rows if row["kind"] == "original"}
        for row in rows:
            if row["kind"] == "crosspair":
                assert row["label"] == 0.0
                assert originals[row["change"]["summary_of"]] == row["summary"] != originals[row["document_id"]]


def test_words_come_from_the_training_split(tmp_path):
    generate(corpus(40), options("add", negatives=4), tmp_path / "out")
    splits = read(tmp_path / "out")
    known = {
        word.strip(".,") for row in splits["train"] if row["kind"] == "original" for word in
        (row["document"] + " " + row["summary"]).split()
    }  # fmt: skip
    added = [word for row in splits["test"] if row["kind"] == "add" for _, word in row["change"]["added"]]
    assert len(added) > 40
    assert set(added) <= known
    assert not {"Report"} - known


def test_texts_that_agree_but_for_case_and_space_are_one(tmp_path):
    pairs = corpus(20)
    again = Pair("again", pairs[0].document.upper().replace(" ", "\n "), pairs[0].summary.lower(), "made")
    more = Pair("more", pairs[1].document.lower(), "A second summary. It says other things.", "made")
    report = generate([*pairs, again, more], options("delete"), tmp_path / "out")
    assert [report[name] for name in ("pairs", "duplicates", "documents")] == [22, 1, 20]
    rows = [row for part in read(tmp_path / "out").values() for row in part]
    assert len(rows) == 42
    (twice,) = {row["document_id"] for row in rows if row["document"].lower() == pairs[1].document.lower()}
    assert twice in ("p1", "more")


def test_ids_that_are_not_unique_are_extended(tmp_path):
    one = [Pair(str(number), pair.document, pair.summary, "one") for number, pair in enumerate(corpus(10))]
    two = [
        Pair(str(number), pair.document + " More.", pair.summary[:-1] + " again.", "two")
        for number, pair in enumerate(one)
    ]
    same = [
        Pair("9", f"Document {number} of no name.", f"Summary {number} has three words more.", "two")
        for number in (1, 2)
    ]
    generate([*one, *two[:9], *same], options("delete"), tmp_path / "out")
    ids = [row["id"] for part in read(tmp_path / "out").values() for row in part]
    assert len(set(ids)) == len(ids) == 42
    assert {"one:0/original", "two:0/original", "one:9/original"} <= set(ids)
    assert sum(identifier.startswith("two:9#") and identifier.endswith("/original") for identifier in ids) == 2


def test_impossible_kinds_are_counted_and_a_mixture_takes_another(tmp_path):
    def total(report, field):
        return sum(sum(part[field].values()) if part[field] else 0 for part in report["splits"].values())

    pairs = [*corpus(30), *(Pair(f"s{number}", f"Snow report {number}.", f"Snow{number}.") for number in range(30))]
    report = generate(pairs, options("delete", negatives=2), tmp_path / "one")
    assert {key for part in report["splits"].values() for key in part["refusals"]} == {"delete: one-word summary"}
    assert sum(part["missing"] for part in report["splits"].values()) == total(report, "refusals") == 60
    assert total(report, "negatives") == 60
    report = generate(pairs, options("mix(delete=1,replace=1)", negatives=2), tmp_path / "mix")
    assert sum(part["missing"] for part in report["splits"].values()) == 0
    assert total(report, "negatives") == 120
    assert 10 < total(report, "refusals") < 50
    # Two words: only two deletions exist, so of three negatives one repeats.
    pairs = [Pair(str(number), f"Text number {number}.", f"Snow{number} fell{number}") for number in range(20)]
    report = generate(pairs, options("delete", negatives=3), tmp_path / "two")
    assert sum(part["repeated"] for part in report["splits"].values()) == 20


# --- refusals


@pytest.mark.parametrize(
    ("pairs", "recipe", "told"),
    [
        ([], "delete", "has 0 documents"),
        (corpus(1), "crosspair", "has 1 document and"),
        (corpus(2), "crosspair", "has 2 documents"),
        (corpus(5), "crosspair", r"the validation split \(1 document\).*no other document .*\(1 times\).*6 or more"),
        (alike("No summary is  available."), "delete", "summaries repeat so much"),
        (alike("Snow{}"), "delete", r"delete: one-word summary \(24 times\)"),
    ],
)
def test_corpora_of_which_nothing_can_be_made(tmp_path, pairs, recipe, told):
    with pytest.raises(InputError, match=told) as caught:
        generate(pairs, options(recipe), tmp_path / "out")
    assert not list(tmp_path.iterdir())
    assert "\n" not in str(caught.value)


def test_the_smallest_corpora(tmp_path):
    generate(corpus(6), options("crosspair"), tmp_path / "six")
    generate(corpus(3), options("delete"), tmp_path / "three")


def test_an_error_among_the_pairs_leaves_nothing_and_a_place_that_is_taken_is_left_alone(tmp_path):
    def pairs():
        yield from corpus(10)
        raise InputError("pairs.jsonl, line 11: not JSON")

    with pytest.raises(InputError, match="line 11"):
        generate(pairs(), options(), tmp_path / "out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").write_text("x")
    for out in (tmp_path, tmp_path / "mine", tmp_path / "mine" / "below"):
        with pytest.raises(InputError, match=r"is not empty|is not a folder|is a file"):
            generate(corpus(20), options(), out)
    assert contents(tmp_path) == {"mine": b"x"}


@pytest.mark.parametrize("when", ["writing", "at the end"])
def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, when):
    out = tmp_path / "out"
    real = os.replace
    failed = []

    def replace(source, target):
        if when == "writing" or Path(target) == out:
            failed.append(target)
            raise OSError(errno.ENOSPC, "No space left on device", str(source))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(InputError, match="disk is full"):
        generate(corpus(20), options(), out)
    assert failed
    assert not out.exists()


def test_the_pair_store_gives_pairs_back(tmp_path):
    pairs = [
        *corpus(30),
        Pair("x", "lone \ud800 half", 'quotes " and \n lines', "c"),
        Pair("y", "z" * 3_000_000, "s", "c", "d"),
    ]
    with PairStore(tmp_path) as store:
        for pair in pairs:
            store.append(pair)
        assert [store.pair(number) for number in reversed(range(32))] == pairs[::-1]
        assert list(tmp_path.iterdir()) == []

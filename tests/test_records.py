"""Columns and texts as people hand them in, one meaning of missing and blank; seeds, the registry, errors."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from negsample.errors import InputError, RecordError
from negsample.records import as_list, document_key, documents_of, is_missing, text_fault, texts_of
from negsample.registry import Registry
from negsample.scoring.scorer import Item, fault_of, items_of
from negsample.seeds import digest, generator, seed_from

TEXTS = ["a", "b", "c"]


@pytest.mark.parametrize(
    "column",
    [
        tuple(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        pd.Series(TEXTS, index=[2, 0, 7]),
        pd.Series(TEXTS, dtype="category"),
        pd.Index(TEXTS),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
    ],
)
def test_a_column_of_any_kind_is_read_by_place(column) -> None:
    assert as_list(column) == TEXTS
    assert all(type(text) is str for text in as_list(pa.array(TEXTS)))


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("text", "single text"),
        (np.array("text"), "single text"),
        (None, "null in place"),
        (3, "a number"),
        ({"a": "b"}, "a dict"),
        ({"a"}, "a set"),
        (pd.DataFrame({"a": TEXTS}), "a DataFrame"),
        (pa.table({"a": TEXTS}), "a Table"),
    ],
)
def test_what_is_no_column_is_told(column, told) -> None:
    with pytest.raises(InputError, match=told):
        as_list(column)


@pytest.mark.parametrize("value", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")])
def test_missing_is_one_thing(value) -> None:
    assert is_missing(value)
    assert texts_of(value) == []
    assert text_fault(value) == "is missing"


def test_what_is_there_is_not_missing() -> None:
    assert not any(map(is_missing, ("", 0, [], ["a"], np.array(["a", "b"]), pd.Timestamp(0))))


@pytest.mark.parametrize("text", ["", " \n\u3000", "\u200b\ufeff", "\x00\x07", "\u00ad\u2060\ufe0f\u3164"])
def test_blank_is_one_thing(text) -> None:
    assert text_fault(text) == "is blank"
    assert texts_of(text) == []
    assert text_fault(f"{text}a") is None


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["a", "b"], ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("[sic] a", ["[sic] a"]),
        ("a", ["a"]),
        ([], []),
    ],
)
def test_a_field_of_several_texts(value, texts) -> None:
    assert texts_of(value) == texts


def test_pairs_and_what_is_wrong_with_one() -> None:
    items = items_of(pd.Series(["d", pd.NA], index=[5, 1]), (s for s in ("s", "t")), ["r", ["x", " "]])
    assert items[0] == Item("d", "s", ("r",))
    both = frozenset({"document", "references"})
    assert [fault_of(item) for item in items] == [None, "the document is missing"]
    assert [fault_of(item, {"references"}) for item in items] == [None, "reference 2 is blank"]
    assert fault_of(Item("d", "s"), both) == "there is no reference, which it needs"
    assert fault_of(Item("d", 3), both) == "the summary is not text (a number)"  # type: ignore[arg-type]
    # A list of texts is several documents; what is no text in it is told.
    several, blank = items_of([["d", "e f"], ["d", " "]], ["s", "s"])
    assert documents_of(several.document) == ["d", "e f"]
    assert [fault_of(several), fault_of(blank)] == [None, "the document is not text (a list)"]
    for columns, told in (((["d"], []), "1 documents but 0 summaries"), ((["d"], ["s"], ["r"] * 2), "2 lists of ref")):
        with pytest.raises(InputError, match=told):
            items_of(*columns)


def test_seeds_are_the_same_in_another_process():
    code = "from negsample.seeds import digest, generator; print(digest('a', 1).hex(), generator(3, 'x').integers(1 << 60))"
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert runs == {f"{digest('a', 1).hex()} {generator(3, 'x').integers(1 << 60)}\n"}


def test_parts_are_kept_apart():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("ab", "")
    assert digest(b"ab") == digest("ab")
    assert all(0 <= seed_from("x", number) < 2**63 for number in range(99))


def test_document_key_folds_case_and_space_only():
    assert document_key("The  cat\nsat.") == document_key("the cat SAT.")
    assert document_key("The cat sat.") != document_key("The cat sat")


def test_registry_names_the_nearest():
    registry = Registry("colour", {"crimson": "math:pi"})
    registry.register("teal", len)
    assert registry.get("teal") is len
    assert registry.get("crimson") == pytest.approx(3.14159265)
    with pytest.raises(InputError, match="did you mean crimson"):
        registry.get("crimsom")
    with pytest.raises(InputError, match="known: crimson, teal"):
        registry.get("zzz")
    with pytest.raises(InputError, match="registered already"):
        registry.register("teal", str)


def test_record_error_keeps_its_parts():
    # In another process too.
    error = pickle.loads(pickle.dumps(RecordError("f.jsonl, line 3", "blank", "mend it")))
    assert isinstance(error, RecordError)
    assert str(error) == "f.jsonl, line 3: blank; mend it"
    assert (error.where, error.reason) == ("f.jsonl, line 3", "blank")

"""What people hand in as columns and texts: one meaning of a column, of missing, of blank."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from negsample.errors import InputError
from negsample.records import as_list, is_missing, text_fault, texts_of
from negsample.scoring.scorer import Item, fault_of, items_of

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
    for columns, told in (((["d"], []), "1 documents but 0 summaries"), ((["d"], ["s"], ["r"] * 2), "2 lists of ref")):
        with pytest.raises(InputError, match=told):
            items_of(*columns)

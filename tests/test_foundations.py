"""Seeds, the registry and document keys."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError, RecordError
from negsample.records import document_key
from negsample.registry import Registry
from negsample.seeds import digest, generator, seed_from


def test_seeds_are_the_same_in_another_process():
    code = "from negsample.seeds import digest, generator; print(digest('a', 1).hex(), generator(3, 'x').integers(1 << 60))"
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert runs == {f"{digest('a', 1).hex()} {generator(3, 'x').integers(1 << 60)}\n"}


def test_parts_are_kept_apart():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("ab", "")
    assert digest(b"ab") == digest("ab")


@given(st.text(), st.integers())
def test_seed_is_a_63_bit_number(text, number):
    assert 0 <= seed_from(text, number) < 2**63


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

"""Joining and cutting token ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models.features.tokens import TokenFeatures, cut_lengths
from negsample.models.language.networks import load_pretrained


@pytest.mark.parametrize(
    ("document", "summary", "kept", "floor"),
    [
        (409, 100, (409, 100), 128),  # fits exactly: 509 = 512 − 3
        (900, 100, (409, 100), 128),  # a share of 50.9 would go below the whole summary
        (1500, 300, (381, 128), 128),  # a share of 84 (509 · 300 / 1800) is raised to the floor of 128
        (1000, 1000, (255, 254), 128),  # in proportion: 509 / 2, rounded down for the summary
        (10, 1000, (6, 503), 128),  # 509 · 1000 / 1010 = 503.96…
        (800, 70, (469, 40), 1),  # in parallel without a floor (Bao et al. 2021 §4.2): 509 · 70 / 870 = 40.95
    ],
)
def test_cut_lengths_by_hand(document, summary, kept, floor):
    got = cut_lengths(np.array([document]), np.array([summary]), room=509, floor=floor)
    assert (int(got[0][0]), int(got[1][0])) == kept


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(2, 600), st.integers(1, 200))
def test_cut_lengths_laws(document, summary, room, floor):
    kept_d, kept_s = (int(x[0]) for x in cut_lengths(np.array([document]), np.array([summary]), room, floor))
    assert 0 <= kept_d <= document
    assert 0 <= kept_s <= summary
    assert kept_d + kept_s <= room
    if document + summary <= room:
        assert (kept_d, kept_s) == (document, summary)
    else:
        assert kept_d + kept_s >= room - 1 or kept_d == document
        assert kept_s >= min(summary, floor, int(room * 0.75))


def test_collate_is_the_tokenizers_own_pair(tiny_bert):
    _, tokenizer, _ = load_pretrained(str(tiny_bert))
    features = TokenFeatures(tokenizer, max_length=64)
    documents, summaries = ["The baker sold a lamp.", "Nobody knew the price near the harbour."], ["A lamp.", "Price"]
    batch = features.collate(features.read(documents), features.read(summaries))
    expected = tokenizer(documents, summaries, padding=True, return_tensors="pt")
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert batch[name].tolist() == expected[name].tolist()


def test_long_pairs_are_cut_and_counted(tiny_bert):
    _, tokenizer, _ = load_pretrained(str(tiny_bert))
    features = TokenFeatures(tokenizer, max_length=20, min_summary=4)
    units = features.read(["lamp " * 50, "lamp"]), features.read(["boat " * 10, "boat"])
    sizes = [np.array([len(u) for u in side]) for side in units]
    assert features.was_cut(*sizes).tolist() == [True, False]
    assert features.lengths(*sizes).tolist() == [20, 5]
    ids = features.collate(units[0][:1], units[1][:1])["input_ids"][0].tolist()
    names = tokenizer.convert_ids_to_tokens(ids)
    # Room for 17: the summary's share is 17 · 10 / 60 = 2, raised to its floor of 4.
    assert names == ["[CLS]", *["lamp"] * 13, "[SEP]", *["boat"] * 4, "[SEP]"]
    with pytest.raises(InputError, match="max_length=4"):
        TokenFeatures(tokenizer, max_length=4)

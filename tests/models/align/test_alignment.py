import numpy as np
import pytest

from negsample.models.align import alignment
from negsample.models.align.alignment import align, first_best, sentence_means, view
from negsample.models.align.reader import Text

E = np.eye(4, dtype=np.float32)


def text(sentences: list[list[str]], words: list[np.ndarray], vectors: np.ndarray, weight: float = 1.0) -> Text:
    """A text of these forms, word vectors and sentence vectors; all words weigh the same."""
    counts = np.array([len(sentence) for sentence in sentences])
    forms = tuple(form for sentence in sentences for form in sentence)
    worded = np.flatnonzero(counts)
    return Text(
        pieces=tuple(" ".join(sentence) or "—" for sentence in sentences),
        ends=np.ones(len(sentences), bool),
        whole=np.ones(len(sentences), bool),
        vectors=vectors.astype(np.float32),
        forms=forms,
        place=np.repeat(np.arange(len(sentences)), counts),
        starts=(np.cumsum(counts) - counts)[worded],
        worded=worded,
        weights=np.full(len(forms), weight, np.float32),
        facts=np.zeros(len(forms), bool),
        words=np.array(words, np.float16).reshape(len(forms), 4),
    )


DOCUMENT = text([["red", "boat"], ["old", "tower"], []], [E[0], E[1], E[2], E[3]], E[:3])
SUMMARY = text([["old"], ["red", "ship"]], [E[2], E[0], 0.6 * E[1] + 0.8 * E[3]], np.stack([E[1], E[0]]))


def test_matches_by_hand() -> None:
    found = align(view(DOCUMENT), SUMMARY)
    assert found.sentences.tolist() == [[0, 1], [1, 0], [0, 0]]
    # Summary words: "old" is found in sentence 1, "red" in 0, "ship" is .6 like "boat" and .8 like "tower".
    np.testing.assert_allclose(found.word_by_sentence, [[0, 1, 0.6], [1, 0, 0.8], [-1, -1, -1]], atol=1e-3)
    np.testing.assert_allclose(found.support, [1, 1, 0.8], atol=1e-3)
    np.testing.assert_allclose(found.covered, [1, 0.6, 1, 0.8], atol=1e-3)
    # Sentence 0 with the next: each word's better of the two; sentence 1 with the (wordless) next: itself.
    np.testing.assert_allclose(found.focus, [[1, 0.9], [1, 0.4], [-1, -1]], atol=1e-3)
    assert found.rests_on.tolist() == [1, 0]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = align(view(DOCUMENT), SUMMARY)
    monkeypatch.setattr(alignment, "_BLOCK", 1)
    parts = align(view(DOCUMENT), SUMMARY)
    for name in ("covered", "word_by_sentence", "focus", "support"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_of_equal_sentences_the_first_is_taken() -> None:
    assert first_best(np.array([[0.1, 0.9], [0.5, 0.8], [0.5004, 0.2]])).tolist() == [1, 0]


def test_means_over_sentences() -> None:
    values = np.array([1.0, 3.0, 5.0, 7.0])
    weights = np.array([1.0, 3.0, 1.0, 1.0])
    assert sentence_means(values, weights, DOCUMENT, empty=-9).tolist() == [2.5, 6.0, -9.0]


def test_what_a_document_is_seen_as() -> None:
    document = view(text([["a", "b", "a"], ["b", "c"]], [E[0]] * 5, E[:2], weight=0.5))
    assert document.frequency == {"a": 2, "b": 2, "c": 1}
    assert document.terms == {"a": 1.0, "b": 1.0, "c": 0.5}
    assert document.repeated == {"a": 0.5, "b": 0.5}
    assert (document.all_terms, document.all_repeated) == (2.5, 1.0)
    assert ("b", "a") in document.bigrams
    assert ("a", "b", "c") in document.trigrams
    place, lead, central, to_mean, _, length = document.salience.T
    assert place.tolist() == [1, 0]
    assert lead.tolist() == [1, 0.5]
    # Two sentences at right angles: nothing alike with each other, cos 45° with their mean.
    np.testing.assert_allclose(central, 0, atol=1e-6)
    np.testing.assert_allclose(to_mean, np.sqrt(0.5), rtol=1e-6)
    np.testing.assert_allclose(length, [0.1, 2 / 30], rtol=1e-6)

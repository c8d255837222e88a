import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.align import alignment
from negsample.models.align.alignment import Alignment, DocumentView, align, first_best, sentence_means, view
from negsample.models.align.aspects import (
    ASPECTS,
    FEATURES,
    SOURCES,
    feature_set,
    lowest_mean,
    matches,
    repeated,
    repeated_runs,
    row,
    values,
)
from negsample.models.align.explain import _most_alike
from negsample.models.align.reader import Text


def text(
    *sentences: str,
    words: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
    weight: float = 0.98,
    speakers: tuple[str, ...] = (),
    documents: tuple[int, ...] = (),
) -> Text:
    """A text whose words all weigh the same; those in capitals are facts, and ``!`` ends a sentence.

    ``words``, ``vectors``: of its words and sentences; by default such as no test looks at. ``speakers``: who says each;
    ``documents``: of which document it is.
    """
    split = [sentence.split() for sentence in sentences]
    counts = np.array([len(own) for own in split])
    forms = tuple(word for own in split for word in own)
    worded = np.flatnonzero(counts)
    return Text(
        pieces=tuple(sentence or "—" for sentence in sentences),
        ends=np.array([sentence.endswith("!") for sentence in sentences]),
        whole=np.ones(len(sentences), bool),
        vectors=np.eye(len(sentences), 8, dtype=np.float32) if vectors is None else vectors.astype(np.float32),
        forms=forms,
        place=np.repeat(np.arange(len(split)), counts),
        starts=(np.cumsum(counts) - counts)[worded],
        worded=worded,
        weights=np.full(len(forms), weight, np.float32),
        facts=np.array([word.isupper() for word in forms]),
        words=np.zeros((len(forms), 8), np.float16) if words is None else np.array(words, np.float16),
        speakers=speakers or ("",) * len(sentences),
        documents=np.array(documents or [0] * len(sentences)),
    )


def alignment_of(similar: np.ndarray, sentences: np.ndarray, document: Text, summary: Text) -> Alignment:
    """The alignment that word similarities [W, V] and sentence similarities [N, M] make, sentence by sentence."""
    rows = [similar[document.place == n] for n in range(len(document.pieces))]
    by_sentence = np.stack([row.max(axis=0) if len(row) else np.full(similar.shape[1], -1.0) for row in rows])
    pair = np.maximum(by_sentence, np.vstack([by_sentence[1:], np.full((1, similar.shape[1]), -2.0)]))
    focus = np.zeros_like(sentences, dtype=np.float32)
    for m in summary.worded:
        own = summary.place == m
        focus[:, m] = np.average(pair[:, own], axis=1, weights=summary.weights[own] + 0.05)
    both = focus + sentences
    rests_on = [next(n for n, value in enumerate(column) if value >= column.max() - 1e-3) for column in both.T]
    best = similar.max(axis=1), by_sentence.max(axis=0), sentences.max(axis=1), sentences.max(axis=0), focus.max(axis=0)
    return Alignment(*best, np.array(rests_on), focus.max(axis=0, keepdims=True))


def found(document: Text, summary: Text, fill: float = 0.5) -> dict[str, float]:
    similar = np.full((len(document.forms), len(summary.forms)), fill, np.float32)
    alike = np.full((len(document.pieces), len(summary.pieces)), fill, np.float32)
    return values(view(document), summary, alignment_of(similar, alike, document, summary))


DOCUMENT = text("red boat sinks at NIGHT", "boat owner ADA weeps")


def test_words_by_hand() -> None:
    told = found(DOCUMENT, text("boat of ADA sinks", "boat sinks in MAY !"))
    # The document's words count 1 each, "boat" twice: 9 in all; named are boat, ADA, sinks.
    assert told["terms"] == pytest.approx(4 / 9)
    assert told["frequent_terms"] == 1.0
    # Of nine summary words, boat, ADA, sinks, boat, sinks stand in the document; of the facts ADA does, MAY does not.
    assert told["word_support"] == pytest.approx(5 / 9)
    assert told["fact_support"] == 0.5
    assert told["repeated_words"] == pytest.approx(2 / 9)
    # Of eight pairs of words "boat sinks" alone stands in the document, and none stands twice.
    assert told["known_pairs"] == 1 / 8
    assert told["repeated_pairs"] == 0.0
    assert told["proper_ends"] == 0.5
    assert told["fragments"] == 0.5


def test_a_copy_of_the_document_is_known_through_and_through_and_the_list_of_features_is_whole() -> None:
    told = found(DOCUMENT, DOCUMENT, fill=1.0)
    ones = ("terms", "frequent_terms", "token_support", "weakest_tokens", "word_support", "fact_support")
    for name in (*ones, "sentence_support", "weakest_sentence", "known_pairs", "known_triples"):
        assert told[name] == pytest.approx(1.0)
    assert set(told) == {feature.name for feature in FEATURES if not feature.source}
    assert len(row(told)) == len(feature_set())
    judged = row(told | dict(zip(SOURCES["judge"], (0.25, -1.0, -0.5), strict=True)), ["judge"])
    assert judged[-3:].tolist() == [0.25, -1.0, -0.5]
    assert {aspect for feature in FEATURES for aspect in feature.aspects} == set(ASPECTS)
    assert all(feature.direction in (1, -1) and feature.scale > 0 for feature in FEATURES)


def test_a_speaker_is_known_in_each_sentence_of_a_turn_and_weighs_nothing() -> None:
    vectors = np.arange(8 * 7).reshape(7, 8) / 64
    spoken = text("ADA : boats sink", "", "they do", "BO hm", words=vectors, speakers=("ADA", "ADA", "ADA", "BO"))
    spoken = dataclasses.replace(spoken, forms=("ADA", "boats", "sink", "they", "do", "BO", "hm"))
    spoken = dataclasses.replace(
        spoken,
        place=np.array([0, 0, 0, 2, 2, 3, 3]),
        starts=np.array([0, 3, 5]),
        weights=spoken.weights[:7],
        facts=spoken.facts[[0, 2, 3, 4, 5, 6, 7]],
    )
    seen = view(spoken)
    # BO's line has no colon, so nothing of it is a speaker's name.
    assert seen.text.forms == ("ADA", "boats", "sink", "ADA", "ADA", "they", "do", "BO", "hm")
    assert seen.text.place.tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 3]
    assert (seen.text.starts.tolist(), seen.text.worded.tolist()) == ([0, 3, 4, 7], [0, 1, 2, 3])
    assert (seen.text.weights == np.float32(0.98)).tolist() == [False, True, True, False, False, True, True, True, True]
    assert seen.text.facts.tolist() == [True, False, False, True, True, False, False, True, False]
    np.testing.assert_array_equal(seen.text.words, vectors[[0, 1, 2, 0, 0, 3, 4, 5, 6]].astype(np.float16))
    # A name is known (its weight is 0), and a sentence of it supports what is said of her.
    assert seen.terms["ADA"] == 0.0
    assert ("ADA", "they") in seen.bigrams
    assert view(DOCUMENT).text is DOCUMENT


def test_support_by_several_documents_is_the_mean_of_the_best_in_each() -> None:
    # Word vectors in two dimensions: a word of the summary matches "a" fully, "b" by 0.6, "c" not at all.
    one, six, none = [1.0, 0], [0.6, 0.8], [0, 1.0]
    words = np.zeros((5, 8))
    words[:, :2] = [none, one, six, none, none]
    vectors = np.zeros((5, 8))
    vectors[:, :2] = [none, one, six, none, none]
    source = text("c", "a", "b", "c", "c", words=words, vectors=vectors, documents=(0, 0, 1, 2, 2))
    said = text("a", words=[[1.0] + [0] * 7], vectors=np.array([[1.0] + [0] * 7]))
    found = align(view(source), said)
    assert found.by_document[:, 0].tolist() == pytest.approx([1.0, 0.6, 0.0], abs=1e-3)
    # (1 + 0.6 + 0) / 3 for the word, for its sentence's vector, and for its sentence's words.
    for value in (found.support, found.likeness_of, found.focus):
        assert value.tolist() == pytest.approx([1.6 / 3], abs=1e-3)
    assert (found.rests_on.tolist(), found.covered.tolist()) == ([1], pytest.approx([0, 1, 0.6, 0, 0], abs=1e-3))
    # As one document the best match is all; the last sentence of a document and the next document's first are no passage.
    alone = align(view(dataclasses.replace(source, documents=np.zeros(5, int))), said)
    assert alone.support.tolist() == alone.focus.tolist() == [1.0]
    split = text("c", "a", words=words[:2], documents=(0, 1))
    assert align(view(split), said).by_document[:, 0].tolist() == [0.0, 1.0]
    # Place in its own document: 1 → 0, and 1 / (1 + index).
    assert view(source).salience[:, 0].tolist() == [1, 0, 1, 1, 0]
    assert view(source).salience[:, 1].tolist() == [1, 0.5, 1, 1, 0.5]


def test_phrases_and_openings_by_hand() -> None:
    told = found(DOCUMENT, text("they saw red boats sink", "red boats of ADA !"))
    # Ten words that all tell something make nine pairs, of which "red boats" comes again.
    assert told["repeated_phrases"] == pytest.approx(1 / 9)
    assert told["dangling_start"] == 1.0
    assert found(DOCUMENT, text("it's late"))["dangling_start"] == 1.0
    assert found(DOCUMENT, text("they’re late"))["dangling_start"] == 1.0
    assert found(DOCUMENT, text("boats they saw"))["dangling_start"] == 0.0


def test_repetition_by_hand() -> None:
    assert repeated(["a", "b", "a", "a"]) == 0.5
    assert repeated([]) == 0.0
    runs = repeated_runs(text("the red boat sinks", "so the red boat"))
    assert runs == {"the red boat": [range(3), range(5, 8)]}


def test_lowest_mean_by_hand() -> None:
    # A quarter of the weight 4 is 1: half of it is the value 0, half the value 2.
    assert lowest_mean(np.array([2.0, 0.0, 5.0]), np.array([1.5, 0.5, 2.0]), 0.25) == pytest.approx(1.0)


SUMMARY = text("boat of ADA sinks", "owner weeps in MAY !")


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=9 * 9, max_size=9 * 9),
    st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4),
    st.integers(0, 8),
    st.integers(0, 7),
    st.floats(0, 1, width=32),
)
def test_a_higher_similarity_lowers_no_feature_that_raises_and_no_match(
    words: list[float], sentences: list[float], place: int, word: int, more: float
) -> None:
    similar = np.array(words, np.float32).reshape(9, 9)[:, : len(SUMMARY.forms)]
    alike = np.array(sentences, np.float32).reshape(2, 2)
    raised, closer = similar.copy(), alike.copy()
    raised[place, word] += more
    closer[place % 2, word % 2] += more
    document: DocumentView = view(DOCUMENT)
    before = alignment_of(similar, alike, DOCUMENT, SUMMARY)
    for changed in ((raised, alike), (similar, closer)):
        # What rests on what may change, and with it the order.
        after = dataclasses.replace(alignment_of(*changed, DOCUMENT, SUMMARY), rests_on=before.rests_on)
        one, other = values(document, SUMMARY, before), values(document, SUMMARY, after)
        for feature in feature_set():
            assert (other[feature.name] - one[feature.name]) * feature.direction >= -1e-6, feature.name
        assert (matches(document, SUMMARY, after) >= matches(document, SUMMARY, before) - 1e-6).all()


E = np.eye(4, dtype=np.float32)
SOURCE = text("red boat", "old tower", "", words=E, vectors=E[:3])
SHORT = text("old", "red ship", words=np.stack([E[2], E[0], 0.6 * E[1] + 0.8 * E[3]]), vectors=E[[1, 0]])


def test_matches_by_hand() -> None:
    found = align(view(SOURCE), SHORT)
    assert (found.likeness.tolist(), found.likeness_of.tolist()) == ([1, 1, 0], [1, 1])
    # Summary words: "old" is found in sentence 1, "red" in 0, "ship" is .6 like "boat" and .8 like "tower".
    np.testing.assert_allclose(found.support, [1, 1, 0.8], atol=1e-3)
    np.testing.assert_allclose(found.covered, [1, 0.6, 1, 0.8], atol=1e-3)
    # Sentence 0 with the next: each word's better of the two, so 1 and (1 + .8) / 2.
    np.testing.assert_allclose(found.focus, [1, 0.9], atol=1e-3)
    assert found.rests_on.tolist() == [1, 0]
    # Of fewer than eight words, so that nothing is encoded.
    assert _most_alike(None, SOURCE, SHORT)[1].tolist() == [1, 0, 0]  # type: ignore[arg-type]


SENTENCES = st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(any)


@given(SENTENCES, SENTENCES, st.integers(0, 1000), st.integers(1, 40), st.integers(1, 6))
def test_however_it_is_parted_the_alignment_is_that_of_all_at_once(
    source: list[int], own: list[int], seed: int, cells: int, block: int
) -> None:
    rng = np.random.default_rng(seed)

    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def made(counts: list[int]) -> Text:
        words, vectors = (unit(rng.normal(size=(count, 4))) for count in (sum(counts), len(counts)))
        return text(*(" ".join(["w"] * count) for count in counts), words=words, vectors=vectors)

    document, summary = made(source), made(own)
    words = document.words.astype(np.float32) @ summary.words.astype(np.float32).T
    expected = alignment_of(words, document.vectors @ summary.vectors.T, document, summary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_CELLS", cells)
        patch.setattr(alignment, "_BLOCK", block)
        got = align(view(document), summary)
    for field in dataclasses.fields(Alignment):
        np.testing.assert_allclose(getattr(got, field.name), getattr(expected, field.name), atol=1e-5)


def test_memory_grows_with_the_longer_text_and_not_with_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_CELLS", 1 << 14)
    peaks = []
    for count in (500, 1000):
        long = text(*["red boat"] * count, vectors=np.ones((count, 4)))
        document = view(long)
        tracemalloc.start()
        align(document, long)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.5 * peaks[0]


def test_means_over_sentences() -> None:
    values = np.array([1.0, 3.0, 5.0, 7.0])
    weights = np.array([1.0, 3.0, 1.0, 1.0])
    assert sentence_means(values, weights, SOURCE, empty=-9).tolist() == [2.5, 6.0, -9.0]
    # Of equal sentences the first is taken.
    assert first_best(np.array([[0.1, 0.9], [0.5, 0.8], [0.5004, 0.2]])).tolist() == [1, 0]


def test_what_a_document_is_seen_as() -> None:
    document = view(text("a b a", "b c", words=E[[0] * 5], vectors=E[:2], weight=0.5))
    assert document.terms == {"a": 1.0, "b": 1.0, "c": 0.5}
    assert document.repeated == {"a": 0.5, "b": 0.5}
    assert ("b", "a") in document.bigrams
    assert ("a", "b", "c") in document.trigrams
    place, lead, central, to_mean, _, length = document.salience.T
    assert place.tolist() == [1, 0]
    assert lead.tolist() == [1, 0.5]
    # Two sentences at right angles: nothing alike with each other, cos 45° with their mean.
    np.testing.assert_allclose(central, 0, atol=1e-6)
    np.testing.assert_allclose(to_mean, np.sqrt(0.5), rtol=1e-6)
    np.testing.assert_allclose(length, [0.1, 2 / 30], rtol=1e-6)

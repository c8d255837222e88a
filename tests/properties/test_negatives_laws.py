"""Laws that negatives, splits and layouts keep for any text."""

import gzip
import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from negsample.negatives import NEGATIVES, mentions
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.generate import generate
from negsample.negatives.rebuild import put_together, take_apart
from negsample.negatives.recipe import Recipe
from negsample.negatives.split import SPLITS, assign
from negsample.negatives.vocabulary import bare, same_word
from negsample.records import Pair, document_key
from negsample.seeds import digest, generator
from negsample.sentences import normalise, split_sentences

WORDS = st.one_of(
    st.sampled_from('the River rose Mr. U.S. J was not — 3.5 (old) "Stop!" late, e.g. Oban can ۔ 你好。'.split()),
    st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=8),
)
SENTENCES = st.tuples(
    st.lists(WORDS, min_size=1, max_size=10), st.sampled_from([".", "!", "?", " .", '."', "", "…"])
).map(lambda made: " ".join(made[0]) + made[1])
SUMMARIES = st.lists(st.tuples(SENTENCES, st.sampled_from([" ", "\n", "  "])), min_size=1, max_size=5).map(
    lambda parts: "".join(sentence + joint for sentence, joint in parts)
)
DOCUMENT = (
    "The river rose by 3.5 metres on Monday and the old bridge at Oban was closed. Drivers took the long way by Mull. "
    "Growers of apples expect a thin year after 12 nights of frost! Nobody in the U.S. embassy said a word about it. "
    "It rained. Shops were shut. A choir sang."
)
OTHERS = [
    Pair("o1", "Growers of apples expect a thin year after frost.", "Frost hit the apples. Prices will climb."),
    Pair("o2", "A bridge in the town was closed for repairs.", "The bridge is closed. Drivers take the long way."),
]
SEEDS = st.integers(0, 10**6)
KINDS = ["crosspair", "add", "delete", "replace", "sentence-delete", "sentence-replace"]


@pytest.fixture(autouse=True, scope="module")
def _rule():
    # The model is much slower than these laws can wait for, and the laws are not about what it finds.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mentions, "has_model", lambda: False)
        yield


def make(kind, summary, seed):
    """The kind's negative of a summary of two words or more; examples of which it makes none are left out."""
    pair = Pair("p", DOCUMENT, summary)
    assume(len(summary.split()) > 1)
    try:
        return NEGATIVES.get(kind)(pair, context_of([pair, *OTHERS]), generator(seed))
    except CannotDamage:
        assert kind not in KINDS
        assume(False)


def letters_of(text):
    """Letters and digits with their numbers, whatever the case and however they are put together."""
    return Counter(letter.upper().casefold() for letter in text if letter.isalnum())


def plain(words):
    """Words without case, outer punctuation and the marks that move: what a mutation leaves alone."""
    return [bare(word).casefold() for word in words]


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(word == other for other in rest) for word in part)


@given(SUMMARIES)
def test_layout_keeps_the_words(summary):
    sentences = take_apart(summary)
    words = [list(sentence.words) for sentence in sentences]
    assert [word for sentence in words for word in sentence] == summary.split()
    assert put_together(sentences, words).split() == summary.split()


@given(st.sampled_from(NEGATIVES.names()), SUMMARIES, SEEDS)
def test_a_damaged_summary_differs_its_label_says_so_and_the_seed_decides(kind, summary, seed):
    made = make(kind, summary, seed)
    assert 0 <= made.label <= 1
    assert made.summary.strip()
    if kind not in KINDS:
        assert made.label < 1
        assert normalise(made.summary) != normalise(summary)
    assert made == make(kind, summary, seed)
    json.dumps(made.change, allow_nan=False)


@given(st.sampled_from(["add", "delete", "replace"]), SUMMARIES, SEEDS)
def test_words_are_added_deleted_and_replaced(kind, summary, seed):
    made = make(kind, summary, seed)
    before, after = summary.split(), made.summary.split()
    changed = abs(len(after) - len(before))
    if kind == "delete":
        assert 1 <= changed <= len(before) - 1
        assert made.change["mutated"] == changed
        assert is_subsequence(plain(after), plain(before))
        assert all(before[place] == word for place, word in made.change["deleted"])
    elif kind == "add":
        assert 1 <= changed <= len(before)
        assert is_subsequence(before, after)
        assert after[-1] == before[-1]
    else:
        assert changed == 0
        different = [place for place in range(len(before)) if not same_word(before[place], after[place])]
        assert different == [place for place, _, _ in made.change["replaced"]]
        changed = len(different)
    assert made.label == pytest.approx(1 - changed / len(before))


@given(st.sampled_from(["sentence-delete", "sentence-replace"]), SUMMARIES, SEEDS)
def test_sentence_labels_are_shares_of_words_kept(kind, summary, seed):
    made = make(kind, summary, seed)
    total = len(summary.split())
    if "kept_words" in made.change:
        assert made.label == pytest.approx(made.change["kept_words"] / total)
    if kind == "sentence-delete":
        assert made.label == pytest.approx(len(made.summary.split()) / total)
        assert is_subsequence(plain(made.summary.split()), plain(summary.split()))


@given(st.sampled_from(["add", "delete", "replace", "sentence-delete"]), SUMMARIES, SEEDS)
def test_sentences_can_still_be_told_apart(kind, summary, seed):
    made = make(kind, summary, seed)
    sentences = take_apart(summary)
    if kind in ("add", "replace"):
        left = len(sentences)
    else:
        gone = {place for place, _ in made.change["deleted"]} if "mutated" in made.change else None
        if gone is None:
            left = len(sentences) - len(made.change["deleted"])
        else:
            at, left = 0, 0
            for sentence in sentences:
                left += any(place not in gone for place in range(at, at + len(sentence.words)))
                at += len(sentence.words)
    assert len(split_sentences(made.summary)) >= left


@given(st.sampled_from(["swap", "shuffle", "drop", "glue"]), SUMMARIES, SEEDS)
def test_order_alone_changes_or_nothing_is_added(kind, summary, seed):
    made = make(kind, summary, seed)
    if kind in ("swap", "shuffle"):
        assert letters_of(made.summary) == letters_of(summary)
        assert len(made.summary.split()) == len(summary.split())
    assert not letters_of(made.summary) - letters_of(summary)


@given(SUMMARIES, SEEDS)
def test_truncate_keeps_a_beginning(summary, seed):
    made = make("truncate", summary, seed)
    before, after = summary.split(), made.summary.split()
    assert before[: len(after)] == after
    assert made.label == pytest.approx(len(after) / len(before))


@given(SUMMARIES, SEEDS)
def test_double_adds_at_most_half(summary, seed):
    made = make("double", summary, seed)
    before, after = len(summary.split()), len(made.summary.split())
    assert 1 <= after - before <= max(before // 2, 1)
    assert made.label == pytest.approx(1 - (after - before) / before)
    assert not letters_of(summary) - letters_of(made.summary)


@given(st.sampled_from(["repeat", "intrude", "negate", "number", "antonym", "glue"]), SUMMARIES, SEEDS)
def test_labels_are_shares_of_words_in_sentences_left_alone(kind, summary, seed):
    made = make(kind, summary, seed)
    name = {"repeat": "repeated", "intrude": "replaced", "negate": "negated", "glue": "glued"}.get(kind, "edited")
    changed = {item["at"] for item in made.change[name]}
    sentences = take_apart(summary)
    left = sum(len(sentence.words) for place, sentence in enumerate(sentences) if place not in changed)
    assert changed
    assert made.label == pytest.approx(left / len(summary.split()))
    now = Counter(map(bare, made.summary.split()))
    for place, sentence in enumerate(sentences):
        # The first word may change its case, the last its marks.
        if place not in changed:
            assert not Counter(map(bare, sentence.words[1:-1])) - now


@given(SUMMARIES, SEEDS)
def test_repeated_sentences_stand_there_twice(summary, seed):
    made = make("repeat", summary, seed)
    sentences = take_apart(summary)
    for item in made.change["repeated"]:
        copied = " ".join(map(bare, sentences[item["copy_of"]].words)).strip()
        assert " ".join(map(bare, made.summary.split())).count(copied) >= 2


@given(st.lists(st.integers(0, 12), min_size=20, max_size=60), SEEDS)
def test_splits_keep_groups_together_whatever_the_seed(groups, seed):
    _, group = np.unique(groups, return_inverse=True)
    assume(group.max() >= 5)
    keys = np.sort(np.array([digest(number) for number in range(len(group))], dtype="S16"))
    part = assign(keys, group, seed)
    for number in range(group.max() + 1):
        assert len(set(part[group == number].tolist())) == 1
    # Six groups or more: each split has two.
    assert all(len(set(group[part == split].tolist())) >= 2 for split in range(3))


# Some documents with several summaries, and summaries that several documents share.
REPEATS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12), st.booleans()), max_size=25)


def pairs_of(repeats):
    """Eight pairs that have nothing in common, and others which repeat documents and summaries among themselves."""
    texts = [(f"Plain document {number}.", f"Plain story {number}. It is short.") for number in range(8)]
    for document, story, loud in repeats:
        summary = f"Story {story} is told. It takes {story} days."
        texts.append((f"Document {document} tells its own story.", summary.upper() if loud else summary))
    return [Pair(str(number), document, summary, "c") for number, (document, summary) in enumerate(texts)]


def written(pairs, options):
    with tempfile.TemporaryDirectory() as folder:
        report = generate(pairs, out=Path(folder), **options)
        return report, {
            name: [json.loads(line) for line in gzip.open(Path(folder) / f"{name}.jsonl.gz", "rt", encoding="utf-8")]
            for name in SPLITS
        }


@settings(max_examples=25, deadline=None)
@given(REPEATS, st.sampled_from(KINDS), SEEDS, st.randoms(use_true_random=False))
def test_a_corpus_with_repeats(repeats, kind, seed, order):
    pairs = pairs_of(repeats)
    options = {"recipe": Recipe({kind: 1.0, "add": 0.5}), "negatives": 2, "seed": seed}
    report, splits = written(pairs, options)
    keys = [{document_key(row["document"]) for row in rows} for rows in splits.values()]
    assert sum(map(len, keys)) == len(set.union(*keys)) == len({pair.document for pair in pairs}) == report["documents"]
    positives = [{normalise(row["summary"]) for row in rows if row["kind"] == "original"} for rows in splits.values()]
    assert sum(map(len, positives)) == len(set.union(*positives))
    goods: dict[str, set[str]] = {}
    for pair in pairs:
        goods.setdefault(pair.document, set()).add(normalise(pair.summary))
    for row in (row for rows in splits.values() for row in rows):
        assert 0 <= row["label"] <= 1
        assert (normalise(row["summary"]) in goods[row["document"]]) == (row["kind"] == "original")
    shuffled = order.sample(pairs, len(pairs))
    assert written(shuffled, options) == (report, splits)

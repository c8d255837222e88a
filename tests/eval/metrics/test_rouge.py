"""ROUGE against values worked out by hand, the rouge-score package, and the laws of the definitions."""

import random
import re
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.eval.metrics.rouge import lcs_length, lcs_positions, positions, weighted_lcs
from negsample.scoring.scorer import Item, make_metric
from negsample.text import fold

WORDS = st.sampled_from(["a", "b", "c", "d", "running", "Runner's", "12", "-", "é"])
LINE = st.lists(WORDS, max_size=9).map(" ".join)
TEXT = st.lists(LINE, max_size=4).map("\n".join)
KINDS = ("rouge1", "rouge2", "rouge3", "rouge4", "rougeL", "rougeLsum")


@lru_cache
def peer(stem: bool):  # type: ignore[no-untyped-def]
    scorer = pytest.importorskip("rouge_score.rouge_scorer")
    return scorer.RougeScorer(list(KINDS), use_stemmer=stem)


def rouge(kind: str, summary: str, reference: str, **options: object) -> tuple[float, float, float]:
    """Precision, recall and F1; 0 where a text has no n-gram, as rouge-score has it."""
    given = "".join(f",{name}={value}" for name, value in options.items())
    item = Item("", summary, (reference,))
    found = [values(f"{kind}(value={value}{given})", item)[0] for value in ("precision", "recall", "f1")]
    return tuple(np.nan_to_num(found))


def ours(kind: str, summary: str, reference: str, stem: bool) -> tuple[float, float, float]:
    return rouge(kind, summary, reference, stem=stem, **({"sentences": "newline"} if kind == "rougeLsum" else {}))


# --- by hand


def test_rouge_n_by_hand() -> None:
    summary, reference = "the cat sat on the mat", "The cat lay on a mat."
    # Unigrams: the, cat, on, mat match once each ("the" is clipped to one): 4 of 6 on both sides.
    assert rouge("rouge1", summary, reference) == pytest.approx((4 / 6, 4 / 6, 4 / 6))
    # Bigrams: "the cat" only: 1 of 5.
    assert rouge("rouge2", summary, reference) == pytest.approx((1 / 5, 1 / 5, 1 / 5))
    assert rouge("rouge3", "a b c", "a b c d e") == pytest.approx((1.0, 1 / 3, 0.5))


def test_rouge_l_by_hand() -> None:
    # Lin (2004), §3.1: S1 "police killed the gunman", S2 "police kill the gunman", S3 "the gunman kill police".
    reference = "police killed the gunman"
    assert rouge("rougeL", "police kill the gunman", reference)[2] == pytest.approx(3 / 4)
    assert rouge("rougeL", "the gunman kill police", reference)[2] == pytest.approx(2 / 4)


def test_rouge_lsum_by_hand() -> None:
    # Lin (2004), §3.2: reference w1 w2 w3 w4 w5; candidates w1 w2 w6 w7 w8 and w1 w3 w8 w9 w5: the union is
    # w1 w2 w3 w5, recall 4/5.
    summary = "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"
    assert rouge("rougeLsum", summary, "w1 w2 w3 w4 w5") == pytest.approx((4 / 10, 4 / 5, 8 / 15))


def test_rouge_lsum_sentences_by_rule_or_newline() -> None:
    summary, reference = "Two came. One left.", "One left. Two came."
    assert rouge("rougeLsum", summary, reference)[2] == 1.0
    # Without line breaks "newline" sees one sentence each, so Lsum is L: an LCS of 2 of 4 words.
    assert rouge("rougeLsum", summary, reference, sentences="newline")[2] == 0.5
    assert rouge("rougeL", summary, reference)[2] == 0.5


def test_rouge_w_by_hand() -> None:
    # Lin (2004), §4: X = A B C D E F G, Y1 = A B C D H I K, Y2 = A H B K C I D: the same LCS, but Y1 is one run.
    x, run, scattered = "a b c d e f g", "a b c d h i k", "a h b k c i d"
    f = 1.2
    assert weighted_lcs(x.split(), run.split(), f) == pytest.approx(4**f)
    assert weighted_lcs(x.split(), scattered.split(), f) == pytest.approx(4 * 1**f)
    assert rouge("rougeW", run, x) == pytest.approx((4 / 7, 4 / 7, 4 / 7))
    assert rouge("rougeW", scattered, x)[1] == pytest.approx((4 / 7**f) ** (1 / f))
    # Runs of 2 and 1 against 5 words: (2^1.2 + 1)^(1/1.2) / 5.
    assert rouge("rougeW", "a b x d", "a b c d e")[1] == pytest.approx((2**f + 1) ** (1 / f) / 5)


def test_options_by_hand() -> None:
    assert rouge("rouge1", "runs", "running")[2] == 0.0
    assert rouge("rouge1", "runs", "running", stem=True)[2] == 1.0
    # Words of three letters are left as they are, those of four are stemmed.
    assert rouge("rouge1", "ads", "ad", stem=True)[2] == 0.0
    assert rouge("rouge1", "cars", "car", stem=True)[2] == 1.0
    assert rouge("rouge1", "the cat", "the dog", stopwords="remove")[2] == 0.0
    assert rouge("rouge1", "the cat", "a cat", stopwords="remove")[2] == 1.0


def values(spec: str, *items: Item) -> list[float]:
    return list(make_metric(spec).score(items).scores)


def test_several_references_by_hand() -> None:
    # Against "a b": P 2/2, R 2/2, F 1. Against "a b c d": P 1, R 1/2, F 2/3. Against "x": 0.
    item = Item("", "a b", ("a b c d", "a b", "x"))
    assert values("rouge1", item) == [1.0]
    assert values("rouge1(references=mean)", item) == pytest.approx([(1 + 2 / 3 + 0) / 3])
    # Leave one out: max(1, 0), max(2/3, 0), max(2/3, 1).
    assert values("rouge1(references=jackknife)", item) == pytest.approx([(1 + 2 / 3 + 1) / 3])
    assert values("rouge1(value=recall,references=jackknife)", item) == pytest.approx([(1 + 0.5 + 1) / 3])
    assert values("rouge1(references=jackknife)", Item("", "a b", ("a b c d",))) == pytest.approx([2 / 3])


def test_recall_weighs_beta_times_as_much() -> None:
    # P 1/2, R 1/3: 2.44 · 1/6 / (1/3 + 1.44 · 1/2); upper case and a full stop belong to what white space separates.
    item = Item("", "a B", ("a x b.",))
    expected = [2.44 / 6 / (1 / 3 + 0.72)]
    assert values("rougeL(beta=1.2, tokenize=space)", item) == pytest.approx(expected)
    assert values("rougeL(beta=1.2, value=recall, tokenize=space)", item) == pytest.approx([1 / 3])
    with pytest.raises(InputError, match="beta is 0; give"):
        make_metric("rougeL(beta=0)")


def test_rouge_l_of_clark_et_al_as_printed() -> None:
    """Their Table 1 (three summaries of a passage) and Table 3 (two samples), read from the paper where it is there."""
    paper = next((Path(__file__).parents[4] / "shared" / "papers").glob("000_*.txt"), None)
    if paper is None:
        pytest.skip("the paper is not there")
    text = paper.read_text(encoding="utf-8")
    table = re.findall(r"^\| <b>(.+?)\.</b> (.+?) +\| *([\d.]*)", text, re.MULTILINE)[:4]
    # Hyphens are words of their own, the lone dash is left out.
    first = [re.sub(" +", " ", one.replace("–", "").replace("-", " - ").replace("\\$", "$")) for _, one, _ in table]
    found = [values("rougeL(beta=1.2, tokenize=space)", Item("", one, (first[0],)))[0] for one in first[1:]]
    assert (
        [f"{100 * value:.2f}" for value in found]
        == [printed for _, _, printed in table[1:]]
        == ["39.30", "31.44", "35.07"]
    )
    samples = re.findall(r"<b>(?:Reference|Hypothesis)\.</b> (.+?) +\|", text[text.index("Sample #1") :])[:4]
    for (reference, summary), printed in zip(
        zip(samples[::2], samples[1::2], strict=True), ("12.44", "34.57"), strict=True
    ):
        (value,) = values("rougeL(beta=1.2, tokenize=space)", Item("", summary, (reference,)))
        assert f"{100 * value:.2f}" == printed


def test_against_what() -> None:
    item = Item("a b c d", "a b", ("a x",))
    assert values("rouge1(value=recall)", item) == [0.5]
    assert values("rouge1(value=recall,against=document)", item) == [0.5]
    assert values("rouge1(value=precision,against=document)", item) == [1.0]
    assert values("rouge1", Item("a b", "a b")) == [1.0]
    scores = make_metric("rouge1(against=references)").score([Item("a b", "a b")])
    assert np.isnan(scores.scores[0])
    assert scores.reasons == ["no reference"]


# --- against rouge-score


@given(summary=TEXT, reference=TEXT, stem=st.booleans())
def test_equal_to_rouge_score(summary: str, reference: str, stem: bool) -> None:
    expected = peer(stem).score(reference, summary)
    for kind in KINDS:
        assert ours(kind, summary, reference, stem) == pytest.approx(tuple(expected[kind]), abs=1e-12), kind


@given(summary=st.text(max_size=60), reference=st.text(max_size=60))
def test_tokens_equal_to_rouge_score_on_any_text(summary: str, reference: str) -> None:
    tokenise = pytest.importorskip("rouge_score.tokenize").tokenize
    from negsample.eval.metrics.base import rouge_tokens

    for text in (summary, reference, summary + "İK ſ" + reference):
        assert rouge_tokens(text) == tokenise(fold(text), None)


def test_equal_to_rouge_score_on_folded_text() -> None:
    summary = "The oﬃce didn’t re\u00adopen at the cafe\u0301, 1½ kilometres oﬀ."
    reference = "The office\u00a0didn't reopen at the café for 1 1/2 km."
    expected = peer(False).score(fold(reference), fold(summary))
    assert rouge("rouge1", summary, reference) == pytest.approx(tuple(expected["rouge1"]))
    # the office didn t reopen at the caf 1 1 2: eleven of the summary's thirteen and the reference's thirteen words.
    assert rouge("rouge1", summary, reference) == pytest.approx((11 / 13,) * 3)
    assert peer(False).score(reference, summary)["rouge1"].fmeasure < 0.7


def test_equal_to_rouge_score_with_few_words_and_many_repeats() -> None:
    # Three words only: many longest common subsequences, so that the choice among them shows in Lsum.
    rng = random.Random(7)
    for _ in range(400):
        summary, reference = (
            "\n".join(" ".join(rng.choice("abc") for _ in range(rng.randint(0, 12))) for _ in range(3)) for _ in "12"
        )
        expected = peer(False).score(reference, summary)
        for kind in ("rougeL", "rougeLsum"):
            assert ours(kind, summary, reference, False) == pytest.approx(tuple(expected[kind]), abs=1e-12)


def test_metric_equal_to_rouge_score_over_several_references() -> None:
    rng = random.Random(3)

    def text() -> str:
        words = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "dog", "ran"]
        return " ".join(rng.choice(words) for _ in range(rng.randint(4, 12)))

    items = [Item("", text(), tuple(text() for _ in range(rng.randint(1, 4)))) for _ in range(60)]
    for kind in KINDS:
        spec = kind + ("(sentences=newline)" if kind == "rougeLsum" else "")
        for value, name in (("precision", "precision"), ("recall", "recall"), ("f1", "fmeasure")):
            got = values(f"{spec[:-1]},value={value})" if "(" in spec else f"{spec}(value={value})", *items)
            expected = [
                getattr(peer(False).score_multi(list(item.references), item.summary)[kind], name) for item in items
            ]
            assert got == pytest.approx(expected, abs=1e-12)


# --- laws


@given(first=st.lists(st.sampled_from("abc"), max_size=12), second=st.lists(st.sampled_from("abc"), max_size=12))
def test_lcs_against_the_table(first: list[str], second: list[str]) -> None:
    table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            table[i, j] = table[i - 1, j - 1] + 1 if a == b else max(table[i - 1, j], table[i, j - 1])
    masks = positions(first)
    assert lcs_length(masks, len(first), second) == table[-1, -1]
    chosen = lcs_positions(masks, len(first), second)
    picked = [token for place, token in enumerate(first) if chosen >> place & 1]
    assert len(picked) == table[-1, -1]
    rest = iter(second)
    assert all(token in rest for token in picked)


@given(first=st.lists(st.sampled_from("abc"), max_size=10), second=st.lists(st.sampled_from("abc"), max_size=10))
def test_weighted_lcs_against_lins_recursion(first: list[str], second: list[str]) -> None:
    value = [[0.0] * (len(second) + 1) for _ in range(len(first) + 1)]
    run = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            if a == b:
                k = run[i - 1][j - 1]
                value[i][j] = value[i - 1][j - 1] + (k + 1) ** 1.2 - k**1.2
                run[i][j] = k + 1
            else:
                value[i][j] = max(value[i - 1][j], value[i][j - 1])
    assert weighted_lcs(first, second) == pytest.approx(value[-1][-1], abs=1e-9)


@given(text=TEXT, other=TEXT)
def test_identity_symmetry_and_range(text: str, other: str) -> None:
    for kind in ("rouge1", "rougeL", "rougeLsum", "rougeW"):
        here, there = rouge(kind, text, other), rouge(kind, other, text)
        assert all(0.0 <= value <= 1.0 for value in here)
        same = rouge(kind, text, text)
        assert same == pytest.approx((1.0, 1.0, 1.0)) or not any(c.isascii() and c.isalnum() for c in text)
        if kind != "rougeLsum":
            # Lsum takes the union over the summary's sentences only, so it is not symmetric.
            assert here[:2] == pytest.approx(there[1::-1])


# --- hostile input


@pytest.mark.parametrize(
    ("document", "summary"),
    [
        ("2024年3月北京市政府宣布关闭所有学校。", "2024年3月上海的音乐会取消了。"),
        ("中国在2024年GDP增长了。", "这部电影2024年的GDP很无聊。"),
        ("Завод Bosch закрыли в 2024 году.", "Концерт Bosch отменили в 2024 году."),
        ("東京で2024年にNHKが放送した。", "大阪で2024年にNHKが休んだ。"),
        ("The council voted in 2024.", "市议会2024年投票。"),
    ],
)
def test_what_is_mostly_in_other_letters_is_not_measured_by_the_rest(document: str, summary: str) -> None:
    scores = make_metric("rouge1").score([Item(document, summary)])
    assert np.isnan(scores.scores[0])
    assert "tokenize=words" in str(scores.reasons[0])


def test_accents_are_no_other_letters_and_words_of_any_script_can_be_asked_for() -> None:
    assert values("rouge1", Item("Été à Besançon.", "Été à Besançon.")) == [1.0]
    # 猫 and が of four characters each.
    assert values("rouge1(tokenize=words)", Item("猫がいる。", "猫が寝た。")) == [0.5]
    assert values("rouge2(tokenize=words)", Item("猫がいる。", "猫が寝た。")) == pytest.approx([1 / 3])
    assert values("rougeL(tokenize=words)", Item("Кот спал.", "Кот ушёл.")) == [0.5]


def test_all_stop_words_are_missing_when_they_are_removed() -> None:
    scores = make_metric("rouge1(stopwords=remove)").score([Item("", "the of", ("of the and",))])
    assert np.isnan(scores.scores[0])


@pytest.mark.parametrize("kind", ["rouge1", "rougeLsum", "rougeW"])
def test_fifty_thousand_words(kind: str) -> None:
    rng = random.Random(11)
    long = " ".join(str(rng.randint(0, 999)) + ("." if rng.random() < 0.05 else "") for _ in range(50_000))
    short = " ".join(str(rng.randint(0, 999)) for _ in range(60)) + "."
    began = time.process_time()  # that of other programs does not count
    scores = make_metric(kind).score([Item("", long, (short,)), Item("", short, (long,))])
    assert np.isfinite(scores.scores).all()
    assert time.process_time() - began < 15


# --- names


def test_names_and_signatures() -> None:
    from negsample import __version__

    metric = make_metric("rouge1(stem=TRUE,value=recall)")
    assert metric.name == "rouge1(value=recall,stem=true)"
    assert metric.signature == (
        "metric:rouge1|value:recall|stem:true|stopwords:keep|references:max|against:auto|tokenize:rouge|beta:1.0|version:"
        + __version__
    )
    assert metric.higher_is_better
    assert metric.needs == frozenset()
    assert "sentences:rule" in make_metric("rougeLsum").signature

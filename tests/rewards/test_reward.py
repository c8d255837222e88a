"""Rewards: a batch equals ``score``; what they take and give; how sums, missing values, length and documents are dealt with."""

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny_lm
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models import load
from negsample.models.encoders.transformer import TransformerEncoder
from negsample.rewards import Partial, Reward, make_terms, within_spread
from negsample.scoring.scorer import Item, make_metric

DOCUMENT = "The harbour was closed on Monday. A storm broke two cranes. Repairs will cost 3 million euros."
OTHER = "Voters chose a new mayor. She is the first woman in the post."


@pytest.mark.parametrize("spec", ["rouge1(against=document)", "copied"])
def test_one_metric_gives_its_own_score_whatever_the_batch(spec: str) -> None:
    documents, summaries = [DOCUMENT, OTHER, DOCUMENT], ["A storm broke two cranes.", "A new mayor.", "Mayor cranes"]
    expected = make_metric(spec).score([Item(d, s) for d, s in zip(documents, summaries, strict=True)]).scores
    function = Reward(spec)
    assert function([""] * 3, summaries, document=documents) == pytest.approx(list(expected))
    assert function([""], summaries[2:], document=documents[2:]) == pytest.approx([expected[2]])


def test_an_estimator_and_its_aspects_give_their_own_scores_and_a_document_is_read_once(monkeypatch) -> None:
    texts: list[str] = []
    encode = TransformerEncoder.as_read

    def counted(self: TransformerEncoder, given: list[str]) -> list[str]:
        texts.extend(given)
        return encode(self, given)

    summaries = ["A storm broke two cranes.", "Cranes were broken by a storm on Monday."]
    told = load().score_pairs([DOCUMENT] * 2, summaries)
    monkeypatch.setattr(TransformerEncoder, "as_read", counted)
    function = Reward("ready.support")
    first = function([""] * 2, summaries, document=[DOCUMENT] * 2)
    assert first == pytest.approx(list(told.aspects["support"]), abs=1e-5)
    assert function([""] * 2, ["A harbour.", "Euros."], document=[DOCUMENT] * 2) != first
    assert Reward("ready")([""] * 2, summaries, document=[DOCUMENT] * 2) == pytest.approx(list(told.scores), abs=1e-5)
    assert texts.count("The harbour was closed on Monday.") <= 1


def test_folders_fitted_models_and_their_targets_are_rewards(fitted_model: Path) -> None:
    documents, summaries = [DOCUMENT, OTHER], ["A storm broke two cranes.", "A new mayor."]
    told = load(fitted_model).score_pairs(documents, summaries).named()
    for end, name in (("", "score"), (".support", "support"), (".relevance", "relevance")):
        found = Reward(f"{fitted_model}{end}").score(documents, summaries, [()] * 2)
        assert found == pytest.approx(told[name], abs=1e-5)
    with pytest.raises(InputError, match="did you mean relevance"):
        Reward(f"{fitted_model}.relevence")


def test_an_id_of_the_hub_is_asked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(model: str) -> None:
        asked.append(model)
        raise InputError("not there")

    monkeypatch.setattr("negsample.models.load_once", refuse)
    for spec, model in (("org/na-me", "org/na-me"), ("org/name-1.5", "org/name-1.5"), ("org/name.form", "org/name")):
        with pytest.raises(InputError, match="not there"):
            Reward(spec)
        assert asked.pop() == model


def test_messages_and_the_names_of_columns_are_the_users() -> None:
    function = Reward("rouge1", document="article", references="highlights")
    asked = [[{"role": "user", "content": "Sum up: …"}]] * 2
    answers = [
        [{"role": "assistant", "content": "a storm came"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "nothing"}]}],
    ]
    columns = {"highlights": ["a storm came", ["a storm came", "nothing"]]}
    assert function(asked, answers, completion_ids=[[1], [2]], **columns) == pytest.approx([1.0, 1.0])
    with pytest.raises(InputError, match="no column 'highlights'"):
        Reward("rouge1(against=references)", references="highlights")(asked, answers, article=["x", "y"])
    with pytest.raises(InputError, match="no column 'document'"):
        Reward("copied")(asked, answers, article=["x", "y"])


def test_two_rewards_of_one_trainer_have_two_names_in_its_log() -> None:
    told: dict[str, float] = {}
    for length in ("free", "partial"):
        Reward("words", length=length)([""] * 2, ["a", "b"], document=["x", "y"], log_metric=told.__setitem__)
    assert {name.rpartition("/")[0] for name in told} == {"words", "words(length=partial)"}


def test_the_parts_of_a_sum_are_brought_to_one_spread() -> None:
    # Words: 1, 3 and 2, 4: within documents the squares of (−1, 1, −1, 1) sum to 4 over 2 free ones: spread √2.
    summaries = ["un", "un deux trois", "un deux", "un deux trois quatre"]
    documents = [DOCUMENT, DOCUMENT, OTHER, OTHER]
    function = Reward("words=2, copied(n=1)")
    # Columns that are no lists, in another order than their labels say.
    function.calibrate(pd.Series(documents, [3, 1, 0, 2]), pd.Series(summaries, [2, 0, 3, 1]), iter([()] * 4))
    copied = Reward("copied(n=1)").score(documents, summaries, [()] * 4)
    assert copied.tolist() == [0.0] * 4  # no spread, so it stays as it is
    found = function.score(documents, summaries, [()] * 4)
    assert found == pytest.approx(np.array([1, 3, 2, 4]) * 2 / math.sqrt(2))
    # Settled: another batch changes nothing.
    assert function.score([DOCUMENT], ["un " * 30], [()]) == pytest.approx([30 * 2 / math.sqrt(2)])
    again = Reward("words=2, copied(n=1)=1")
    again.load_state(function.state())
    assert again.score([DOCUMENT], ["un"], [()]) == pytest.approx([2 / math.sqrt(2)])


def test_what_cant_be_scored_is_none_or_the_lowest_and_is_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("negsample.rewards._REPORT_EVERY", 3)
    summaries = ["Two cranes.", "", "A harbour and a storm and a cat"]
    function = Reward("rouge2")
    with caplog.at_level(logging.INFO, "negsample.rewards"):
        found = function(
            [""] * 3, summaries, document=[DOCUMENT] * 3, references=["two cranes", "two cranes", "cranes"]
        )
    assert found == [1.0, 1.0, None]  # the empty one gets the lowest seen; a reference of one word has no pair of words
    assert function.report()["empty"] == pytest.approx(1 / 3)
    assert function.report()["undefined"] == pytest.approx(2 / 3)
    assert "after 3 outputs" in caplog.text
    lowest = Reward("rouge2", undefined="lowest")
    references = ["two cranes", "red cranes", "cranes"]
    found = lowest([""] * 3, ["Two cranes.", "Two red cranes", "x y"], references=references)
    assert found == pytest.approx([1.0, 2 / 3, 2 / 3])


def test_where_there_are_no_references_what_needs_them_is_left_out_and_else_weighs_double() -> None:
    function = Reward("words=1,rouge1(against=references)=1", unsupervised=0.5)
    function.load_state({"spreads": [1.0, 1.0], "lowest": None, "length": []})
    found = function([""] * 2, ["two cranes"] * 2, references=["two cranes", None])
    assert found == pytest.approx([2 + 2 * 1.0, 2.0])


def test_the_report_tells_who_follows_length_and_who_repeats() -> None:
    function = Reward("words")
    texts = ["one", "one two three", "one two three", "on and on and on and on and on and on"]
    function.score([DOCUMENT, DOCUMENT, DOCUMENT, OTHER], texts, [()] * 4)
    report = function.report()
    assert report["correlation_with_words"] == pytest.approx(1.0)
    assert report["repeated"] == 0.5
    assert report["looping"] == 0.25
    assert report["mean"] == report["words"] == pytest.approx((1 + 3 + 3 + 11) / 4)


@pytest.mark.parametrize(
    ("spec", "options", "fault"),
    [
        ("ready.suport", {}, "did you mean support"),
        ("words=x", {}, "no weight"),
        ("words=0", {}, "not all 0"),
        ("words=1,words=2", {}, "given twice"),
        ("wordz", {}, "did you mean words"),
        ("=1", {}, "no name"),
        ("(words=1", {}, "parenthesis"),
        ("QA_learned", {}, "question-answering model"),
        ("words", {"length": "long"}, "length"),
        ("words", {"length": "band"}, "band"),
        ("words", {"band": (3, 5)}, "band"),
        ("words", {"length": "band", "band": (5, 3)}, "band"),
        ("words", {"undefined": "zero"}, "undefined"),
        ("words", {"unsupervised": 1.0}, "unsupervised"),
    ],
)
def test_what_is_wrong_is_named(spec: str, options: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        Reward(spec, **options)


def test_the_papers_sums_have_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("negsample.rewards.make_metric", lambda name: replace(make_metric("words"), name=name))
    terms, scaled = make_terms("QA_learned(model=org/qa)")
    assert not scaled
    assert [(term.name.partition("(")[0], term.weight) for term in terms] == [
        ("rougeL", 0.8576), ("summaqa-conf", 2.274), ("summaqa-f1", 0.6413),
    ]  # fmt: skip
    assert [term.weight for term in make_terms("QA_equally(model=org/qa)")[0]] == [1.0] * 3


def test_the_slope_on_words_is_taken_within_documents_and_remembered_across_calls() -> None:
    pairs = np.array([0, 0])
    partial = Partial()
    partial.adjust(np.array([0.0, 2.0]), np.array([1.0, 3.0]), pairs)  # slope 1: sums 2 and 2
    # Now no slope in this call: sums 0.9·2 = 1.8, and 1.8 + 2 = 3.8.
    found = partial.adjust(np.array([1.0, 1.0]), np.array([1.0, 3.0]), pairs)
    assert found == pytest.approx([1 + 1.8 / 3.8, 1 - 1.8 / 3.8])
    # A reward that is length has nothing left but the mean within each document: 2 and 4.
    found = Reward("words", length="partial").score(["a", "a", "b", "b"], ["w", "w w w", "w w w", "w " * 5], [()] * 4)
    assert found == pytest.approx([2, 2, 4, 4])


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_a_document_alone_keeps_its_reward(values: list[float]) -> None:
    found = Partial().adjust(np.array(values), np.arange(1.0, len(values) + 1), np.arange(len(values)))
    assert np.array_equal(found, np.array(values))


def test_the_band_is_free_inside_and_smooth_outside() -> None:
    counts = np.array([20, 25, 40, 60, 41])
    found = Reward("words", length="band", band=(20, 40)).score([DOCUMENT] * 5, ["w " * n for n in counts], [()] * 5)
    assert found == pytest.approx(counts - np.array([0, 0, 0, 0.25, 1 / 1600]))


def test_the_spread_is_that_within_documents() -> None:
    assert within_spread(np.array([1.0, 3.0, 101.0, 103.0]), np.array([0, 0, 1, 1])) == pytest.approx(2**0.5)
    assert within_spread(np.array([1.0, 3.0, np.nan]), np.array([0, 1, 2])) == pytest.approx(2**0.5)
    assert within_spread(np.array([1.0]), np.array([0])) == 0.0


def test_grpo_trains_three_steps_with_the_reward(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="TRL is not installed: pip install 'negsample[trl]'")
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    folder = tiny_lm.build(tmp_path / "model", "gpt")
    rows = {"prompt": ["the cat", "a mat"], "story": ["the cat sat on a mat .", "a mat is long ."]}
    function = Reward("copied=1, words=0.1", document="story", length="partial")
    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=3, per_device_train_batch_size=4, num_generations=2,
        max_completion_length=6, report_to=[], use_cpu=True, save_strategy="no", logging_steps=1, disable_tqdm=True,
        bf16=False,  # Accelerate would keep it for the tests to come
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=str(folder),
        reward_funcs=function,
        args=settings,
        train_dataset=Dataset.from_dict(rows),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.train()
    assert trainer.state.global_step == 3
    logged = {key for line in trainer.state.log_history for key in line}
    assert "rewards/copied=1, words=0.1(document=story,length=partial)/mean" in logged
    assert any(key.endswith("correlation_with_words") for key in logged)
    # Four outputs a step: a reward that was not asked for would have seen none.
    assert function.report()["words"] is not None
    assert function._outputs == 12

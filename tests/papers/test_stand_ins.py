"""Small stand-ins for a whole configuration."""

import dataclasses

import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError
from negsample.papers.stand_ins import PAIRS, small_training, stand_in_corpora, stand_in_encoder, stand_in_encoders
from negsample.train.config import TrainConfig, make_config


def quiet(line):
    """Where a test does not care what is said."""


def test_what_is_replaced_and_what_stays():
    config = make_config(
        {
            "corpus": "abisee/cnn_dailymail",
            "corpus_config": "3.0.0",
            "document_field": "article",
            "recipe": {"delete": 2.0, "swap": 1.0},
            "negatives": 5,
            "limit": 30000,
            "sample": 0.1,
            "encoder": "google-bert/bert-base-uncased",
            "loss": "ranking",
            "optimizer": "rmsprop",
            "learning_rate": 0.001,
            "batch_size": 7,
            "epochs": 30,
            "mixed_precision": "fp16",
            "seed": 4,
        }
    )
    said = []
    small = small_training(config, said.append)
    changed = {
        key: value for key, value in dataclasses.asdict(small).items() if value != dataclasses.asdict(config)[key]
    }
    assert changed == {
        "corpus": "sample:news",
        "corpus_config": None,
        "document_field": None,
        "negatives": 2,
        "limit": PAIRS,
        "sample": None,
        "encoder": "minilm",
        "epochs": 2,
        "mixed_precision": "no",
        "max_length": 64,
        "min_summary": 32,
        "judge_steps": 2,
    }
    assert len(said) == 1
    assert "\n" not in said[0]
    assert "corpus abisee/cnn_dailymail → sample:news" in said[0]
    assert "encoder google-bert/bert-base-uncased → minilm" in said[0]
    assert "recipe" not in said[0]


def test_what_is_small_already_stays_as_it_is():
    small = small_training(TrainConfig(), quiet)
    said = []
    assert small_training(small, said.append) == small
    assert said == []
    # The untrained sum stays untrained, and fewer pairs or epochs are not made more.
    assert small_training(TrainConfig(head="align", epochs=0), quiet).epochs == 0
    assert small_training(TrainConfig(limit=7, epochs=1), quiet).limit == 7


def test_a_default_encoder_is_left_to_the_head():
    assert small_training(TrainConfig(head="fc"), quiet).encoder is None
    assert small_training(TrainConfig(head="lstm", encoder="glove:/x/y.txt"), quiet).encoder == "glove"
    assert small_training(TrainConfig(head="align", encoder="hf:/x"), quiet).encoder == "sentence-transformer"
    with pytest.raises(InputError, match="did you mean lstm"):
        small_training(TrainConfig(head="lstn", encoder="use"), quiet)


def test_each_corpus_gets_a_domain_of_its_own():
    # The corpora of experiment 2 (Bao et al. 2021 §4.1): one domain each.
    found = stand_in_corpora(["arxiv", "FiscalNote/billsum", "big_patent:/copy", "cnn_dailymail"])
    assert found == {
        "arxiv": "sample:science",
        "FiscalNote/billsum": "sample:legislation",
        "big_patent:/copy": "sample:patents",
        "cnn_dailymail": "sample:news",
    }
    # Two of news: the second takes a free domain; what is like none takes what is left, though it is named first.
    found = stand_in_corpora(["mine.jsonl", "cnn_dailymail", "newsroom:DIR", "big_patent"])
    assert found["cnn_dailymail"] == "sample:news"
    assert found["big_patent"] == "sample:patents"
    assert len(set(found.values())) == 4
    assert list(found) == ["mine.jsonl", "cnn_dailymail", "newsroom:DIR", "big_patent"]
    # What was replaced may be given again.
    assert stand_in_corpora(list(found.values())) == {name: name for name in found.values()}
    assert small_training(TrainConfig(corpus=["a/b", "c/d"]), quiet).corpus == ["sample:news", "sample:legislation"]
    for name in found.values():
        assert len(list(load_pairs(name, CorpusOptions(limit=PAIRS)))) == PAIRS


def test_five_corpora_have_four_stand_ins_each_read_once():
    assert sorted(small_training(TrainConfig(corpus=["a/b", "c/d", "e/f", "g/h", "i/j"]), quiet).corpora()) == [
        "sample:legislation",
        "sample:news",
        "sample:patents",
        "sample:science",
    ]


def test_packaged_encoders_stay_and_others_get_a_part_each():
    for spec in ("glove", "glove(unit=sentence,pool=max)", "hf(layer=-2)", "sentence-transformer", "use-multilingual"):
        assert stand_in_encoder(spec) == spec
    assert stand_in_encoder("hf(model=owner/name,pool=max)") == "hf"
    assert stand_in_encoder("glove(/x/y.txt,unit=sentence)") == "glove(unit=sentence)"
    assert stand_in_encoder("somebody-elses:option=3") == "glove(unit=sentence)"
    # The four of Bao et al. 2021 (§4.2) keep four columns of a table.
    published = ["glove:/x/glove.6B.100d.txt", "use", "use-large:/x", "infersent(weights=/x,vectors=/y)"]
    stands = ("glove", "use-multilingual", "sentence-transformer", "glove(unit=sentence)")
    assert stand_in_encoders(published, quiet) == stands
    said = []
    assert stand_in_encoders(("glove", "word2vec:/x", "glove:/y"), said.append) == ("glove",)
    assert said == ["smoke run: encoders glove, word2vec:/x, glove:/y → glove"]

"""Small stand-ins for a whole configuration."""

import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError
from negsample.papers.stand_ins import PAIRS, small_training, stand_in_corpora, stand_in_encoder, stand_in_encoders
from negsample.train.config import TrainConfig, make_config


def test_what_is_replaced_and_what_stays():
    config = make_config(
        {
            "corpus": "abisee/cnn_dailymail",
            "corpus_config": "3.0.0",
            "document_field": "article",
            "limit": 30000,
            "sample": 0.1,
        }
        | {
            "recipe": {"delete": 2.0, "swap": 1.0},
            "negatives": 5,
            "encoder": "google-bert/bert-base-uncased",
            "loss": "ranking",
        }
        | {
            "optimizer": "rmsprop",
            "learning_rate": 0.001,
            "batch_size": 7,
            "epochs": 30,
            "mixed_precision": "fp16",
            "seed": 4,
        }
    )
    said = []
    before, after = config.as_dict(), small_training(config, said.append).as_dict()
    unset = dict.fromkeys(("corpus_config", "document_field", "sample"))
    numbers = {"negatives": 2, "limit": PAIRS, "epochs": 2, "max_length": 64, "min_summary": 32, "judge_steps": 2}
    assert {key: value for key, value in after.items() if value != before[key]} == {
        **unset, **numbers, "corpus": "sample:news", "encoder": "minilm", "mixed_precision": "no",
    }  # fmt: skip
    assert len(said) == 1
    assert "corpus abisee/cnn_dailymail → sample:news" in said[0]


def test_what_is_small_already_stays_as_it_is():
    small = small_training(TrainConfig(), str)
    said = []
    assert small_training(small, said.append) == small
    assert said == []
    # The untrained sum stays untrained, and fewer pairs or epochs are not made more.
    assert small_training(TrainConfig(head="align", epochs=0), str).epochs == 0
    assert small_training(TrainConfig(limit=7, epochs=1), str).limit == 7


def test_a_default_encoder_is_left_to_the_head():
    assert small_training(TrainConfig(head="fc"), str).encoder is None
    assert small_training(TrainConfig(head="lstm", encoder="glove:/x/y.txt"), str).encoder == "glove"
    assert small_training(TrainConfig(head="align", encoder="hf:/x"), str).encoder == "sentence-transformer"
    with pytest.raises(InputError, match="did you mean lstm"):
        small_training(TrainConfig(head="lstn", encoder="use"), str)


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
    assert small_training(TrainConfig(corpus=["a/b", "c/d"]), str).corpus == ["sample:news", "sample:legislation"]
    for name in found.values():
        assert len(list(load_pairs(name, CorpusOptions(limit=PAIRS)))) == PAIRS


def test_five_corpora_have_four_stand_ins_each_read_once():
    five = small_training(TrainConfig(corpus=["a/b", "c/d", "e/f", "g/h", "i/j"]), str).corpora()
    assert len(five) == len(set(five)) == 4


def test_packaged_encoders_stay_and_others_get_a_part_each():
    for spec in ("glove", "glove(unit=sentence,pool=max)", "hf(layer=-2)", "sentence-transformer", "use-multilingual"):
        assert stand_in_encoder(spec) == spec
    assert stand_in_encoder("hf(model=owner/name,pool=max)") == "hf"
    assert stand_in_encoder("glove(/x/y.txt,unit=sentence)") == "glove(unit=sentence)"
    assert stand_in_encoder("somebody-elses:option=3") == "glove(unit=sentence)"
    # The four of Bao et al. 2021 (§4.2) keep four columns of a table.
    published = ["glove:/x/glove.6B.100d.txt", "use", "use-large:/x", "infersent(weights=/x,vectors=/y)"]
    stands = ("glove", "use-multilingual", "sentence-transformer", "glove(unit=sentence)")
    assert stand_in_encoders(published, str) == stands
    said = []
    assert stand_in_encoders(("glove", "word2vec:/x", "glove:/y"), said.append) == ("glove",)
    assert said == ["smoke run: encoders glove, word2vec:/x, glove:/y → glove"]

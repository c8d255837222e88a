"""Small stand-ins for a whole configuration."""

import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.papers.stand_ins import PAIRS, small_training, stand_in_corpora, stand_in_encoder
from negsample.train.config import TrainConfig, make_config


def test_what_is_replaced_and_what_stays():
    read = {"corpus": "abisee/cnn_dailymail", "corpus_config": "3.0.0", "document_field": "article", "sample": 0.1}
    made = {"recipe": {"delete": 2.0, "swap": 1.0}, "negatives": 5, "encoder": "google-bert/bert-base-uncased"}
    fit = {"loss": "ranking", "optimizer": "rmsprop", "learning_rate": 0.001, "batch_size": 7, "epochs": 30, "seed": 4}
    config = make_config({**read, "limit": 30000, **made, **fit, "mixed_precision": "fp16"})
    said = []
    small = small_training(config, said.append)
    before, after = config.as_dict(), small.as_dict()
    unset = dict.fromkeys(("corpus_config", "document_field", "sample"))
    numbers = {"negatives": 2, "limit": PAIRS, "epochs": 2, "max_length": 64, "min_summary": 32, "judge_steps": 2}
    numbers["support_steps"] = 2
    assert {key: value for key, value in after.items() if value != before[key]} == {
        **unset, **numbers, "corpus": "sample:news", "encoder": "minilm", "mixed_precision": "no",
    }  # fmt: skip
    assert "corpus abisee/cnn_dailymail → sample:news" in said[0]
    # What is small already stays, and is not told.
    assert small_training(small, said.append) == small
    assert len(said) == 1


@pytest.mark.parametrize(
    ("given", "key", "kept"),
    [
        ({"head": "align", "epochs": 0}, "epochs", 0),
        ({"limit": 7}, "limit", 7),
        ({"epochs": 1}, "epochs", 1),
        ({"head": "fc"}, "encoder", None),
        ({"head": "lstm", "encoder": "glove:/x/y.txt"}, "encoder", "glove"),
        ({"head": "align", "encoder": "hf:/x"}, "encoder", "sentence-transformer"),
        ({"corpus": ["a/b", "c/d"]}, "corpus", ["sample:news", "sample:legislation"]),
        (
            {"corpus": [*"abcde"]},
            "corpus",
            [f"sample:{name}" for name in ("news", "legislation", "patents", "science")],
        ),
    ],
)
def test_nothing_is_made_more_and_a_default_is_left_to_the_head(given, key, kept):
    assert getattr(small_training(TrainConfig(**given), str), key) == kept


def test_each_corpus_gets_a_domain_of_its_own():
    # The corpora of experiment 2 (Bao et al. 2021 §4.1): one domain each.
    names = ["arxiv", "FiscalNote/billsum", "big_patent:/copy", "cnn_dailymail"]
    found = stand_in_corpora(names)
    assert found == dict(
        zip(names, [f"sample:{name}" for name in ("science", "legislation", "patents", "news")], strict=True)
    )
    # Two of news: the second takes a free domain; what is like none takes what is left, though it is named first.
    names = ["mine.jsonl", "cnn_dailymail", "newsroom:DIR", "big_patent"]
    found = stand_in_corpora(names)
    assert (found["cnn_dailymail"], found["big_patent"]) == ("sample:news", "sample:patents")
    assert (list(found), len(set(found.values()))) == (names, 4)
    # What was replaced may be given again.
    assert stand_in_corpora(list(found.values())) == {name: name for name in found.values()}
    for name in found.values():
        assert len(list(load_pairs(name, CorpusOptions(limit=PAIRS)))) == PAIRS


def test_packaged_encoders_stay_and_others_get_a_part_each():
    for spec in ("glove", "glove(unit=sentence,pool=max)", "hf(layer=-2)", "sentence-transformer", "use-multilingual"):
        assert stand_in_encoder(spec) == spec
    assert stand_in_encoder("hf(model=owner/name,pool=max)") == "hf"
    assert stand_in_encoder("glove(/x/y.txt,unit=sentence)") == "glove(unit=sentence)"
    assert stand_in_encoder("somebody-elses:option=3") == "glove(unit=sentence)"
    # The four of Bao et al. 2021 (§4.2) keep four columns of a table.
    published = ["glove:/x/glove.6B.100d.txt", "use", "use-large:/x", "infersent(weights=/x,vectors=/y)"]
    stands = ["glove", "use-multilingual", "sentence-transformer", "glove(unit=sentence)"]
    assert list(map(stand_in_encoder, published)) == stands

"""Tables on people's judgments: figures against scipy and by hand, what is left out, kept scores."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError
from negsample.eval.agreement.significance import williams
from negsample.eval.judgments import Source
from negsample.eval.metrics.base import score_judged
from negsample.eval.metrics.learned import fit_learned
from negsample.papers import judged, stand_ins
from negsample.papers.declared import Declared, declared
from negsample.papers.judged import Asked, judged_sources, measure
from negsample.papers.stand_ins import PAIRS, small_training, stand_in_corpora, stand_in_encoder
from negsample.records import Judged
from negsample.scoring.scorer import make_metric
from negsample.train.config import TrainConfig, make_config

MADE = Declared(
    "nobody",
    "Table 1",
    "A table",
    name="made",
    kind="correlations",
    data=("a", "b"),
    rows="ROUGE-L  rougeL\nSMS  rouge1(value=recall)\nBERT  mlm(model=({BERT}))",
    parts={"BERT": ""},
    coefficients=("spearman",),
    human=("kept",),
)


def made(out, spec=MADE, sources=None, **asked):
    """``spec`` measured on summaries made of the sample."""
    sources = sources or stand_ins.damaged_sources(len(spec.data), spec.human)
    return measure(spec, sources, Asked(bootstrap=20, **asked), out, str)


def by_hand(spec):
    """Rows (article, system, summary, score), all of one short article and reference."""
    rows = tuple(
        Judged(article, system, ("one two three four five",), summary, ("one two", "one"), {"kept": score}, "hand")
        for article, system, summary, score in spec
    )
    return [Source("hand", "hand", rows, ())]


def test_correlations_and_stars(tmp_path, monkeypatch):
    monkeypatch.setattr("negsample.resampling.MIN_UNITS", 2)
    measured = made(tmp_path, replace(MADE, against="ROUGE-L", stars=((0.9999, "+"),)))
    found = judged.correlations(measured)
    assert measured.not_run == {"BERT": "no BERT is packaged; give --part BERT=SPEC"}
    for source in measured.sources:
        human = [row.scores["kept"] for row in source.rows]
        metrics, _ = MADE.metrics()
        scores = {name: score_judged(make_metric(text), source.rows).scores for name, text in metrics.items()}
        r = {name: spearmanr(values, human).statistic for name, values in scores.items()}
        own = {record.row: record for record in found.records if record.column == f"{source.name} kept S"}
        for name, value in r.items():
            assert own[name].value == pytest.approx(value)
            assert own[name].low <= value <= own[name].high
        between = np.corrcoef([rankdata(values) for values in scores.values()])[0, 1]
        p = own["SMS"].about["p"]
        assert p == pytest.approx(williams(r["SMS"], r["ROUGE-L"], between, len(human)).p_one)
        assert (own["SMS"].mark, own["ROUGE-L"].mark) == ("+", "")
        assert {"words", "copied", "tf-recall", "lead-overlap"} == set(own) - set(scores)


def test_people_among_themselves_and_the_learned_metric(tmp_path, monkeypatch):
    monkeypatch.setattr(judged, "SPLITS", 20)
    spec = replace(MADE, human=("kept", "joined"), between_people=True, learned=("ROUGE-L", "SMS", "BERT"))
    measured = made(tmp_path, spec)
    found = {(record.section, record.row, record.column): record for record in judged.correlations(measured).records}
    rows = measured.sources[0].rows
    expected = spearmanr([row.scores["kept"] for row in rows], [row.scores["joined"] for row in rows]).statistic
    domain, table = measured.tables[0].dataset, measured.tables[0]
    assert found["", "kept", f"{domain} joined S"].value == pytest.approx(expected)
    columns = {name: table.metrics[name] for name in ("ROUGE-L", "SMS")}
    alone = fit_learned(columns, table.human, [table.document_names[code] for code in table.documents], splits=20)
    section = f"{domain}: learned metric, held out"
    assert found[section, "ROUGE-L + SMS", "mean"].value == alone.held_out.mean
    assert [row for where, row, column in found if where == section and column == "mean"] == [
        "ROUGE-L", "SMS", "ROUGE-L + SMS", "equal weights",
    ]  # fmt: skip


def test_statistics_and_system_means_by_hand(tmp_path):
    source = by_hand([("a", "1", "one", 0.2), ("b", "1", "one two", 0.4), ("a", "2", "one two three", 0.9)])
    names = ("systems", "reference-length", "summary-length", "document-length")
    names += ("lowest-system", "highest-system", "sd-of-systems", "articles-a-system")
    names += ("summaries", "words", "types", "summary-sentences")
    printed = "\n".join(["statistic hand~kept", *(f"{name} 1" for name in names)])
    measured = made(tmp_path, replace(MADE, kind="statistics", rows="words  words", printed=printed), source)
    expected = dict(zip(names, (2, 1.5, 2.0, 5.0, 0.3, 0.9, 0.6 / 2**0.5, 1.5, 3, 6, 3, 1.0), strict=True))
    assert {record.row: record.value for record in judged.statistics(measured).records} == pytest.approx(expected)
    means = {
        (record.row, record.column): record.value for record in judged.systems(replace(measured, spec=MADE)).records
    }
    assert means == pytest.approx(
        {("1", "people: kept"): 0.3, ("2", "people: kept"): 0.9, ("1", "words"): 1.5, ("2", "words"): 3.0}
    )


def test_the_summaries_that_two_metrics_see_differently(tmp_path):
    texts = ("one two", "two one x", "three", "one one one one")
    source = by_hand([("a", str(k), text, k) for k, text in enumerate(texts)])
    measured = made(tmp_path, replace(MADE, kind="disagreements"), source)
    metrics = measured.tables[0].metrics
    apart = rankdata(metrics["SMS"]) - rankdata(metrics["ROUGE-L"])
    found = judged.disagreements(measured)
    assert [text for _, text in found.texts[1::2]] == [texts[int(apart.argmax())], texts[int(apart.argmin())]]
    assert {record.mark for record in found.records} <= {"", "↑", "↓"}


def test_systems_that_a_paper_leaves_out(tmp_path):
    path = tmp_path / "judged.jsonl"
    record = {"dataset": "newsroom", "document_id": "d", "document": "x", "summary": "y", "scores": {"relevance": 1}}
    path.write_text("".join(json.dumps(record | {"system": name}) + "\n" for name in ("lede3", "fragments")))
    spec = declared("p1-table3")
    (source,) = judged_sources(spec, [str(path)])
    assert [row.system for row in source.rows] == ["lede3"]
    assert source.missing == ("left out: system fragments (1 summaries)",)
    path.write_text(json.dumps(record | {"system": "fragments"}) + "\n")
    with pytest.raises(InputError, match="no summary is left without system fragments"):
        judged_sources(spec, [str(path)])


def test_scores_are_kept(tmp_path, monkeypatch):
    first = made(tmp_path)
    scored = []
    once = lambda scorer, rows: scored.append(scorer.name) or score_judged(scorer, rows)  # noqa: E731
    monkeypatch.setattr(judged, "score_judged", once)
    again = made(tmp_path)
    assert not scored
    for name, column in first.tables[1].metrics.items():
        assert again.tables[1].metrics[name].tolist() == column.tolist()
    # One that was cut short is done again, alone; other rows are all scored.
    next(file for file in (tmp_path / "scores").iterdir() if '"SMS"' in file.read_text()).write_text("{")
    made(tmp_path)
    assert scored == ["rouge1(value=recall)"]
    made(tmp_path, sources=stand_ins.damaged_sources(2, MADE.human, seed=1))
    assert len(scored) == 1 + 6


def test_what_can_not_be_measured(tmp_path):
    with pytest.raises(InputError, match="not one of its metrics could be made: no BERT is packaged"):
        made(tmp_path, replace(MADE, rows="BERT  mlm(model=({BERT}))"))
    with pytest.raises(InputError, match=r"--human kep: .* did you mean kept"):
        made(tmp_path, human=("kep",))


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

"""Learning from scores that were given: what is read, how it is scaled and parted, and what each head makes of it."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests_support import command_line, split_of, story

from negsample import Estimator
from negsample.corpora.pairs import CorpusOptions
from negsample.errors import InputError
from negsample.eval.examples import evaluate
from negsample.io.read import read_examples
from negsample.records import document_key
from negsample.train.config import make_config
from negsample.train.data import SPLITS, make_examples
from negsample.train.fit.align import rank, ranking_loss
from negsample.train.job import loss_of, train
from negsample.train.labels import LABELLED, Labelled, read_labels

CAT = "The cat sat. It rained."
ROWS: list[dict[str, Any]] = [
    {"document": CAT, "summary": "A cat sat.", "scores": {"good": 5, "clear": 2}, "by": "judge:m"},
    {"document": CAT, "summary": "Rain fell.", "scores": {"good": 1, "clear": None}, "by": "judge:m"},
    {
        "document": CAT.replace(" ", "  ", 1),
        "summary": "A cat sat.",
        "scores": {"good": 3, "clear": 4},
        "by": "judge:m",
    },
    {"document": "A dog ran.", "summary": "A dog.", "scores": {"good": 2, "clear": 3}, "half": "tune"},
    {"document": "A hen sang.", "summary": "A hen.", "scores": {"clear": 3}},
    {"document": "An owl.", "summary": "An owl.", "scores": {"good": 9, "clear": 3}, "half": "report"},
]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def labels_of(path: str, *named: Any, **options: Any) -> tuple[Labelled, Counter[str]]:
    skipped: Counter[str] = Counter()
    return read_labels(path, CorpusOptions(**options), skipped, *named), skipped


def table_of(found: Labelled) -> dict[str, dict[str, float]]:
    return {
        pair.summary: {output: round(float(values[k]), 6) for output, values in found.labels.items()}
        for k, pair in enumerate(found.pairs)
    }


def test_scores_become_labels_by_their_range(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.jsonl", ROWS)
    found, skipped = labels_of(path, "good")
    # 1 to 5 in what is read; the cat's two records have 5 and 3, of one text but for a space.
    assert table_of(found) == {"A cat sat.": {"score": 0.75}, "Rain fell.": {"score": 0.0}, "A dog.": {"score": 0.25}}
    assert skipped == {"half: report": 1}
    about = found.about
    assert about["scores"] == [{"output": "score", "name": "good", "low": 1.0, "high": 5.0, "n": 4, "missing": 1}]
    assert (about["by"], about["summaries"], about["documents"]) == (["judge:m"], 3, 2)
    assert (about["without_label"], about["averaged"]) == (1, 1)
    assert any("good, 1 to 5 becomes 0 to 1, 1 missing" in line for line in about["told"])
    assert str(found).startswith("labels(score=good[1..5]@")
    # No range can be changed without the signature: another score of one record is another fingerprint.
    other = written(tmp_path / "other.jsonl", [{**ROWS[0], "scores": {"good": 4}}, *ROWS[1:]])
    assert str(labels_of(other, "good")[0]) != str(found)


def test_aspects_have_labels_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.jsonl", ROWS)
    both, _ = labels_of(path, "good", {"form": "clear"})
    told = table_of(both)
    assert told["A cat sat."] == {"score": 0.75, "form": 0.5}  # (2 + 4)/2 on 2 to 4
    assert np.isnan(told["Rain fell."]["form"])
    assert [example.aspects for example in both.examples(np.arange(3)) if example.summary == "Rain fell."] == [{}]
    # Without a label of the whole it is the mean of the aspects', where all are there.
    alone, _ = labels_of(path, None, {"form": "clear", "support": "good"})
    assert table_of(alone)["A dog."]["score"] == pytest.approx((0.5 + 0.25) / 2)
    assert alone.about["without_label"] == 2  # the rain and the hen


def test_the_usual_names_are_found_and_others_asked_for(tmp_path: Path) -> None:
    scored = [{"document": f"Text {k}.", "summary": "A text.", "score": k, "other": 0} for k in range(3)]
    assert labels_of(written(tmp_path / "a.jsonl", scored))[0].about["scores"][0]["name"] == "score"
    several = written(tmp_path / "c.jsonl", ROWS)
    for named, told in (
        ((None,), r"no record has a number in 'label'; give label=NAME; known: good, clear, document"),
        (("goood",), "no record has a number in 'goood'; give label=NAME; did you mean good"),
    ):
        with pytest.raises(InputError, match=told):
            labels_of(several, *named)
    with pytest.raises(InputError, match=r"no record has a number in 'by'; name another score$"):
        labels_of(written(tmp_path / "b.jsonl", [{**row, "by": None} for row in ROWS]), "by")
    with pytest.raises(InputError, match="'other' is 0 in every record"):
        labels_of(str(tmp_path / "a.jsonl"), "other")


def test_choices_are_for_fit(tmp_path: Path) -> None:
    path = tmp_path / "choices.jsonl"
    path.write_text('{"document": "Ann met Bob.", "a": "Ann.", "b": "Bob.", "choice": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: a choice between two summaries, which `negsample fit` learns from"):
        read_labels(path, CorpusOptions(), Counter())


def test_bad_records_stop_or_are_counted(tmp_path: Path) -> None:
    bad = [*ROWS[:2], {"document": "x y.", "summary": "x.", "scores": {"good": "much"}}, {"summary": "x.", "good": 2}]
    path = written(tmp_path / "labels.jsonl", bad)
    with pytest.raises(InputError, match=r"line 3: field 'good' is not a number.*on_bad=skip"):
        labels_of(path, "good")
    found, skipped = labels_of(path, "good", on_bad="skip")
    assert len(found.pairs) == 2
    assert skipped == {"field 'good' is not a number": 1, "no field 'document'": 1}
    assert len(labels_of(path, "good", limit=2)[0].pairs) == 2


def graded(path: Path, documents: int = 30, **more: Any) -> str:
    """Three summaries a document: the fewer sentences, the lower their score from 1 to 5."""
    rows = []
    for number in range(documents):
        document, summary = story(number)
        first = summary.split(". ")[0] + "."
        for score, text in ((5, summary), (3, first), (1, " ".join(first.split()[:3]))):
            rows.append({"document": document, "summary": text, "grade": score, **more})
    return written(path, rows)


def test_labels_alone_are_parted_by_document(tmp_path: Path) -> None:
    config = make_config({"labels": graded(tmp_path / "labels.jsonl"), "label": "grade", "head": "fc"})
    assert config.recipe_of() is None
    made = make_examples(config, None, tmp_path / "made")
    splits = {name: list(read_examples(tmp_path / "made" / f"labelled-{name}.jsonl.gz")) for name in SPLITS}
    assert {name: made["splits"][name]["labelled"] for name in SPLITS} == {"train": 72, "validation": 9, "test": 9}
    documents = {name: {example.document for example in own} for name, own in splits.items()}
    assert not documents["train"] & documents["test"]
    assert sum(map(len, documents.values())) == 30
    assert Counter(example.label for example in splits["test"]) == {1.0: 3, 0.5: 3, 0.0: 3}
    assert {example.kind for example in splits["train"]} == {LABELLED}
    # Those that nothing was learned from are not among the keys by which `correlate` knows what was.
    learned = documents["train"] | documents["validation"]
    assert set(made["labels"]["keys"]) == set(map(document_key, learned))


def test_beside_damage_a_document_is_in_one_split(tmp_path: Path, pairs_file: Path) -> None:
    # The corpus has 60 of these stories, of which 30 are labelled too.
    values = {"labels": graded(tmp_path / "labels.jsonl"), "label": "grade", "corpus": str(pairs_file)}
    config = make_config({**values, "recipe": "delete", "label_weight": 2})
    made = make_examples(config, config.recipe_of(), tmp_path / "made")
    names = {f"{kind}{name}": name for name in SPLITS for kind in ("", "labelled-")}
    found = {
        file: {example.document for example in read_examples(tmp_path / "made" / f"{file}.jsonl.gz")}
        for file in names
        if (tmp_path / "made" / f"{file}.jsonl.gz").is_file()
    }
    for name in SPLITS:
        assert found.get(f"labelled-{name}", set()) <= found[name]
    assert made["recipe"].startswith("delete+2*labels(score=grade[1..5]@")
    # One that shares a summary with a document of the test goes with it.
    (held, *_), others = sorted(found["test"]), [story(n)[0] for n in range(70, 76)]
    rows = [
        {"document": held, "summary": "The same.", "grade": 1},
        {"document": others[0], "summary": "The same.", "grade": 2},
    ]
    rows += [{"document": document, "summary": document[:20], "grade": 3} for document in others[1:]]
    config = make_config({**values, "recipe": "delete", "labels": written(tmp_path / "shared.jsonl", rows)})
    make_examples(config, config.recipe_of(), tmp_path / "shared")
    tested = {example.document for example in read_examples(tmp_path / "shared" / "labelled-test.jsonl.gz")}
    assert {held, others[0]} <= tested
    # Two of others, which would be too few to be split.
    rows = [{"document": story(n)[0], "summary": text, "grade": n} for n in (70, 71) for text in ("Yes.", "No.")]
    config = make_config({**values, "recipe": "delete", "labels": written(tmp_path / "few.jsonl", rows)})
    few = make_examples(config, config.recipe_of(), tmp_path / "few")
    assert [few["splits"][name]["labelled"] for name in SPLITS] == [4, 0, 0]
    alone = make_config({"labels": config.labels, "label": "grade", "head": "fc"})
    with pytest.raises(InputError, match="has 2 documents and 3 splits are wanted"):
        make_examples(alone, None, tmp_path / "alone")
    assert any("a labelled summary counts 2 times" in line for line in made["labels"]["told"])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"label": "x"}, "label goes with labels=FILE"),
        ({"labels": "x", "corpus": "y"}, "corpus beside labels"),
        ({"labels": "x", "label_weight": 2}, "label_weight beside labels"),
        ({"labels": "x", "aspects": {"form": "a"}}, "head cls has one score"),
        ({"labels": "x", "aspects": {"froms": "a"}, "head": "align"}, "did you mean form"),
        ({"labels": "x", "aspects": {"form": 5}, "head": "align"}, "form is 5; give the name of a score"),
    ],
)
def test_settings_that_contradict_each_other(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        make_config(values)


def test_losses_of_labels() -> None:
    known = {"labels": "x", "head": "fc"}
    assert loss_of(make_config(known), None) == "mse"
    assert loss_of(make_config({**known, "loss": "ranking"}), None) == "ranking"
    assert loss_of(make_config({"labels": "x", "head": "align", "loss": "mse"}), None) == "mse"
    with pytest.raises(InputError, match="loss of its own"):
        loss_of(make_config({"labels": "x", "head": "align", "loss": "bce"}), None)


NAN = float("nan")


def test_what_labels_rank() -> None:
    # Aspects stand in the order coverage, support, coherence, form; 0.05 apart is no difference.
    aspects = [[0.2, NAN, 0.5, NAN], [0.9, 0.1, 0.55, NAN], [0.5, 0.8, NAN, NAN], [NAN] * 4, [NAN] * 4]
    kinds = [LABELLED] * 3 + ["original", "swap"]
    split = split_of(kinds, [0.5, 1.0, 0.55, 1.0, 0.3], [0, 0, 0, 1, 1], aspects)
    ranks = rank(split)
    pairs = [{tuple(pair) for pair in own.tolist()} for own in ranks.pairs]
    assert pairs == [{(1, 0), (1, 2), (3, 4)}, {(1, 0), (1, 2), (2, 0)}, {(2, 1)}, {(3, 4)}, set()]
    assert ranks.weights.tolist() == [3, 3, 3, 1, 1]
    assert np.isnan(ranks.labels[3]).tolist() == [False, False, True, False, False]


def test_the_loss_of_labels_by_hand() -> None:
    split = split_of([LABELLED] * 2 + ["original", "swap"], [0.5, 1.0, 1.0, 0.0], [0, 0, 1, 1], [[NAN] * 4] * 4)
    ranks = rank(split)
    z = torch.zeros(4, 5)
    z[:, 0] = torch.tensor([0.2, -0.4, 1.0, 0.5])
    value = z[:, 0].double().numpy()
    p = 1 / (1 + np.exp(-value))
    softplus = [np.log1p(np.exp(0.2 + 0.4)), np.log1p(np.exp(0.5 - 1.0))]
    entropy = -np.array([0.5 * np.log(p[0]) + 0.5 * np.log(1 - p[0]), np.log(p[1]), np.log(p[2]), np.log(1 - p[3])])
    weights = np.array([3, 3, 1, 1])
    overall = np.average(softplus, weights=[3, 1]) + 0.1 * np.average(entropy, weights=weights)
    # Coherence, which the swap damages, has logits of 0 and that pair alone.
    coherence = np.log(2) + 0.1 * np.log(2)
    assert float(ranking_loss(z, ranks, np.arange(4))) == pytest.approx(overall + coherence, rel=1e-5)
    squared = np.average((p - [0.5, 1, 1, 0]) ** 2, weights=weights) + 0.25
    assert float(ranking_loss(z, ranks, np.arange(4), squared=True)) == pytest.approx(squared, rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", "ranking"])
@pytest.mark.parametrize("head", ["fc", "lstm"])
def test_heads_learn_given_scores(head: str, loss: str, tmp_path: Path) -> None:
    path = graded(tmp_path / "labels.jsonl", by="judge:m")
    values = {"labels": path, "label": "grade", "head": head, "encoder": "glove", "batch_size": 12, "loss": loss}
    out = tmp_path / "m"
    found = train(make_config({**values, "epochs": 12, "units": 16 if head == "lstm" else None}), out)
    assert found is not None
    assert found["test"]["spearman"]["value"] > 0.8
    about = json.loads((out / "config.json").read_text())
    assert about["recipe"].startswith("labels(score=grade[1..5]@")
    card = (out / "README.md").read_text()
    assert "`grade`, 1 to 5 as 0 to 1, 0 missing" in card
    assert "90 scores by judge:m" in card
    assert "no human judgment" not in card
    model = Estimator.load(out)
    assert "recipe:labels(score=grade[1..5]@" in model.signature
    assert model.fitted_on == frozenset(about["data"]["labels"]["keys"])
    assert len(model.fitted_on) == 27


def test_a_head_with_one_label_a_document_learns_it_by_its_error(tmp_path: Path) -> None:
    rows = []
    for number in range(30):
        document, summary = story(number)
        rows.append({"document": document, "summary": summary if number % 2 else summary[:9], "label": number % 2})
    values = {"labels": written(tmp_path / "labels.jsonl", rows), "head": "align", "judges": False, "epochs": 3}
    with pytest.raises(InputError, match=r"in the split train differ, .* nothing to rank; give head=align loss=mse"):
        train(make_config(values), tmp_path / "ranked")
    # Where those of the training differ, and those that tell when to stop do not.
    part = (known := labels_of(values["labels"])[0]).part(0)
    first = {known.pairs[k].document for k in range(30) if part[known.index.document[k]] == 0}
    more = [{**row, "summary": "Nothing.", "label": 0.5} for row in rows if row["document"] in first]
    written(tmp_path / "labels.jsonl", [*rows, *more])
    with pytest.raises(InputError, match="in the split validation differ"):
        train(make_config(values), tmp_path / "unranked")
    written(tmp_path / "labels.jsonl", rows)
    found = train(make_config({**values, "loss": "mse"}), tmp_path / "m")
    assert found is not None
    losses = [epoch["train_loss"] for epoch in found["epochs"]]
    assert losses[-1] < losses[0]


def test_the_support_judge_learns_labels_of_support_alone(tiny_bert: Path, tmp_path: Path) -> None:
    same = {
        "labels": graded(tmp_path / "labels.jsonl"),
        "head": "align",
        "encoder": f"sentence-transformer:{tiny_bert}",
    }
    same |= {"judge_steps": 1, "support_steps": 2, "epochs": 1}
    judges = []
    for aspects in ({"support": "grade"}, {"coverage": "grade"}, {"form": "grade"}):
        config = make_config({**same, "aspects": aspects, "label": "grade"})
        train(config, tmp_path / "model")
        judges.append((tmp_path / "model" / "support" / "support.safetensors").read_bytes())
        shutil.rmtree(tmp_path / "model")
    assert judges[0] != judges[1] == judges[2]


def test_align_learns_aspects_and_evaluate_tells_agreement(tmp_path: Path) -> None:
    path = graded(tmp_path / "labels.jsonl")
    words = [f"labels={path}", "aspects={coverage: grade}", "judges=false", "epochs=3"]
    told = command_line("train", *words, "--out", str(tmp_path / "m"), cwd=tmp_path).stdout
    assert "packaged configuration 'align'" in told
    assert "coverage: grade, 1 to 5 becomes 0 to 1, 0 missing" in told
    assert "corpus: sample" not in told
    command_line("generate", f"labels={path}", "aspects={coverage: grade}", "head=align", "--out", "made", cwd=tmp_path)
    examples = tmp_path / "made" / "labelled-test.jsonl.gz"
    model = Estimator.load(tmp_path / "m")
    found = evaluate(model, str(examples))
    read = list(read_examples(examples))
    scored = model.score_pairs([e.document for e in read], [e.summary for e in read])
    ids = np.array([e.document_id for e in read])
    labels = np.array([e.aspects["coverage"] for e in read])
    values = scored.aspects["coverage"]
    expected = np.mean([stats.spearmanr(labels[ids == i], values[ids == i])[0] for i in set(ids.tolist())])
    (figure,) = (
        f for f in found["agreement"] if (f["human"], f["metric"], f["level"]) == ("coverage", "coverage", "summary")
    )
    assert figure["value"] == pytest.approx(expected, abs=1e-9)
    assert figure["n"] == len(read) == 9
    shown = command_line("evaluate", "--model", str(tmp_path / "m"), "--examples", str(examples)).stdout
    assert "summary spearman of coverage with the labels of coverage: " in shown

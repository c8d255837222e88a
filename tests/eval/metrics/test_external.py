"""Metrics of other packages: called when installed (here: stand-ins), else the command that installs them."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.scoring.scorer import Item, make_metric


class FakeBertScore:
    """Precision 0.1, recall 0.2, F1 = number of references + 0.3, for each summary; remembers how it was called."""

    def __init__(self) -> None:
        self.calls: list[dict[str, object]] = []

    def score(self, summaries: list[str], references: list[list[str]], **options: object) -> tuple[np.ndarray, ...]:
        print("loading model")
        self.calls.append({"summaries": summaries, "references": references, **options})
        n = len(summaries)
        return np.full(n, 0.1), np.full(n, 0.2), np.array([len(texts) + 0.3 for texts in references])


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, module in (("bert-score", "bert_score"), ("blanc", "blanc")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InputError, match=f"pip install {package}"):
            make_metric(f"external:{package}")
    with pytest.raises(InputError, match="bert-score"):
        make_metric("external:bertscore")
    with pytest.raises(InputError, match="package"):
        make_metric("external")


def test_bert_score(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeBertScore()
    monkeypatch.setitem(sys.modules, "bert_score", fake)
    metric = make_metric("external(bert-score)")
    assert metric.needs == {"references"}
    items = [Item("d", "one", ("r1", " ", "r2")), Item("d", " ", ("r",)), Item("d", "two"), Item("d", "three", ("r3",))]
    scores = metric.score(items)
    assert scores.scores[[0, 3]] == pytest.approx([2.3, 1.3])
    assert scores.reasons == [None, "the summary is blank", "no reference", None]
    assert fake.calls[0]["references"] == [["r1", "r2"], ["r3"]]
    assert fake.calls[0]["lang"] == "en"
    assert capsys.readouterr().out == ""
    document = make_metric("external(bert-score,value=recall,against=document,model=some/model)")
    assert document.name == "external(bert-score,model=some/model,value=recall,against=document)"
    assert document.score(items).scores[2] == 0.2
    assert fake.calls[1]["references"] == [["d"]] * 3
    assert fake.calls[1]["model_type"] == "some/model"
    assert "lang" not in fake.calls[1]
    assert np.isnan(document.score([]).scores).all()


def test_blanc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blanc:
        def __init__(self, **options: object) -> None:
            assert options == {"device": "cpu"}

        def eval_pairs(self, documents: Sequence[str], summaries: Sequence[str]) -> list[float]:
            return [len(document) / len(summary) for document, summary in zip(documents, summaries, strict=True)]

    monkeypatch.setitem(sys.modules, "blanc", SimpleNamespace(BlancHelp=Blanc, BlancTune=Blanc))
    metric = make_metric("external(blanc)")
    assert metric.needs == {"document"}
    assert metric.score([Item("abcd", "ab"), Item("", "ab")]).scores[0] == 2.0
    assert metric.score([Item("", "ab")]).reasons == ["the document is blank"]
    with pytest.raises(InputError, match="help"):
        make_metric("external(blanc,value=f1)")


def test_failures_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("index out\nof range")

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=fail))
    with pytest.raises(InputError, match=r"bert-score': the package failed \(index out of range\)"):
        make_metric("external(bert-score)").score([Item("d", "s", ("r",))])
    few = SimpleNamespace(score=lambda *_, **__: ([], [], []))
    monkeypatch.setitem(sys.modules, "bert_score", few)
    with pytest.raises(InputError, match="0 scores came back for 1"):
        make_metric("external(bert-score)").score([Item("d", "s", ("r",))])
    not_a_number = SimpleNamespace(score=lambda *_, **__: ([0.0], [0.0], [float("nan")]))
    monkeypatch.setitem(sys.modules, "bert_score", not_a_number)
    assert make_metric("external(bert-score)").score([Item("d", "s", ("r",))]).reasons == ["the value is not finite"]

"""SummEval, RealSumm, Newsroom, QAGS and the project's own layout, on small files in exactly the published form."""

import csv
import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests_support import SHARED_DATA

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments
from negsample.records import documents_of

DATA = SHARED_DATA / "human"
ARTICLE = "The mill closed on Monday. Forty people lost their jobs. The owner blamed the price of flour."


def _lines(path: Path, records: list[Any]) -> Path:
    text = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text(text + "\n", encoding="utf-8")
    return path


# --- the project's own layout


def _own(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "dataset": "mill",
        "doc_id": "d1",
        "system": "s1",
        "document": ARTICLE,
        "summary": "The mill closed.",
        "references": ["The mill shut on Monday."],
        "scores": {"relevance": 4, "fluency": 4.5},
        "half": "tune",
    }
    record.update(changes)
    return {name: value for name, value in record.items() if value is not None}


def test_own_layout(tmp_path: Path) -> None:
    records = [
        _own(question="What of the mill?"),
        _own(doc_id=None, document_id=7, system=2, half=None, references=None),
        _own(doc_id="d2", system="s3", document=None, documents=["First article.", "Second article."]),
    ]
    unusable = Unusable()
    rows = load_judgments(str(_lines(tmp_path / "judged.jsonl", records)), unusable)
    assert not unusable
    assert unusable.told == [
        "1 rows have a question, which no score reads",
        "1 rows have several documents: head align tells them apart, all else reads one text",
    ]
    assert [(row.document_id, row.system, row.half) for row in rows] == [
        ("d1", "s1", "tune"),
        ("7", "2", ""),
        ("d2", "s3", "tune"),
    ]
    assert rows[0].scores == {"relevance": 4.0, "fluency": 4.5}
    assert rows[0].references == ("The mill shut on Monday.",)
    assert documents_of(*rows[2].documents) == ["First article.", "Second article."]
    assert rows[1].dataset == "mill"


def test_own_layout_counts_what_it_cannot_use(tmp_path: Path) -> None:
    records = [
        _own(),
        "not json",
        _own(system="s2", summary="  "),
        _own(system="s3", scores={"relevance": None, "fluency": 3}),
        '{"doc_id": "d1", "system": "s4", "document": "x", "summary": "y", "scores": {"relevance": NaN}}',
        _own(system="s5", scores={}),
        _own(),
        _own(system="s6", half="both"),
        _own(system="s7", references=["", "b"]),
        _own(system=None),
        _own(system="s8", scores={"relevance": True, "fluency": 1}),
    ]
    unusable = Unusable()
    rows = load_judgments(str(_lines(tmp_path / "judged.jsonl", records)), unusable)
    assert [row.system for row in rows] == ["s1", "s3", "s8"]
    assert rows[1].scores == {"fluency": 3.0}
    assert rows[2].scores == {"fluency": 1.0}
    assert unusable["score 'relevance' is not a finite number"] == 3
    assert unusable["no usable human score"] == 2
    assert unusable["the same document and system again (the first row is kept)"] == 1
    assert unusable["field 'summary' is blank"] == 1
    assert unusable["field 'half' is neither 'tune' nor 'report'"] == 1
    assert unusable["field 'references: text 1' is blank"] == 1
    assert unusable["no field 'system'"] == 1
    # Every record is either a row or counted; three of the counts are scores of rows that were kept or counted again.
    assert sum(unusable.values()) == 11
    path = tmp_path / "judged.jsonl"
    assert unusable.places["field 'summary' is blank"] == [f"{path}, line 3"]
    assert any(line.startswith("3 × score 'relevance'") and f"{path}, line 4" in line for line in unusable.lines())


def test_own_layout_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["document_id", "system", "document", "summary", "references", "scores"])
        writer.writerow(["d1", "s1", ARTICLE, "It closed.", '["A", "B"]', '{"fact": 0.5}'])
    (row,) = load_judgments(str(path))
    assert row.references == ("A", "B")
    assert row.scores == {"fact": 0.5}
    assert row.dataset == "judged"


def test_nothing_usable_and_unknown_names(tmp_path: Path) -> None:
    path = _lines(tmp_path / "bad.jsonl", [_own(scores={})])
    unusable = Unusable()
    with pytest.raises(InputError, match=r"no usable judgment: 1 × no usable human score \(.*line 1\)"):
        load_judgments(str(path), unusable)
    assert unusable == {"no usable human score": 1}
    with pytest.raises(InputError, match="did you mean summeval"):
        load_judgments(f"sumeval:{path}")
    with pytest.raises(InputError, match="no such file"):
        load_judgments(f"qags:{tmp_path}/none.jsonl")
    with pytest.raises(InputError, match="path is missing"):
        load_judgments("qags:")
    with pytest.raises(InputError, match=r"is a folder; give a file of judgments, or NAME:.*tac2010"):
        load_judgments(str(tmp_path))


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/human is not here")
@pytest.mark.parametrize(
    ("name", "rows", "documents", "systems"),
    [("summeval", 960, 60, 16), ("newsroom60", 420, 60, 7), ("qags_xsum", 239, 239, 1)],
)
def test_shared_files_are_read_whole(name: str, rows: int, documents: int, systems: int) -> None:
    read = load_judgments(str(DATA / f"{name}.jsonl.gz"), unusable := Unusable())
    assert not unusable
    assert len(read) == rows
    assert (len({row.document_id for row in read}), len({row.system for row in read})) == (documents, systems)


# --- SummEval


def _rating(*values: Any) -> dict[str, Any]:
    return dict(zip(("coherence", "consistency", "fluency", "relevance"), values, strict=True))


def _summeval(**changes: Any) -> dict[str, Any]:
    record = {
        "id": "dm-test-0123",
        "model_id": "M11",
        "decoded": "the mill closed .",
        "filepath": "cnndm/dailymail/stories/0123.story",
        "text": ARTICLE,
        "references": ["Mill shuts.", "A mill has closed."],
        "expert_annotations": [_rating(1, 5, 4, 2), _rating(2, 5, 4, 2), _rating(3, 5, 5, 5)],
        "turker_annotations": [_rating(3, 3, 3, 3), _rating(4, 3, 3, 3)],
    }
    record.update(changes)
    return {name: value for name, value in record.items() if value is not None}


def test_summeval(tmp_path: Path) -> None:
    records = [
        _summeval(),
        _summeval(model_id="M1", turker_annotations=[]),
        _summeval(model_id="M2", text=None),
        _summeval(model_id="M3", expert_annotations=[_rating(1, None, 1, 1)], turker_annotations=[]),
        _summeval(model_id="M4", expert_annotations="none"),
    ]
    path = tmp_path / "model_annotations.aligned.paired.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    unusable = Unusable()
    rows = load_judgments(f"summeval:{path}", unusable)
    assert [row.system for row in rows] == ["M11", "M1", "M3"]
    assert rows[0].scores == {
        "coherence": 2.0,
        "consistency": 5.0,
        "fluency": pytest.approx(13 / 3),
        "relevance": 3.0,
        "turker_coherence": 3.5,
        "turker_consistency": 3.0,
        "turker_fluency": 3.0,
        "turker_relevance": 3.0,
    }
    assert rows[0].document_id == "dm-test-0123"
    assert rows[0].documents == (ARTICLE,)
    assert rows[0].references == ("Mill shuts.", "A mill has closed.")
    assert set(rows[1].scores) == {"coherence", "consistency", "fluency", "relevance"}
    assert set(rows[2].scores) == {"coherence", "fluency", "relevance"}
    assert unusable["a rating of 'consistency' is missing or not a number"] == 1
    assert sum(unusable.values()) == 3
    with pytest.raises(InputError, match=r"pair_data\.py"):
        load_judgments(f"summeval:{_lines(tmp_path / 'unpaired.jsonl', [_summeval(text=None)])}")


# --- Newsroom


def test_newsroom(tmp_path: Path) -> None:
    path = tmp_path / "newsroom-human-eval.csv"
    columns = ["ArticleID", "ArticleText", "ArticleTitle", "System", "SystemSummary"]
    ratings = ["CoherenceRating", "FluencyRating", "InformativenessRating", "RelevanceRating"]
    # A < b > is markup, a < b and c > d is none.
    article = "The mill &amp; the shop closed.<br><br>\nForty lost &lt;b&gt;jobs&lt;/b&gt;; a &lt; c and d &gt; e."
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, *ratings])
        for whole in ((1, 2, 3, 4), (2, 2, 3, 5), (5, 2, 3, 3)):
            writer.writerow(["17", article, "A mill", "abstractive", "The mill<br/>closed.", *whole])
        for values in (("", 2, 3, 4), (4, 2, 3, 4), (5, 5, 5, "x")):
            writer.writerow(["17", article, "A mill", "lede3", "It closed.", *values])
        writer.writerow(["18", " ", "A shop", "lede3", "It closed.", 1, 1, 1, 1])
    unusable = Unusable()
    rows = load_judgments(f"newsroom:{path}", unusable)
    assert [(row.document_id, row.system) for row in rows] == [("17", "abstractive"), ("17", "lede3")]
    assert rows[0].scores == {
        "coherence": pytest.approx(8 / 3),
        "fluency": 2.0,
        "informativeness": 3.0,
        "relevance": 4.0,
    }
    assert rows[1].scores["coherence"] == 4.5
    assert rows[1].scores["relevance"] == 4.0
    assert rows[0].documents == ("The mill & the shop closed.\nForty lost jobs; a < c and d > e.",)
    assert rows[0].summary == "The mill\nclosed."
    assert unusable == {
        "a rating of 'coherence' is missing or not a number": 1,
        "a rating of 'relevance' is missing or not a number": 1,
        "field 'ArticleText' is blank": 1,
    }


def test_newsroom_with_references(tmp_path: Path) -> None:
    columns = ["ArticleID", "ArticleText", "ArticleTitle", "System", "SystemSummary"]
    columns += ["RelevanceRating", "VerbosityRating"]
    with (tmp_path / "newsroom-human-eval.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for name, text, title in (
            ("17", "The mill closed on Monday.", "A mill &amp; its town"),
            ("18", "Rain fell.", "Rain"),
            ("19", "Snow fell.", "Snow"),
        ):
            writer.writerow([name, text, title, "lede3", "It closed.", 4, 6])
    with pytest.raises(InputError, match=r"no test\.jsonl or test\.jsonl\.gz of Newsroom"):
        load_judgments(f"newsroom:{tmp_path}")
    release = [
        {"title": "A mill & its town", "text": "Another year, another mill.", "summary": "Another mill."},
        {"title": "a  Mill & its town", "text": "The mill closed on Monday. Forty left.", "summary": "Mill shuts."},
        {"title": "Rain", "text": "Rain fell. It was wet.", "summary": "It rained."},
        {"title": "Fog", "text": "x", "summary": "y"},
        {"title": None, "text": "x", "summary": "y"},
    ]
    with gzip.open(tmp_path / "test.jsonl.gz", "wt", encoding="utf-8") as packed:
        packed.write("".join(json.dumps(record) + "\n" for record in release))
    unusable = Unusable()
    rows = load_judgments(f"newsroom:{tmp_path}", unusable)
    assert [row.references for row in rows] == [("Mill shuts.",), ("It rained.",), ()]
    assert rows[0].scores == {"relevance": 4.0, "verbosity": 6.0}
    assert unusable == {"an article whose title is not in test.jsonl.gz: no reference": 1}
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match=r"no newsroom-human-eval\.csv in it"):
        load_judgments(f"newsroom:{tmp_path / 'other'}")


# --- QAGS


def test_qags(tmp_path: Path) -> None:
    def sentence(text: str, *answers: str) -> dict[str, Any]:
        return {"sentence": text, "responses": [{"worker_id": i, "response": a} for i, a in enumerate(answers)]}

    records = [
        {
            "article": ARTICLE,
            "summary_sentences": [
                sentence("The mill closed.", "yes", "yes", "no"),
                sentence("It burnt down.", "no", "no", "yes"),
                sentence("Forty left.", "yes", "yes", "yes"),
            ],
        },
        {"article": ARTICLE, "summary_sentences": [sentence("No answer.")]},
        {"article": ARTICLE, "summary_sentences": []},
        {"article": ARTICLE, "summary_sentences": [sentence("All wrong.", "no", "no", "no")]},
    ]
    unusable = Unusable()
    rows = load_judgments(f"qags:{_lines(tmp_path / 'mturk_cnndm.jsonl', records)}", unusable)
    assert [(row.document_id, row.system, row.dataset) for row in rows] == [
        ("0", "0", "qags_cnndm"),
        ("3", "0", "qags_cnndm"),
    ]
    assert rows[0].scores == {"fact": pytest.approx(2 / 3)}
    assert rows[1].scores == {"fact": 0.0}
    assert rows[0].summary == "The mill closed. It burnt down. Forty left."
    assert unusable == {
        "a summary sentence has no 'yes' or 'no' response": 1,
        "field 'summary_sentences' is missing, empty or not a list": 1,
    }


# --- RealSumm


def _realsumm(folder: Path, *, scores: bool = True) -> Path:
    selected = folder / "selected_docs_for_human_eval" / "abs" / "ptr_generator"
    selected.mkdir(parents=True)
    (selected / "src.txt").write_text(f"{ARTICLE}\nA bakery opened in June . It sells rye .\n", encoding="utf-8")
    (selected / "ref.txt").write_text("<t> mill closes . </t> <t> jobs lost . </t>\n<t> bakery opens . </t>\n")
    summaries = {
        "abs": {"bart_out.txt": 0.9, "presumm_out_abs.txt": 0.4},
        "ext": {"bart_out.txt": 0.5, "refresh_out.txt": 0.25},
    }
    published = folder / "scores_dicts"
    published.mkdir()
    for kind, systems in summaries.items():
        table = {
            document: {
                "doc_id": document,
                "ref_summ": reference,
                "system_summaries": {
                    system: {
                        "system_summary": f"<t> {kind} of {system} . </t> <t> second . </t>",
                        "scores": {"rouge_1_f_score": 0.1, "litepyramid_recall": value + document / 100},
                    }
                    for system, value in systems.items()
                },
            }
            for document, reference in enumerate(
                ["<t> mill closes . </t> <t> jobs lost . </t>", "<t> bakery opens . </t>"]
            )
        }
        if scores:
            (published / f"{kind}.json").write_text(json.dumps(table))
        else:
            (published / f"{kind}.pkl").write_bytes(pickle.dumps(table))
    return folder


def test_realsumm_repository(tmp_path: Path) -> None:
    unusable = Unusable()
    rows = load_judgments(f"realsumm:{_realsumm(tmp_path)}", unusable)
    found = {(row.document_id, row.system): row for row in rows}
    assert set(found) == {
        (document, system)
        for document in ("0", "1")
        for system in ("bart_out.txt", "presumm_out_abs.txt", "refresh_out.txt")
    }
    assert found["1", "presumm_out_abs.txt"].scores == {"litepyramid_recall": pytest.approx(0.41)}
    assert found["0", "bart_out.txt"].scores == {"litepyramid_recall": 0.5}
    assert found["0", "bart_out.txt"].summary == "ext of bart_out.txt .\nsecond ."
    assert found["1", "bart_out.txt"].documents == ("A bakery opened in June . It sells rye .",)
    assert found["0", "bart_out.txt"].references == ("mill closes .\njobs lost .",)
    assert unusable == {"the same document and system again (the first row is kept)": 2}


def test_realsumm_never_loads_a_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _realsumm(tmp_path, scores=False)
    loaded = []
    monkeypatch.setattr(pickle, "load", lambda *_: loaded.append(1))
    monkeypatch.setattr(pickle, "loads", lambda *_: loaded.append(1))
    with pytest.raises(InputError, match=r"never loaded here.*python -c") as caught:
        load_judgments(f"realsumm:{folder}")
    assert not loaded
    monkeypatch.undo()
    # The command in the message does what it says.
    command = str(caught.value).split("python -c ")[1].strip('"')
    monkeypatch.chdir(folder / "scores_dicts")
    exec(command, {})
    assert len(load_judgments(f"realsumm:{folder}")) == 6


def test_realsumm_notices_documents_in_another_order(tmp_path: Path) -> None:
    folder = _realsumm(tmp_path)
    selected = folder / "selected_docs_for_human_eval" / "abs" / "ptr_generator"
    for name in ("src.txt", "ref.txt"):
        lines = (selected / name).read_text(encoding="utf-8").splitlines()
        (selected / name).write_text("\n".join(reversed(lines)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"not the one at line doc_id of ref\.txt"):
        load_judgments(f"realsumm:{folder}")

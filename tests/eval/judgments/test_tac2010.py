"""TAC 2010: the same rows packed and unpacked, ten articles a docset, everything missing counted by name."""

from pathlib import Path

import pytest
import tac2010_maker

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.judgments.nist import article_text, nist_rouge
from negsample.eval.metrics.base import score_judged
from negsample.scoring.scorer import Item, make_metric

maker = tac2010_maker
DOCUMENTS = "TAC2010_Summarization_Documents/GuidedSumm10_test_docs_files"


@pytest.mark.parametrize("packed", [True, False])
def test_rows_of_both_layouts(tmp_path: Path, packed: bool) -> None:
    unusable = Unusable()
    rows = load_judgments(f"tac2010:{maker.make_tac2010(tmp_path, packed=packed)}", unusable)
    assert not unusable
    assert [(row.document_id, row.system) for row in rows] == [
        (f"{topic}-A", system) for topic in ("D1001", "D1002", "D1003") for system in ("1", "2", "7", "43")
    ]
    row = rows[2]
    assert row.dataset == "tac2010"
    assert row.summary == "The ferry was in the report.\nThe harbour was in the report."
    assert row.scores == {
        "modified_pyramid": 0.5,
        "modified_pyramid_jackknife": 0.49,
        "linguistic_quality": 2.0,
        "overall_responsiveness": 2.0,
    }
    assert len(row.documents) == 10
    assert len(row.references) == 4
    assert "Writer A adds" in row.references[0]
    assert "Writer H adds" in row.references[3]
    assert not any("Headline" in text or "<" in text for text in row.documents)
    assert row.documents[0].split("\n")[1] == "Nobody at the ferry had asked for it & the harbour stayed shut."
    assert "Nobodé" in row.documents[7]


def test_packed_and_unpacked_may_stand_side_by_side(tmp_path: Path) -> None:
    packed = load_judgments(f"tac2010:{maker.make_tac2010(tmp_path, packed=True)}")
    maker.make_tac2010(tmp_path, packed=False)
    both = load_judgments(f"tac2010:{tmp_path}", unusable := Unusable())
    assert packed == both
    assert not unusable


def test_what_is_missing_is_counted_and_named(tmp_path: Path) -> None:
    peers = "GuidedSumm2010_eval/ROUGE/peers"
    table = maker.files()["GuidedSumm2010_eval/manual/manual.peer.A"].decode().splitlines()
    table[0] = table[0].replace("1.000", "nan")
    table[1] = "D1001-A 2 0.7"
    changes = {
        f"{DOCUMENTS}/D1002B/D1002B-A/AFP_ENG_20050101.0000": b"<DOC>\n<TEXT>\n</TEXT>\n</DOC>\n",
        f"{DOCUMENTS}/D1003C/D1003C-A/AFP_ENG_20050102.0001": None,
        f"{peers}/D1002-A.M.100.B.7": None,
        f"{peers}/D1003-A.M.100.C.43": b" \n",
        "GuidedSumm2010_eval/manual/manual.peer.A": "\n".join(table).encode(),
    }
    unusable = Unusable()
    rows = load_judgments(f"tac2010:{maker.make_tac2010(tmp_path, packed=False, changes=changes)}", unusable)
    assert unusable == {
        "an article without text": 1,
        "a docset with 9 readable articles instead of 10": 2,
        "a blank summary": 1,
        "a line that is not docset, summarizer and eight columns": 1,
        "a summary without scores in manual.peer.A": 1,
        "scores without a summary": 2,
        "score 'modified_pyramid' is not a number": 1,
    }
    assert unusable.places["a docset with 9 readable articles instead of 10"] == ["D1002-A", "D1003-A"]
    assert unusable.places["scores without a summary"] == ["D1002-A, summarizer 7", "D1003-A, summarizer 43"]
    assert unusable.places["a line that is not docset, summarizer and eight columns"] == ["manual.peer.A, line 2"]
    assert len(rows) == 9
    assert "modified_pyramid" not in rows[0].scores
    assert rows[0].scores["linguistic_quality"] == 4.0


def test_no_scores_file_and_damaged_archive(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no manual/manual\.peer\.A"):
        load_judgments(f"tac2010:{tmp_path / 'empty'}")
    folder = maker.make_tac2010(tmp_path / "cut", packed=True)
    whole = (folder / "GuidedSumm2010_eval.tgz").read_bytes()
    (folder / "GuidedSumm2010_eval.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a sound tar archive"):
        load_judgments(f"tac2010:{folder}")


@pytest.mark.parametrize("packed", [True, False])
def test_the_rouge_that_nist_hands_out(tmp_path: Path, packed: bool) -> None:
    found = nist_rouge(str(maker.make_tac2010(tmp_path, packed=packed)))
    assert set(found) == {
        (f"{topic}-A", system) for topic in ("D1001", "D1002", "D1003") for system in ("1", "2", "7", "43")
    }
    assert len(found["D1003-A", "7"]) == 7 * 3
    # Two of four nouns named, the third topic: 0.2 + 0.04, for ROUGE-2 0.01 less.
    own = {name: value for name, value in found["D1003-A", "7"].items() if name.startswith("ROUGE-2")}
    assert own == {"ROUGE-2 R": 0.23, "ROUGE-2 P": 0.67, "ROUGE-2 F": 0.0529}


def test_another_layout_is_told_by_what_was_looked_for(tmp_path: Path) -> None:
    names = maker.files()
    without = {
        "documents": [name for name in names if name.startswith(DOCUMENTS)],
        "peers": [name for name in names if "ROUGE/peers" in name],
        "rouge": [name for name in names if name.endswith("rouge_A.m.out")],
    }
    made = {
        what: str(maker.make_tac2010(tmp_path / what, packed=False, changes=dict.fromkeys(gone)))
        for what, gone in without.items()
    }
    with pytest.raises(
        InputError, match=r"no article as D1001A/D1001A-A/NAME in it.*; add GuidedSumm10_test_docs_files$"
    ):
        load_judgments(f"tac2010:{made['documents']}")
    with pytest.raises(InputError, match=r"no summary as ROUGE/peers/D1001-A\.M\.100\.A\.7 in it"):
        load_judgments(f"tac2010:{made['peers']}")
    assert len(load_judgments(f"tac2010:{made['rouge']}")) == 12
    assert nist_rouge(made["rouge"]) == {}
    odd = {"GuidedSumm2010_eval/ROUGE/rouge_A.m.out": b"system,recall\n1,0.3\n"}
    with pytest.raises(InputError, match=r"rouge_A\.m\.out: no line as '7 ROUGE-1 Eval"):
        nist_rouge(str(maker.make_tac2010(tmp_path / "odd", packed=True, changes=odd)))


def test_article_text_without_paragraphs_or_end_tags() -> None:
    assert article_text("<DOC><TEXT>\nOne  line.\nTwo &lt;x&gt;.\n</TEXT></DOC>") == "One line. Two <x>."
    assert article_text("<DOC><TEXT><P>One.<P>Two.</P></TEXT>") == "One.\nTwo."
    assert article_text("<DOC><P>outside</P></DOC>") == ""


def test_a_metric_on_ten_documents_is_their_mean(tmp_path: Path) -> None:
    row = load_judgments(f"tac2010:{maker.make_tac2010(tmp_path, packed=True)}")[0]
    metric = make_metric("rouge1(value=recall,against=document)")
    alone = metric.score([Item(document, row.summary) for document in row.documents]).scores
    assert score_judged(metric, [row]).scores[0] == pytest.approx(alone.mean(), abs=1e-12)
    assert len(alone) == 10

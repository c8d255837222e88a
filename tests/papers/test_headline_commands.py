"""From the training of a headline writer to the tables and figures of Moeed et al. 2020."""

import json
from pathlib import Path

import pytest

ENCODER = ["--encoder", "glove(unit=sentence)"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headlines") / "run"


def test_a_headline_writer_is_trained_and_its_headlines_are_records(negsample, run_folder: Path) -> None:
    settings = ["corpus=sample:news", "headlines=true", "policy=abstract", "model=random-causal", "document_tokens=64"]
    settings += ["summary_tokens=8", "top_k=40", "samples=2", "ml_epochs=1", "epochs=0", "test_share=0.4"]
    negsample("reinforce", *settings, "metrics=[rouge1]", "--out", run_folder)
    rows = [json.loads(line) for line in (run_folder / "headlines.jsonl").read_text().splitlines()]
    # Of the eight test stories each system has a headline, and the trained one a second one of the first five.
    assert {(row["system"], row["draw"]) for row in rows} == {("start", 1), ("trained", 1), ("lead", 1), ("trained", 2)}
    assert len(rows) == 3 * 8 + 5
    assert all(row["dataset"] == "sample:news" for row in rows)
    # The random model's headlines may end before they begin.
    assert sum(bool(row["generated"]) for row in rows) > 20
    drawn = {(row["document_id"], row["draw"]): row["generated"] for row in rows if row["system"] == "trained"}
    assert sum(drawn[key] != drawn[key[0], 1] for key in drawn if key[1] == 2) >= 4
    lead = next(row for row in rows if row["system"] == "lead")
    assert lead["story"].startswith(lead["generated"])


def test_tables_and_the_map_of_records(negsample, run_folder: Path, tmp_path: Path) -> None:
    records = run_folder / "headlines.jsonl"
    other = tmp_path / "other.jsonl"
    other.write_text(records.read_text().replace("sample:news", "other"))
    both = ["--headlines", records, "--headlines", other, *ENCODER]
    shown = negsample("tables", "p4-table1", *both, "--shown", 2, "--out", tmp_path / "t1").stdout
    assert shown.count("**reference**") == 2
    # start, trained twice, lead.
    assert shown.count("AES to the story") == 8
    told = negsample("tables", "p4-table2", *both, "--out", tmp_path / "t2").stdout
    assert "| other | trained | Gen-Ref |" in told
    assert "| GPT-2 | 0.623 | 53.3 |" in told
    table = json.loads((tmp_path / "t2" / "table.json").read_text())
    # Two data sets, three systems, three tasks; ROUGE thrice, AES, FED.
    assert len(table["table2"]) == 2 * 3 * 3 * 5
    assert table["signatures"]["aes"].startswith("metric:aes|encoder:glove(unit=sentence)|")
    written = sum(bool(row["generated"]) and row["draw"] == 1 for row in map(json.loads, other.open()))
    assert f"other ({written})" in negsample("tables", "p4-figure1", *both, "--out", tmp_path / "f1").stdout
    assert b"</svg>" in (tmp_path / "f1" / "figure1.svg").read_bytes()
    alone = negsample("tables", "p4-figure1", *both[:2], *ENCODER, "--out", tmp_path / "f", check=2)
    assert "two data sets' headlines, and there are 1" in alone.stderr


@pytest.mark.parametrize("table", ["p4-table1", "p4-table2", "p4-table3", "p4-figure1", "p4-figure2"])
def test_each_runs_with_smoke_and_says_what_is_missing_without(negsample, tmp_path: Path, table: str) -> None:
    done = negsample("tables", table, "--smoke", *ENCODER, "--out", tmp_path / "t")
    assert "smoke run" in done.stdout
    record = json.loads((tmp_path / "t" / "run.json").read_text())
    assert record["smoke"] is True
    assert (tmp_path / "t" / "table.json").is_file()
    assert (tmp_path / "t" / f"{table[3:]}.svg").is_file() == ("figure" in table)
    assert "--headlines FILE" in negsample("tables", table, "--out", tmp_path / "u", check=2).stderr

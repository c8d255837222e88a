"""Folders of results: checked before the work, and there whole or not at all."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from negsample.eval.agreement.compare import SystemsComparison
from negsample.eval.agreement.correlate import Correlation
from negsample.eval.fit.fit import FitResult
from negsample.eval.fit.preset import PresetResult
from negsample.eval.report import compare, correlate, fit
from negsample.io.files import atomic_json, atomic_text, file_digest, new_folder
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.write import write_table

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator


def write_correlation(result: Correlation, out: str, watch: Stopwatch, command: list[str]) -> None:
    """Write ``agreement.json``, ``agreement.csv``, ``scores.parquet``, ``report.html`` and ``run.json`` in the folder ``out``."""
    settings = result.settings
    with new_folder(out) as folder:
        plain = correlate.agreement_json(result)
        atomic_json(folder / "agreement.json", plain)
        write_table(folder / "agreement.csv", correlate.agreement_rows(result), correlate.CSV_COLUMNS)
        write_table(folder / "scores.parquet", correlate.score_rows(result), correlate.SCORE_COLUMNS)
        atomic_text(folder / "report.html", correlate.correlation_page(result, command))
        files = [spec.partition(":")[2] or spec for spec in settings.judgments]
        files = [spec if Path(spec).exists() else path for spec, path in zip(settings.judgments, files, strict=True)]
        files += [argument.partition("=")[2] for argument in settings.scores]
        write_run(
            folder / "run.json",
            watch,
            command=command,
            config=plain["settings"],
            seed=settings.seed,
            data=fingerprints(files),
            signatures={column.name: column.signature for column in result.columns},
        )


def write_comparison(result: SystemsComparison, out: str, watch: Stopwatch, command: list[str]) -> None:
    """Write ``compare.json``, ``compare.csv``, ``report.html`` and ``run.json`` in the folder ``out``."""
    with new_folder(out) as folder:
        plain = compare.comparison_json(result)
        atomic_json(folder / "compare.json", plain)
        write_table(folder / "compare.csv", compare.comparison_rows(result), compare.CSV_COLUMNS)
        atomic_text(folder / "report.html", compare.comparison_page(result, command))
        write_run(
            folder / "run.json",
            watch,
            command=command,
            config=plain["settings"],
            seed=result.settings.seed,
            data=fingerprints(result.files),
            signatures={section.column.name: section.column.signature for section in result.sections},
        )


def write_fit(
    result: FitResult, estimator: "Estimator", base: str, out: str, watch: Stopwatch, command: list[str]
) -> None:
    """Write the model folder ``out``: the estimator (which came from ``base``) with its fit, ``fit/`` with ``report.html``,
    ``fit.json`` and ``fit.csv``, and ``run.json``.
    """
    from negsample.models.fitted import save_fitted

    settings = result.settings
    with new_folder(out) as folder:
        (folder / "fit").mkdir()
        save_fitted(estimator, result.fitted, folder, fit.fit_card(Path(out).name, result, base))
        plain = fit.fit_json(result)
        atomic_json(folder / "fit" / "fit.json", plain)
        write_table(folder / "fit" / "fit.csv", fit.fit_table(result), fit.CSV_COLUMNS)
        atomic_text(folder / "fit" / "report.html", fit.fit_page(result, command))
        path = settings.judgments
        write_run(
            folder / "run.json",
            watch,
            command=command,
            device=str(estimator.device),
            config=plain["settings"],
            seed=settings.seed,
            data=fingerprints([path if Path(path).exists() else path.partition(":")[2]]),
            fitted=dict(result.fitted.about) | {"document_keys": list(result.fitted.documents)},
            base={"model": base, "signature": estimator.signature},
            signatures={metric.name: metric.signature for metric in result.fitted.metrics},
        )


def write_preset(
    result: PresetResult, out: str, watch: Stopwatch, command: list[str], judgments: str, seed: int
) -> None:
    """Write ``learned.json`` (``--metric learned:OUT/learned.json``), ``table.csv`` and ``run.json`` in the folder ``out``."""
    with new_folder(out) as folder:
        result.learned.save(folder / "learned.json")
        rows = [{"columns": name, **asdict(held)} for name, held in result.table.items()]
        write_table(folder / "table.csv", rows, ("columns", "mean", "sd", "splits", "undefined"))
        data = fingerprints([judgments if Path(judgments).exists() else judgments.partition(":")[2]])
        write_run(folder / "run.json", watch, command=command, seed=seed, data=data, learned=asdict(result.learned))


def fingerprints(paths: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each file; of a folder, of its files' relative paths and contents in order."""
    found = {}
    for path in dict.fromkeys(paths):
        top = Path(path)
        if not top.exists():
            continue
        hasher = hashlib.sha256()
        for file in [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file()):
            if file != top:
                hasher.update(str(file.relative_to(top)).encode("utf-8", "surrogateescape") + b"\0")
            hasher.update(file_digest(file))
        found[path] = hasher.hexdigest()
    return found

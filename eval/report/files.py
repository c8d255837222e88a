"""Folders of results: checked before the work, and there whole or not at all."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from negsample.eval.compare import SystemsComparison
from negsample.eval.correlate import Correlation
from negsample.eval.report import compare, correlate
from negsample.io.files import atomic_json, atomic_text, file_digest, new_folder
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.write import write_table


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

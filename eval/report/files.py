"""Folders of results: checked before the work, and there whole or not at all."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.eval.compare import Comparison
from negsample.eval.correlate import Correlation
from negsample.eval.report.html import comparison_page, correlation_page
from negsample.eval.report.plain import CSV_COLUMNS, SCORE_COLUMNS, as_plain, csv_rows, score_rows
from negsample.eval.report.plain_compare import COMPARE_COLUMNS, compare_as_plain, compare_rows
from negsample.io.files import atomic_json, atomic_text, failure
from negsample.io.read import open_writer
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.writable import check_folder


def check_new(out: str) -> None:
    """InputError where the folder ``out`` holds something, is a file, or can't be made. Nothing is changed."""
    path = Path(out)
    try:
        if path.is_dir():
            if any(path.iterdir()):
                raise InputError(f"{out}: is not empty; give another folder with --out")
        elif path.exists() or path.is_symlink():
            raise InputError(f"{out}: is not a folder; give another one with --out")
        check_folder(out)
    except OSError as error:
        raise failure(out, error) from error


@contextmanager
def new_folder(out: str) -> Iterator[Path]:
    """A folder to fill, which becomes ``out`` when the block ends well and vanishes when it does not.

    Raises InputError as `check_new` does, and where the folder can't be made.
    """
    check_new(out)
    target = Path(out).absolute()
    draft = target.parent / f".{target.name}-{secrets.token_hex(6)}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
    except OSError as error:
        raise failure(out, error) from error
    try:
        yield draft
        try:
            os.replace(draft, target)
        except OSError as error:
            raise failure(out, error) from error
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def write_correlation(result: Correlation, out: str, watch: Stopwatch, command: list[str]) -> None:
    """``agreement.json``, ``agreement.csv``, ``scores.parquet``, ``report.html`` and ``run.json`` in the folder ``out``."""
    settings = result.settings
    with new_folder(out) as folder:
        plain = as_plain(result)
        atomic_json(folder / "agreement.json", plain)
        _write_table(folder / "agreement.csv", csv_rows(result), CSV_COLUMNS)
        _write_table(folder / "scores.parquet", score_rows(result), SCORE_COLUMNS)
        atomic_text(folder / "report.html", correlation_page(result, command))
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


def write_comparison(result: Comparison, out: str, watch: Stopwatch, command: list[str]) -> None:
    """``compare.json``, ``compare.csv``, ``report.html`` and ``run.json`` in the folder ``out``."""
    with new_folder(out) as folder:
        plain = compare_as_plain(result)
        atomic_json(folder / "compare.json", plain)
        _write_table(folder / "compare.csv", compare_rows(result), COMPARE_COLUMNS)
        atomic_text(folder / "report.html", comparison_page(result, command))
        write_run(
            folder / "run.json",
            watch,
            command=command,
            config=plain["settings"],
            seed=result.settings.seed,
            data=fingerprints(result.files),
            signatures={section.column.name: section.column.signature for section in result.sections},
        )


def _write_table(path: Path, rows: Iterator[dict[str, Any]], columns: Sequence[str]) -> None:
    with open_writer(path, columns=columns) as writer:
        for row in rows:
            writer.write(row)


def fingerprints(paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of each file; of a folder, of its files' relative paths and contents in order."""
    found = {}
    for path in dict.fromkeys(paths):
        top = Path(path)
        if not top.exists():
            continue
        hasher = hashlib.sha256()
        for file in [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file()):
            if file != top:
                hasher.update(str(file.relative_to(top)).encode("utf-8", "surrogateescape") + b"\0")
            with open(file, "rb") as stream:
                hasher.update(hashlib.file_digest(stream, "sha256").digest())
        found[path] = hasher.hexdigest()
    return found

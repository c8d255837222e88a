"""``negsample tables``."""

import dataclasses
import os
import sys
from pathlib import Path

from negsample.errors import InputError


def run(
    table: str,
    corpus: list[str],
    out: str,
    settings: list[str],
    *,
    encoders: list[str],
    heads: str,
    limit: int | None,
    seed: int,
    jobs: int,
    keep_models: bool,
) -> None:
    """Work out P3's Table 1 or 2 on ``corpus``; print it, with the published one, as it stands in ``table.md``."""
    from negsample.train.config import read_config
    from negsample.train.table_files import markdown
    from negsample.train.tables import run_table, split_specs

    words = [f"seed={seed}", *settings]
    for word in settings:
        if (key := word.partition("=")[0].strip()) in ("corpus", "limit", "seed", "head", "recipe"):
            raise InputError(f"{word}: give it as --{'heads' if key == 'head' else key}, or leave it out")
    if limit is not None:
        words.append(f"limit={limit}")
    config = dataclasses.replace(read_config(None, words), corpus=corpus[0] if len(corpus) == 1 else corpus)
    found = run_table(
        table,
        config,
        Path(out),
        encoders=split_specs(encoders),
        heads=[name.strip() for name in heads.split(",") if name.strip()],
        jobs=jobs or min(os.cpu_count() or 1, 4),
        keep_models=keep_models,
        command=sys.argv,
    )
    print(markdown(found), end="")
    print(f"\n{out}: table.json, table.csv, table.md, run.json; each cell's figures below cells/")

"""``negsample tables p4-table3``."""

from typing import TYPE_CHECKING, Annotated

import typer

from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.eval.headlines import HeadlineTable


def p4_table3(
    out: Annotated[str, typer.Option("--out", help="Folder for the table.", metavar="DIR")],
    headlines: Annotated[
        str | None,
        typer.Option(
            "--headlines",
            help="Records with story, generated, reference (texts), gen_story, ref_story, gen_ref (people's scores) "
            "and, where there are several, dataset.",
            metavar="FILE",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="Default: those of the paper.", metavar="NAME")
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Level before Bonferroni's correction.")] = 0.05,
) -> None:
    """Metrics against people on headlines in three tasks, Bonferroni-corrected: Moeed et al. 2020, Tables 3, 4."""
    from negsample.eval.headlines import METRICS, load_headlines
    from negsample.eval.headlines import p4_table3 as correlate_headlines
    from negsample.io.files import atomic_json, atomic_text, check_new, new_folder
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.io.write import open_writer

    watch = Stopwatch()
    if headlines is None:
        raise InputError("give --headlines FILE: records with story, generated, reference and people's scores")
    check_new(out)
    table = correlate_headlines(load_headlines(headlines), metrics or METRICS, alpha=alpha)
    # Shown first: what was found is not lost where it can't be written.
    text = markdown(table)
    print(text, end="")
    plain = table.as_dict()
    with new_folder(out) as folder:
        atomic_json(folder / "table.json", plain)
        with open_writer(folder / "table.csv") as writer:
            for entry in plain["table3"]:
                writer.write(entry)
        atomic_text(folder / "table.md", text)
        write_run(folder / "run.json", watch, headlines=headlines, alpha=alpha, signatures=plain["signatures"])


def markdown(table: "HeadlineTable") -> str:
    """Table 3 (a row for each data set and metric, a column for each task), then Table 4, as Markdown."""
    tasks = list(dict.fromkeys(entry.task for entry in table.entries))
    lines = [
        f"Pearson's r with people; * p < {table.threshold:.5f} (Bonferroni); n in brackets where it differs.",
        "",
        f"| data | metric | {' | '.join(tasks)} |",
        f"|---|---|{'---|' * len(tasks)}",
    ]
    most = max(entry.n for entry in table.entries)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for entry in table.entries:
        value = "–" if entry.r is None else f"{entry.r:.3f}{'*' if entry.significant else ''}"
        rows.setdefault((entry.dataset, entry.metric), {})[entry.task] = value + (
            f" ({entry.n})" if entry.n != most else ""
        )
    lines += [f"| {data} | {metric} | {' | '.join(row[t] for t in tasks)} |" for (data, metric), row in rows.items()]
    lines += ["", "| metric | highest | significant |", "|---|---|---|"]
    lines += [f"| {metric} | {best} | {significant} |" for metric, (best, significant) in table.counts().items()]
    reasons = sorted({entry.reason for entry in table.entries if entry.reason})
    return "\n".join([*lines, *(["", *(f"–: {reason}" for reason in reasons)] if reasons else []), ""])

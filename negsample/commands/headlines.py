"""``negsample tables p4-table1``, ``p4-table2``, ``p4-table3`` (with Table 4), ``p4-figure1`` and ``p4-figure2``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from negsample.commands import options
from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.io.run_record import Stopwatch
    from negsample.papers.headline_systems import Example, SystemFigure
    from negsample.papers.headlines import Headline, HeadlineTable

Out = Annotated[str, typer.Option("--out", help="Folder for the table.", metavar="DIR")]
Headlines = Annotated[
    list[str] | None,
    typer.Option(
        "--headlines",
        help="Records with story, generated, reference, and dataset, system where there are several ('reinforce' with "
        "headlines=true writes them to headlines.jsonl); may be repeated.",
        metavar="FILE",
    ),
]
Judged = Annotated[
    list[str] | None,
    typer.Option(
        "--headlines",
        help="Records with story, generated, reference (texts), gen_story, ref_story, gen_ref (people's scores) "
        "and, where there are several, dataset; may be repeated.",
        metavar="FILE",
    ),
]
Encoder = Annotated[
    str,
    typer.Option("--encoder", help="Of AES, FED and map; the paper's: use:FOLDER with USE version 2.", metavar="NAME"),
]
_ENCODER = "use-multilingual"


def p4_table1(
    out: Out,
    headlines: Headlines = None,
    encoder: Encoder = _ENCODER,
    shown: Annotated[int, typer.Option("--shown", min=1, help="Stories shown.")] = 5,
    smoke: options.Smoke = False,
) -> None:
    """Stories with their headlines, the nearest to the story first: as Table 1 of Moeed et al. 2020 shows one."""
    from negsample.papers.headline_systems import examples, plain
    from negsample.scoring.metrics import make_metric

    watch, records = _begin(out, headlines, judged=False, smoke=smoke)
    similarity = make_metric(f"aes(encoder=({encoder}))")
    found = examples(records, similarity, shown)
    text = examples_text(found)
    rows = [
        {"dataset": one.dataset, "story": one.story, "reference": one.reference, "system": system, "generated": made}
        | {"aes_story": story, "aes_reference": reference}
        for one in found
        for system, made, story, reference in one.headlines
    ]
    table = {"examples": plain(found), "signatures": {"aes": similarity.signature}}
    _write(out, watch, text, table, rows, headlines=headlines, smoke=smoke, signatures=table["signatures"])


def p4_table2(
    out: Out,
    headlines: Headlines = None,
    encoder: Encoder = _ENCODER,
    seed: options.Seed = 0,
    smoke: options.Smoke = False,
) -> None:
    """Who writes better headlines: AES, FED and ROUGE in three tasks, beside Table 2 of Moeed et al. 2020."""
    from negsample.papers.headline_systems import FED, plain, system_figures
    from negsample.papers.headlines import METRICS, published

    watch, records = _begin(out, headlines, judged=False, smoke=smoke)
    figures, signatures = system_figures(records, _metrics(METRICS, encoder), f"{FED}:encoder=({encoder})", seed=seed)
    text = systems_text(figures) + _printed(2, "per cent of people's judgments; patio, lawn and garden, Gen-Story")
    rows = plain(figures)
    table = {"table2": rows, "published": published(2), "signatures": signatures}
    facts: dict[str, Any] = {"headlines": headlines, "seed": seed, "smoke": smoke, "signatures": signatures}
    _write(out, watch, text, table, rows, **facts)


def p4_table3(
    out: Out,
    headlines: Judged = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="Default: those of the paper.", metavar="NAME")
    ] = None,
    encoder: Encoder = _ENCODER,
    alpha: Annotated[float, typer.Option("--alpha", help="Level before Bonferroni's correction.")] = 0.05,
    smoke: options.Smoke = False,
) -> None:
    """Metrics against people on headlines in three tasks, Bonferroni-corrected: Moeed et al. 2020, Tables 3, 4."""
    from negsample.papers.headlines import METRICS
    from negsample.papers.headlines import p4_table3 as correlate_headlines

    watch, records = _begin(out, headlines, judged=True, smoke=smoke)
    table = correlate_headlines(records, metrics or _metrics(METRICS, encoder), alpha=alpha)
    text = markdown(table) + _printed(3, "20 headlines of each data set") + _printed(4, "from their Table 3")
    plain = table.as_dict()
    facts: dict[str, Any] = {"headlines": headlines, "alpha": alpha, "smoke": smoke, "signatures": plain["signatures"]}
    _write(out, watch, text, plain, plain["table3"], **facts)


def p4_figure1(
    out: Out,
    headlines: Headlines = None,
    encoder: Encoder = _ENCODER,
    seed: options.Seed = 0,
    smoke: options.Smoke = False,
) -> None:
    """A map of the generated headlines of two data sets, PCA then t-SNE: Moeed et al. 2020, Figure 1."""
    from negsample.eval.report.embedding_map import map_texts
    from negsample.models.encoders import make_encoder

    watch, records = _begin(out, headlines, judged=False, smoke=smoke)
    texts: dict[str, list[str]] = {}
    for headline in records:
        if headline.draw == 1 and headline.generated:
            texts.setdefault(headline.dataset, []).append(headline.generated)
    if len(texts) < 2:
        raise InputError(f"the map is of two data sets' headlines, and there are {len(texts)}; repeat --headlines FILE")
    (one, other), left = list(texts)[:2], list(texts)[2:]
    made = make_encoder(encoder)
    drawn = map_texts(texts[one], texts[other], made, names=(one, other), pool="whole", seed=seed)
    text = f"generated headlines of {one} ({len(texts[one])}) and {other} ({len(texts[other])}): figure1.svg\n"
    text += f"not drawn: {', '.join(left)}\n" if left else ""
    facts = {"headlines": headlines, "seed": seed, "smoke": smoke, "encoder": encoder, "weights": made.fingerprint}
    _write(out, watch, text, {"datasets": [one, other]}, [], {"figure1.svg": drawn}, **facts)


def p4_figure2(
    out: Out,
    headlines: Judged = None,
    corpora: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            help="Records of the same data sets without people's scores, for the distance, which needs many texts; may "
            "be repeated.",
            metavar="FILE",
        ),
    ] = None,
    encoder: Encoder = _ENCODER,
    smoke: options.Smoke = False,
) -> None:
    """The Fréchet distance of headlines beside people's mean score, by data set and task: Moeed et al. 2020, Figure 2."""
    from negsample.papers.headline_systems import FED, draw_fed, fed_points, plain
    from negsample.papers.headlines import load_headlines

    watch, records = _begin(out, headlines, judged=True, smoke=smoke)
    more = [headline for path in corpora or [] for headline in load_headlines(path, judged=False)]
    points, signature = fed_points(records, f"{FED}:encoder=({encoder})", more)
    lines = ["| data | task | FED | texts | people | judged |", "|---|---|---|---|---|---|"]
    lines += [f"| {p.dataset} | {p.task} | {p.fed:.4f} | {p.texts} | {p.people:.2f} | {p.judged} |" for p in points]
    rows = plain(points)
    facts = {"headlines": headlines, "corpora": corpora, "smoke": smoke, "signatures": {FED: signature}}
    text = "\n".join([*lines, "", "No numbers are printed in the paper.", ""])
    _write(out, watch, text, {"points": rows, "signature": signature}, rows, {"figure2.svg": draw_fed(points)}, **facts)


def _begin(out: str, paths: Sequence[str] | None, *, judged: bool, smoke: bool) -> tuple["Stopwatch", list["Headline"]]:
    """The records of all files, or, for a smoke run, those of the embedded sample."""
    from negsample.io.files import check_new
    from negsample.io.run_record import Stopwatch
    from negsample.papers.headlines import load_headlines, stand_ins

    watch = Stopwatch()
    if not paths and not smoke:
        scores = " and people's scores" if judged else ""
        raise InputError(f"give --headlines FILE: records with story, generated, reference{scores}")
    check_new(out)
    if smoke:
        print(
            "smoke run, figures mean nothing: sentences of the embedded sample as headlines, 'people' who count words"
        )
        return watch, stand_ins()
    return watch, [headline for path in paths or [] for headline in load_headlines(path, judged=judged)]


def _metrics(names: Sequence[str], encoder: str) -> list[str]:
    return [f"aes(encoder=({encoder}))" if name == "aes" and encoder != _ENCODER else name for name in names]


def _write(
    out: str,
    watch: "Stopwatch",
    text: str,
    table: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, bytes] | None = None,
    **facts: Any,
) -> None:
    """Print what was found, and write the folder."""
    from negsample.io.files import atomic_json, atomic_text, new_folder, replacing
    from negsample.io.run_record import write_run
    from negsample.io.write import open_writer

    # Shown first: what was found is not lost where it can't be written.
    print(text, end="")
    with new_folder(out) as folder:
        atomic_json(folder / "table.json", table)
        if rows:
            with open_writer(folder / "table.csv") as writer:
                for row in rows:
                    writer.write(dict(row))
        atomic_text(folder / "table.md", text)
        for name, drawn in (pictures or {}).items():
            with replacing(Path(folder) / name) as stream:
                stream.write(drawn)
        write_run(folder / "run.json", watch, **facts)


def _printed(number: int, about: str) -> str:
    """A table of the paper, as Markdown below one's own."""
    from negsample.papers.headlines import published

    rows = published(number)
    lines = [f"\nPrinted in Moeed et al. 2020, Table {number} ({about}):\n", f"| {' | '.join(rows[0])} |"]
    lines += ["|" + "---|" * len(rows[0]), *(f"| {' | '.join(row.values())} |" for row in rows), ""]
    return "\n".join(lines)


def examples_text(found: Sequence["Example"]) -> str:
    """Each story, its reference, and its headlines with their AES to story and reference, as Markdown."""
    from negsample.number_text import number

    parts = []
    for one in found:
        parts.append(f"## {one.dataset}\n\n{one.story}\n\n**reference** {one.reference}\n")
        parts += [
            f"**{system}** {text} (AES to the story {number(story)}, to the reference {number(reference)})\n"
            for system, text, story, reference in one.headlines
        ]
    return "\n".join(parts)


def systems_text(figures: Sequence["SystemFigure"]) -> str:
    """A row for each data set, system and task, a column for each metric with its interval, as Markdown."""
    from negsample.number_text import interval, number

    names = list(dict.fromkeys(figure.metric for figure in figures))
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for figure in figures:
        cell = number(figure.value)
        cell += f" ({interval(figure.low, figure.high)})" if figure.low is not None else ""
        cell += f" ({figure.n} of {figure.n + figure.missing})" if figure.missing else ""
        rows.setdefault((figure.dataset, figure.system, figure.task), {})[figure.metric] = cell
    lines = [f"| data | system | task | {' | '.join(names)} |", f"|---|---|---|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(key)} | {' | '.join(row.get(name, '') for name in names)} |" for key, row in rows.items()]
    return "\n".join([*lines, ""])


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

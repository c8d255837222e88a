"""``negsample reinforce`` and ``generate-summaries``: summarizers."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError, RecordError
from negsample.terminal import Bar, say

if TYPE_CHECKING:
    from negsample.train.reinforce.config import ReinforceConfig

_CURVE = "training.svg"


def reinforce(
    out: Annotated[str, Option(help="Folder for the summarizer.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
    resume: options.Resume = False,
    smoke: options.Smoke = False,
) -> None:
    """Train a summarizer by a score as reward; --out becomes a folder for 'generate-summaries'."""
    from accelerate import PartialState

    from negsample.eval.agreement.columns import make_scorers
    from negsample.eval.report import made
    from negsample.eval.report.plots import training_curves
    from negsample.io.files import replacing
    from negsample.io.read import read_rows
    from negsample.rewards import Reward
    from negsample.settings import read_settings
    from negsample.train.job import told_after
    from negsample.train.reinforce import reinforce as train_by_reward
    from negsample.train.reinforce.config import ReinforceConfig

    options.check_given(config, values)
    settings = read_settings(ReinforceConfig, config, values or [], "reinforce").resolved()
    if smoke:
        from negsample.papers.stand_ins import small_reinforce

        settings = small_reinforce(settings)
    reward = Reward(
        settings.reward,
        length="band" if settings.band else settings.length,
        band=settings.band,
        undefined="lowest",
        unsupervised=settings.unsupervised_share if settings.unsupervised is not None else 0.0,
    )
    if reward.needs_references and not settings.references:
        raise InputError(f"reward={settings.reward} compares with references, and references=false; name another")
    make_scorers((), settings.metrics, baselines=False)  # what the table names wrong is told before hours of training
    folder, test = Path(out), Path(out) / "test"
    found = train_by_reward(settings, reward, Reward(settings.oracle).score, folder, resume=resume, smoke=smoke)
    if not PartialState().is_main_process:
        return
    if found is None:
        say(f"{out}: the run is finished already")
    wanted = [folder / _CURVE, test / "report.html"]
    if not all(path.exists() for path in wanted):
        with told_after(folder, str(test)):
            lines = [row.fields for row in read_rows(folder / "training.jsonl")]
            if drawn := made(_CURVE, lambda: training_curves(lines)):
                with replacing(folder / _CURVE) as stream:
                    stream.write(drawn)
            _test(settings, f"{out}/summaries.jsonl", test)
    say(f"summarizer: {out}   test: {test}/report.html, {out}/samples.md, {out}/{_CURVE}")
    options.check_whole(all(path.exists() for path in wanted))


def _test(settings: "ReinforceConfig", summaries: str, out: Path) -> None:
    """The table: every system × every metric, with intervals and paired tests against the weights before the reward."""
    from negsample.commands.compare import print_comparison
    from negsample.eval.agreement.compare import Settings, compare
    from negsample.eval.report.compare import write_comparison
    from negsample.io.run_record import Stopwatch

    watch = Stopwatch()
    shutil.rmtree(out, ignore_errors=True)  # what a call that failed has left of it
    asked = Settings(metrics=tuple(settings.metrics), inputs=(summaries,), on_bad="skip", seed=settings.seed)
    result = compare(asked)
    try:
        print_comparison(result)
    finally:  # it is written where it can't be shown, too
        write_comparison(result, str(out), watch)


# Documents summarized at a time.
_CHUNK = 64


def generate_summaries(
    inputs: Annotated[str, Argument(help="Records with documents (- for standard input).", metavar="INPUT")],
    model: Annotated[str, Option(help="Folder of 'reinforce', language model (folder, hub id), lead or textrank.")],
    output: Annotated[
        str, Option("--output", "-o", help="Where the records go (- for standard output).", metavar="OUTPUT")
    ],
    words: Annotated[int | None, Option(min=1, help="lead, textrank: at most so many words.")] = None,
    sentences: Annotated[int | None, Option(min=1, help="lead, textrank: so many sentences (default 3).")] = None,
    system: Annotated[str | None, Option(help="Name of the system in the records (default: of the model).")] = None,
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    on_bad: options.OnBad = "stop",
) -> None:
    """Summarize documents; a record's own summary becomes its reference. For 'score' and 'compare'."""
    from negsample.io.files import check_outputs, format_of
    from negsample.io.read import document_field as document_of
    from negsample.io.read import read_rows
    from negsample.io.write import open_writer
    from negsample.scoring.files import Settings, chunks, kept_fields

    settings = Settings(on_bad=on_bad)  # refuses another word
    format_of(output)
    check_outputs([output], [inputs])
    summarize = make_summarizer(model, words, sentences)
    name = system or (Path(model).name if Path(model).is_dir() else model)
    dropped = {document_field, summary_field, "score", "reference"}
    left_out = empty = done = 0
    with Bar("summarizing") as bar, open_writer(output) as writer:
        for rows in chunks(read_rows(inputs), _CHUNK):
            kept = []
            for row in rows:
                try:
                    kept.append((row.fields, document_of(row, document_field)))
                except RecordError as error:
                    if on_bad == "stop":
                        raise error.or_skip() from None
                    left_out += 1
            for (fields, document), summary in zip(kept, summarize([text for _, text in kept]), strict=True):
                references = fields.get("references") or fields.get("reference")
                if not references and isinstance(own := fields.get(summary_field), str) and own.strip():
                    references = [own]
                # What scored the summary before is gone.
                made = {key: value for key, value in kept_fields(fields, settings).items() if key not in dropped}
                made |= {"document": document, "summary": summary, "system": name}
                # A table has the same columns in every record.
                writer.write({**made, "references": references or []})
                empty += not summary
                done += 1
            bar.advance(len(rows))
    told = f"{output}: {done} summaries by {name}"
    told += f", {empty} of them empty" if empty else ""
    told += f"; {left_out} records left out" if left_out else ""
    say(told, error=output == "-")


def make_summarizer(model: str, words: int | None, sentences: int | None) -> Callable[[Sequence[str]], list[str]]:
    """What ``--model`` names, as a function of documents. Raises InputError where there is no such thing."""
    from negsample.models.summarizers import Budget, lead, ranked

    if model not in ("lead", "textrank"):
        from negsample.models.summarizers.language_model import load_summarizer

        if words is not None or sentences is not None:
            raise InputError("--words and --sentences are for lead and textrank; a model has its own budget")
        return load_summarizer(model).summarize
    budget = Budget(words, 3 if words is None and sentences is None else sentences)
    if model == "lead":
        return lambda documents: [lead(document, budget) for document in documents]

    from negsample.eval.metrics.baselines import importances
    from negsample.text import word_tokens

    def order(found: list[str]) -> list[int]:
        ranks = importances([word_tokens(sentence) for sentence in found])
        return sorted(range(len(found)), key=lambda place: (-round(float(ranks[place]), 9), place))

    return lambda documents: [ranked(document, budget, order) for document in documents]

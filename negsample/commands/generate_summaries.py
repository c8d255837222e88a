"""``negsample generate-summaries``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError, RecordError
from negsample.negatives import ASPECTS
from negsample.terminal import say

# Documents summarized at a time.
_CHUNK = 64
# What a score of the summary before has left in a record.
_SCORED = {"score", "percentile", "aspects", "aspect_percentiles", "intervals", "reason"}
_SCORED |= {f"{name}{end}" for name in ASPECTS for end in ("", "_low", "_high", "_percentile")}


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
    from negsample.progress import Bar
    from negsample.scoring.files import Settings, chunks

    Settings(on_bad=on_bad)  # refuses another word
    format_of(output)
    check_outputs([output], [inputs])
    summarize = make_summarizer(model, words, sentences)
    name = system or (Path(model).name if Path(model).is_dir() else model)
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
                writer.write(record_of(fields, document, summary, name, document_field, summary_field))
                empty += not summary
                done += 1
            bar.advance(len(rows))
    told = f"{output}: {done} summaries by {name}"
    told += f", {empty} of them empty" if empty else ""
    told += f"; {left_out} records left out" if left_out else ""
    say(told, error=output == "-")


def record_of(
    fields: dict[str, Any], document: str, summary: str, system: str, document_field: str, summary_field: str
) -> dict[str, Any]:
    """The record with a new ``summary``; its own, if it had one, is a reference now, and a score of that is gone."""
    dropped = _SCORED | {document_field, summary_field, "reference"}
    references = fields.get("references") or fields.get("reference")
    if not references and isinstance(own := fields.get(summary_field), str) and own.strip():
        references = [own]
    made = {key: value for key, value in fields.items() if key not in dropped}
    made |= {"document": document, "summary": summary, "system": system}
    return {**made, "references": references} if references else made


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

    from negsample.eval.metrics.textrank import importances
    from negsample.text import word_tokens

    def order(found: list[str]) -> list[int]:
        ranks = importances([word_tokens(sentence) for sentence in found])
        return sorted(range(len(found)), key=lambda place: (-round(float(ranks[place]), 9), place))

    return lambda documents: [ranked(document, budget, order) for document in documents]

"""``negsample estimate``."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from negsample.commands import options
from negsample.number_text import interval, number, short
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.eval.agreement.estimate import Estimates


def estimate(
    inputs: Annotated[
        list[str],
        Argument(
            help="Tables of summaries with 'system', some of them judged ('scores'), others not.", metavar="INPUT"
        ),
    ],
    models: options.Models = None,
    metrics: options.Metrics = None,
    by: Annotated[str, Option(help="The score, aspect or metric to go by; the first by default.", metavar="NAME")] = "",
    human: Annotated[list[str] | None, Option(help="Only this human score; may be repeated.")] = None,
    baseline: Annotated[str | None, Option(help="System to compare with: the first by default.")] = None,
    choose: Annotated[int, Option(min=0, help="Choose N documents to have judged next.", metavar="N")] = 0,
    confidence: Annotated[float, Option(help="Of the intervals.")] = 0.9,
    scores_columns: options.ScoresColumns = None,
    json: options.Json = None,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """What people would say of each system, from a few judged summaries and the scores of all: means, differences, intervals."""
    from negsample.eval.agreement.estimate import estimate as estimate_systems
    from negsample.io.files import atomic_json, check_outputs

    check_outputs([json], inputs)
    result = estimate_systems(
        inputs,
        models=options.chosen_models(models, metrics),
        metrics=metrics or (),
        by=by,
        human=list(dict.fromkeys(human or ())),
        baseline=baseline,
        columns=options.names(scores_columns),
        confidence=confidence,
        count=choose,
        precision=precision,
        seed=seed,
    )
    if json is not None:
        plain: dict[str, Any] = {
            "signature": result.column.signature,
            "by": result.column.name,
            "confidence": confidence,
            "seed": seed,
        }
        plain |= {
            "estimates": [asdict(each) for each in result.estimates],
            "chosen": result.chosen,
            "notes": result.notes,
        }
        atomic_json(json, plain)
    print_estimates(result, confidence)


def print_estimates(result: "Estimates", confidence: float) -> None:
    """A table for each human score, then why there is no interval, then what to have judged next."""
    share = f"{100 * confidence:g} %"
    head = ("system", "judged", "scored", "judged alone", share, "with the score", share, "weight", "saved")
    for human in dict.fromkeys(each.human for each in result.estimates):
        own = [each for each in result.estimates if each.human == human]
        rows = [
            (
                each.system if each.other is None else f"{each.system} − {each.other}",
                str(each.judged),
                str(each.scored),
                number(each.plain),
                interval(each.plain_low, each.plain_high) or "–",
                number(each.value),
                interval(each.low, each.high) or "–",
                short(each.weight),
                number(each.saved, 1),
            )
            for each in own
        ]
        say_table(head, rows, title=f"{human}, people's mean, by {result.column.name}", texts=("system",))
        reasons = [(each, each.reason) for each in own if each.reason]
        for reason in dict.fromkeys(reason for _, reason in reasons):
            named = [row[0] for row, each in zip(rows, own, strict=True) if each.reason == reason]
            say(f"  {', '.join(named)}: {reason}")
        say()
    for note in result.notes:
        say(note)
    if result.chosen:
        say(f"to have judged next, all systems: {', '.join(result.chosen)}")

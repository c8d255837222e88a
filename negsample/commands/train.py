"""``negsample generate``, ``train``, ``evaluate``, ``demo``, ``tune``: examples, estimators that learn from them, figures."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import figure_text, number, say, say_table, shorten

if TYPE_CHECKING:
    from negsample.train.config import TrainConfig
    from negsample.train.search import Measure

# What is trained where nobody says what: the packaged configuration that agrees best with people (docs/recipes.md).
DEFAULT = "align"
# Settings that say what is to be trained.
_METHOD = ("head", "recipe", "encoder", "loss")


def generate(
    out: Annotated[str, Option(help="Folder for the examples.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
) -> None:
    """Make labelled examples: every pair, and damaged copies of its summary, by the settings of train on data."""
    from negsample.io.files import new_folder
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.train.config import read_config
    from negsample.train.data import make_examples

    options.check_given(config, values)
    watch = Stopwatch()
    settings = read_config(config, values or [])
    with new_folder(out) as folder:
        report = make_examples(settings, settings.recipe_of(), folder)
        write_run(folder / "run.json", watch, config=settings.as_dict(), seed=settings.seed, data=report)
    print_examples(report)


def print_examples(report: dict[str, Any]) -> None:
    """The examples of each split by kind, and what was left out."""
    say(f"{report['pairs']} pairs, {report['documents']} documents, recipe {report['recipe']}")
    for name, split in report["splits"].items():
        if "labelled" in split:
            say(f"  {name:<11}{split['labelled']:>7} labelled")
        if "originals" not in split:
            continue
        kinds = ", ".join(f"{count} {kind}" for kind, count in split["negatives"].items())
        say(f"  {name:<11}{split['originals']:>7} original, {kinds}")
        for reason, count in split["refusals"].items():
            say(f"  {'':<11}{count:>7} times not possible: {reason}")
        if split["missing"]:
            say(f"  {'':<11}{split['missing']:>7} negatives missing, as no kind could be made")
    for line in report.get("labels", {}).get("told", ()):
        say(f"  {line}")
    if report["duplicates"]:
        say(f"  {report['duplicates']} duplicate pairs left out")
    if report["skipped_text"]:
        say(f"  {report['skipped_text']}")


def train(
    out: Annotated[str, Option(help="Folder for the model.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
    resume: options.Resume = False,
    smoke: options.Smoke = False,
) -> None:
    """Train an estimator; --out becomes a model folder. Several processes: accelerate launch -m negsample train …"""
    from negsample.papers.stand_ins import small_training
    from negsample.train.config import read_config
    from negsample.train.job import train as train_model

    options.check_given(config, values)
    if config is None and not any(word.partition("=")[0].strip() in _METHOD for word in values or []):
        config = DEFAULT
        say(f"no {', '.join(_METHOD[:-1])} or {_METHOD[-1]} is given: packaged configuration {DEFAULT!r}")
        if any(word.partition("=")[0].strip() == "labels" for word in values or []):
            values = [*(values or []), "recipe=null"]  # labels alone
    settings = read_config(config, values or [])
    notes = notes_on(settings, config, values or [], smoke)
    if smoke:
        settings = small_training(settings)
    found = train_model(settings, Path(out), resume=resume, smoke=smoke, notes=notes)
    if found is None:
        say(f"{out}: the run is finished already")
    elif found:
        print_figures(found)
        say(f"model: {out}")


def notes_on(settings: "TrainConfig", config: str | None, words: Sequence[str], smoke: bool = False) -> list[str]:
    """Say what is trained, and on what, where neither the words nor a file of the user's do: a line each.

    A packaged configuration is no word of the user's on the corpus, but is one on the method. Raises InputError where a
    file of the user's own and the words name no corpus, unless this is a ``smoke`` run.
    """
    from negsample.io.read import SAMPLE_PATH
    from negsample.settings import FOLDER, find_config, read_file, read_words

    named = named_on_corpus = set(read_words(words))
    if config is not None:
        path = find_config(config)
        if not path.is_file():
            return []  # a pipe, which can't be read again
        named = named | set(read_file(path))
        if path.parent != FOLDER:
            named_on_corpus = named
            if not named & {"corpus", "labels"} and not smoke:
                raise InputError(f"{config}: names no corpus; add a line corpus: PATH, or corpus=PATH to the command")
    notes = []
    alone = settings.recipe_of() is None
    if not alone and settings.corpora() == ["sample"] and "corpus" not in named_on_corpus:
        pairs = len(SAMPLE_PATH.read_bytes().splitlines())
        notes.append(f"corpus: sample (embedded, {pairs} pairs); give corpus=PATH for your own")
    if missing := [key for key in ("head", "encoder", *([] if alone else ["recipe"])) if key not in named]:
        several = isinstance(settings.recipe, dict)
        recipe = (
            f"of {len(settings.recipe or ())} kinds" if several else str(settings.recipe_of() or "none, but labels")
        )
        method = f"head {settings.head}, encoder {settings.resolved().encoder}, recipe {recipe}"
        notes.append(f"{method} ({', '.join(missing)} by default)")
    return notes


def evaluate(
    model: options.Model,
    examples: Annotated[
        str,
        Option(
            help="Labelled examples, as 'generate' writes them: of the split test, for a model trained on the others.",
            metavar="FILE",
        ),
    ],
    json: options.Json = None,
    precision: options.Precision = "float32",
    batch_size: options.BatchSize = 32,
    seed: options.Seed = 0,
) -> None:
    """Accuracy and AUC (0/1 labels) or Pearson, Spearman and MSE (graded ones), with intervals; agreement with given labels."""
    from negsample.eval.examples import evaluate as evaluate_model
    from negsample.io.files import atomic_json, check_outputs
    from negsample.models import load

    check_outputs([json], [examples])
    found = evaluate_model(load(model, precision=precision), examples, batch_size=batch_size, seed=seed)
    try:
        print_figures(found)
        say(found["signature"])
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        if json is not None:
            atomic_json(json, found)


def print_figures(found: dict[str, Any]) -> None:
    """Test figures with their intervals, means by kind, what training bought by kind, and what was cut."""
    for name, figure in found["test"].items():
        say(f"test {name}: {figure_text(figure)}")
    for figure in found.get("agreement", ()):
        if figure["metric"] in (figure["human"], "score"):
            what = (
                f"{figure['level']} {figure['coefficient']} of {figure['metric']} with the labels of {figure['human']}"
            )
            say(f"{what}: {figure_text(figure)}; given length {number(figure['given_length'])}")
    for kind, row in found["by_kind"].items():
        say(f"  {kind:<18}n {row['n']:>6}  mean label {row['label']:.3f}  mean score {row['score']:.3f}")
    if found.get("judge"):
        shares = ", ".join(f"{name} {share:.3f}" for name, share in found["judge"].items())
        say(f"judge, held-out stretches: share of damaged copies ranked below their original: {shares}")
    if found.get("ranking"):
        say("test, share of damaged copies ranked below their original:")
        say(f"  {'kind':<18}{'by':<11}{'n':>6} {'untrained':>10} {'trained':>8}  gain (95 % interval)")
    for row in found.get("ranking") or ():
        shares = f"{row['n']:>6} {row['untrained']:>10.3f} {row['trained']:>8.3f}  {row['gain']:+.3f}"
        interval = f" ({row['low']:+.3f} to {row['high']:+.3f})" if row["low"] is not None else ""
        say(f"  {row['kind']:<18}{row['output']:<11}{shares}{interval}")
    if found.get("skipped"):
        say(f"  {found['skipped']}")
    for name, split in found.get("cut", {}).items():
        if split["cut"]:
            say(f"  {split['cut']} of {split['pairs']} pairs of {name} are longer than the model reads and were cut")


def demo(out: Annotated[str, Option(help="Folder for the model and examples.", metavar="DIR")] = "runs/demo") -> None:
    """The whole road on the embedded sample: negatives, training, test figures, scores of unseen pairs."""
    from negsample.eval.examples import evaluate
    from negsample.io.files import atomic_json, check_new
    from negsample.io.read import read_examples
    from negsample.models import load
    from negsample.train.config import read_config
    from negsample.train.job import train

    check_new(out)
    folder, config = Path(out), read_config("sample")
    examples = str(folder / "examples" / "test.jsonl.gz")
    say("1. damaged summaries")
    generate(str(folder / "examples"), config="sample")
    say("2. training")
    train(config, folder / "model")
    say("3. held-out documents")
    estimator = load(folder / "model")
    found = evaluate(estimator, examples, seed=config.seed)
    atomic_json(folder / "figures.json", found)
    print_figures(found)
    say("4. scores of unseen pairs")
    chosen = list(islice(read_examples(examples), 6))
    scores = estimator.score([e.document for e in chosen], [e.summary for e in chosen])
    rows = [
        (shorten(e.document, 60), shorten(e.summary, 60), e.kind, f"{e.label:.2f}", f"{score:.3f}")
        for e, score in zip(chosen, scores, strict=True)
    ]
    texts = ("document", "summary", "made by")
    say_table((*texts, "label", "score"), rows, texts=texts, width=110)
    say(f"\nmodel: {folder / 'model'}   signature: {estimator.signature}")


def tune(
    config: Annotated[str, Option(help="YAML file: train, space, objective …", metavar="FILE")],
    study: Annotated[str, Option(help="Name of the study; workers with one name share it.")],
    storage: Annotated[
        str,
        Option(
            help="sqlite:///FILE (one machine), postgresql+psycopg://… (several), journal:FILE (shared folder).",
            metavar="URL",
            envvar="NEGSAMPLE_STORAGE",
        ),
    ],
    trials: Annotated[int, Option(min=1, help="Trials in all, over all workers.")],
    out: Annotated[str, Option(help="Folder for the results; gone on with.", metavar="DIR")],
    keep_models: Annotated[bool, Option("--keep-models", help="Keep every trial's model, not only the best.")] = False,
) -> None:
    """Search recipes, heads, encoders and settings; start it again, or on more machines, to add workers."""
    import torch

    from negsample.eval.judgments import parted
    from negsample.eval.report import write_files
    from negsample.eval.report.tune import tune_page
    from negsample.eval.tuning import agreement_of, load_tune_half
    from negsample.io.run_record import Stopwatch, fingerprints, write_run
    from negsample.settings import field_types, make_settings
    from negsample.train.config import Reading
    from negsample.train.data import find_corpora
    from negsample.train.search import tune as run_trials
    from negsample.train.search.settings import read_search
    from negsample.train.search.study import hide, safe_url, study_as_plain

    watch = Stopwatch()
    # The files keep the command line, and it may hold a password.
    sys.argv[1:] = [hide(word, storage) for word in sys.argv[1:]]
    search = read_search(config)
    keys = field_types(Reading)
    # Corpora that differ between trials are left to them.
    if not search.searched.fields() & (set(keys) - {"limit", "sample", "seed"}):
        find_corpora(make_settings(Reading, {key: search.train[key] for key in keys if key in search.train}, "train"))
    measure: Measure | None = None
    data: dict[str, str] = {}
    if (asked := search.agreement) is not None:
        halves = [load_tune_half(*own) for own in asked.files()]
        measure = partial(agreement_of, halves=halves, level=asked.level, coefficient=asked.coefficient)
        data = fingerprints(parted(spec)[1] for spec in asked.judgments)
    for note in search.notes():
        say(f"note: {note}", error=True)
    say(f"study {study}: {trials} trials, {search.title()}")
    found = run_trials(search, study, storage, trials, Path(out), measure=measure, keep_models=keep_models, say=say)
    plain = study_as_plain(search, study, found)
    whole = write_files(Path(out), {"report.html": lambda: tune_page(plain, found)})
    write_run(
        Path(out) / "run.json",
        watch,
        device="cuda" if torch.cuda.is_available() else "cpu",
        config=plain["search"],
        seed=search.seed,
        storage=safe_url(storage),
        data=data,
        states=plain["states"],
        best=plain["best"],
    )
    states = ", ".join(f"{count} {state}" for state, count in plain["states"].items())
    say(f"{len(plain['trials'])} trials: {states}; {plain['interrupted_attempts']} interrupted and run again")
    for reason, count in plain["failures"].items():
        say(f"  {count} × failed: {reason}")
    best = plain["best"]
    if best is None:
        raise InputError(f"{out}: no trial was completed, so there is no best one; trials.csv says why")
    say(f"best: trial {best['trial']}, {best['value']:.4f}")
    for name, value in best["parameters"].items():
        say(f"  {name}: {value}")
    say(f"{out}: best.yaml (negsample train --config {out}/best.yaml --out DIR), trials.csv, study.json, report.html")
    options.check_whole(whole)

"""A whole training run: pairs → negatives → features → network → test figures → model folder."""

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch

import negsample
from negsample.corpora.pairs import describe_part
from negsample.errors import InputError
from negsample.io.files import atomic_json, atomic_text, remove_parts
from negsample.io.run_record import Stopwatch, refuse_changes, work_folder, write_run
from negsample.models.build import Parts, new_parts, takes
from negsample.models.evaluation import by_kind, figures
from negsample.models.folder import on_scale, percentiles_of, save_folder, scale_of
from negsample.models.language.model_files import telling
from negsample.negatives.recipe import Recipe
from negsample.processes import refuse_sharding
from negsample.records import LABELLED
from negsample.terminal import figure_text
from negsample.train.config import Reading, TrainConfig, Training
from negsample.train.data import FOUND, SPLITS, Split, make_examples, open_split, prepare_split
from negsample.train.fit.align import MOST_EXAMPLES, align_outputs, beginning, fit_align, ranking_on
from negsample.train.fit.checkpoint import PRINTED, Callbacks, read_epochs
from negsample.train.fit.loop import Run, fit, own_state, predict

if TYPE_CHECKING:
    from accelerate import Accelerator

T = TypeVar("T")
WORK = "work"
# A finished run has it, written last.
RUN = "run.json"
# What took long to learn: checkpoints, and head ``align``'s judge and features.
_LEARNED = (f"{WORK}/checkpoint-*[0-9]", f"{WORK}/judge.pt", f"{WORK}/support.pt", f"{WORK}/features/*.npz")


def train(
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    smoke: bool = False,
    callbacks: Callbacks = PRINTED,
    notes: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Train an estimator as ``config`` says and leave a model folder at ``out``.

    Returns the content of its ``figures.json``, None where ``resume`` found the run finished. While it runs, everything
    it needs to go on lies in ``out/work``. ``smoke`` is written to ``run.json`` and changes nothing (the caller has made
    ``config`` small: ``train.smoke``). ``callbacks`` are told how the run goes, and ``notes`` once the corpus is read and
    nothing was wrong with it. Under ``accelerate launch`` every process calls this; the main one reads the corpus and
    writes. Raises InputError for anything wrong with the configuration, the corpus or the folder.
    """
    watch, work = Stopwatch(), out / WORK
    config = config.resolved()
    takes(config.head)
    recipe = config.recipe_of()
    # The recipe as it is, not the name of the file it came from, decides whether a run may be resumed.
    config = dataclasses.replace(config, recipe=None if recipe is None else dict(recipe.weights))
    loss = loss_of(config, recipe)
    accelerator = make_accelerator(config)
    main = accelerator.is_main_process
    with contextlib.ExitStack() as held:
        if not hold_folder(accelerator, out, config, held, what="a training run", resume=resume):
            return None
        held.enter_context(own_state())
        parts = parts_of(config)
        on_main(accelerator, lambda: _prepare(config, recipe, parts, work), work)
        data: dict[str, Any] = on_main(accelerator, lambda: json.loads((work / "data.json").read_text("utf-8")), work)
        for note in [*notes, *data.get("labels", {}).get("told", ())] if main else ():
            callbacks.say(note)
        splits = {name: open_split(work / name, config.label_weight) for name in SPLITS}
        run = Run(accelerator, config, loss, parts, splits, work, callbacks)
        found = fit_and_test(run)
        if callbacks.after_fit is not None:
            held_scores = outputs_of(run, splits["validation"], "validation")["score"]
            if main:
                callbacks.after_fit(np.array(splits["validation"].labels), held_scores)
        columns, found_as, domains = _held_outputs(run)
        real, damaged = ({name: column[rows] for name, column in columns.items()} for rows in (found_as, ~found_as))
        if not main:
            accelerator.wait_for_everyone()
            return {}
        found |= {"seconds": watch.seconds, "skipped": data["skipped_text"]}
        corpora = f"held-out summaries of {', '.join(data['corpora'])}"
        # Other heads answer with the labels that they learned.
        scale = scale_of(real, damaged) if takes(parts.head) == "align" else {}
        percentiles = percentiles_of(on_scale(real, scale), corpora, domains[found_as])
        save_model(run, out, data["recipe"], data, found, percentiles, scale)
        with told_after(out, "what tells of it"):
            atomic_json(out / "figures.json", found)
            finish(accelerator, config, out, watch, smoke=smoke, data=data, figures=found)
        accelerator.wait_for_everyone()
        return found


def loss_of(config: TrainConfig, recipe: Recipe | None) -> str:
    """The loss that ``config`` names, or the recipe's own (Bao et al. 2021 §3.2); head ``align`` has one of its own, and
    for labels (where ``recipe`` may be None) ``mse``.

    Raises InputError for a loss or a language model that the head can't have.
    """
    if takes(config.head) == "align":
        if config.labels is not None and config.loss == "mse":
            return "mse"
        if config.loss is not None and not (config.labels and config.loss == "ranking"):
            raise InputError(f"loss={config.loss}: head align has a loss of its own (ranking and bce); leave loss out")
        return "ranking+bce"
    if config.lm is not None:
        raise InputError(f"lm={config.lm}: head {config.head} has no language model; leave lm out, or take head=align")
    return config.loss or ("mse" if recipe is None or config.labels or recipe.graded else "bce")


def parts_of(config: TrainConfig) -> Parts:
    """Features, and the network where it needs no ``fit`` of them, as a resolved ``config`` says."""
    same = "max_length min_summary max_document max_summary attention lm lm_prompt lm_tokens copy_lm seed".split()
    given = {name: getattr(config, name) for name in same}
    parts = new_parts(config.head, str(config.encoder), freeze=config.freeze_encoder, **given)
    parts.options.update(head_options(config))
    return parts


def head_options(config: TrainConfig) -> dict[str, Any]:
    """The options of the network that the settings give."""
    return {"units": config.units} if config.head == "lstm" and config.units else {}


def fit_and_test(run: Run) -> dict[str, Any]:
    """Train, and test on the split ``test``; the content of ``figures.json`` (on the main process)."""
    test = run.splits["test"]
    facts = fit_parts(run)
    scores = outputs_of(run, test, "test")["score"]
    if not run.accelerator.is_main_process:
        return {}
    if takes(run.parts.head) == "align":
        facts["ranking"] = ranking_on(run, test)
    return {
        "test": figures(test.labels, scores, test.document_of, seed=run.config.seed),
        "by_kind": by_kind(test.labels, scores, test.kind_of.tolist()),
        "cut": cut_of(run.parts, run.splits),
        "unit": run.parts.features.unit,
        **facts,
    }


def fit_parts(run: Run) -> dict[str, Any]:
    """Train on the splits ``train`` and ``validation``; ``epochs``, and what else the head tells (on the main process)."""
    found: dict[str, Any] = {}
    if takes(run.parts.head) == "align":
        found = fit_align(run)
    else:
        fit(run)
    return {"epochs": read_epochs(run.work / "training.jsonl"), **found} if run.accelerator.is_main_process else {}


def outputs_of(run: Run, split: Split, name: str) -> dict[str, np.ndarray]:
    """``score`` and each aspect of a trained head on a split: float32 [n] in [0, 1] (on the main process; computed by all).

    Head ``align`` keeps the split's features in ``work/features`` as ``name``.
    """
    if takes(run.parts.head) == "align":
        return align_outputs(run, split, name)
    return {"score": torch.sigmoid(predict(run, split)).numpy()}


def _held_outputs(run: Run) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """``score`` and each aspect of the splits that nothing was learnt from; which summaries are as written, bool; domains [n]."""
    # No further than what has been read for head ``align``.
    splits = {name: beginning(run.splits[name], MOST_EXAMPLES) for name in ("validation", "test")}
    outputs = [outputs_of(run, split, name) for name, split in splits.items()]
    columns = {column: np.concatenate([own[column] for own in outputs]) for column in outputs[0]}
    domains = [np.array(split.domain_names, object)[split.domains] for split in splits.values()]
    return columns, np.concatenate([split.of(*FOUND) for split in splits.values()]), np.concatenate(domains)


def cut_of(parts: Parts, splits: Mapping[str, Split]) -> dict[str, dict[str, int]]:
    """For each split: its examples (``pairs``) and how many of them are longer than the model reads (``cut``)."""
    return {name: {"pairs": len(split), "cut": split.cut(parts.features)} for name, split in splits.items()}


def save_model(
    run: Run,
    out: Path,
    recipe: Recipe | str,
    data: Mapping[str, Any],
    found: Mapping[str, Any],
    percentiles: Mapping[str, Any] | None = None,
    scale: Mapping[str, Any] | None = None,
) -> None:
    """Write what was trained as a model folder at ``out``, with what it was trained on and how well, ``percentiles``
    (``percentiles_of``) and ``scale`` (``scale_of``)."""
    facts = {"recipe": str(recipe), "loss": run.loss, "training": run.config.as_dict(), "data": data, "figures": found}
    if scale:
        facts["scale"] = dict(scale)
    save_folder(run.parts, out, facts, "", percentiles)
    with told_after(out, "README.md"):
        atomic_text(out / "README.md", _model_card(out.name, run.parts, facts))


def _model_card(name: str, parts: Parts, facts: Mapping[str, Any]) -> str:
    """What the model is, in words (Markdown) that a person reads before using it."""
    from jinja2 import Environment, StrictUndefined

    template = (files("negsample.train") / "model_card.md.j2").read_text(encoding="utf-8")
    pages = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    pages.filters["figure"] = figure_text
    told = {"name": name, "head": parts.head, "encoder": parts.encoder["name"], "version": negsample.__version__}
    read = {"labels": facts["data"].get("labels") or {"scores": ()}, "part": describe_part(facts["data"])}
    return pages.from_string(template).render(**told, **read, **facts)


def make_accelerator(config: Training) -> "Accelerator":
    """Accelerate's object for a run.

    Raises InputError for a precision that this machine does not have, and for a launch that splits the model.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, is_initialized
    from accelerate.utils import InitProcessGroupKwargs

    # One process may train several models (grids, searches); Accelerate keeps the first one's precision for good.
    if is_initialized() and AcceleratorState().mixed_precision != config.mixed_precision:
        AcceleratorState._reset_state()

    refuse_sharding()
    # The other processes wait while the main one reads a large corpus: hours, not the half hour that is the default.
    patience = InitProcessGroupKwargs(timeout=timedelta(hours=24))
    with telling(f"mixed_precision={config.mixed_precision}", "can't be used here", "set it to no", ValueError):
        return Accelerator(
            mixed_precision=config.mixed_precision,
            gradient_accumulation_steps=config.gradient_accumulation,
            kwargs_handlers=[patience],
        )


def on_main(accelerator: "Accelerator", job: Callable[[], T], work: Path) -> T:
    """What ``job`` answers on the main process, told to all; where it fails there, every process ends with an error."""
    from accelerate.utils import broadcast_object_list

    answer: list[Any] = [False, None]  # whether it has ended well, and with what
    try:
        if accelerator.is_main_process:
            answer = [True, job()]
    finally:  # the others don't wait for a job that has failed
        broadcast_object_list(answer)
    if not answer[0]:
        raise InputError(f"{work}: the main process could not go on; its message says why")
    return cast("T", answer[1])


def hold_folder(
    accelerator: "Accelerator", out: Path, config: Reading, held: contextlib.ExitStack, *, what: str, resume: bool
) -> bool:
    """Whether there is work to do in ``out``, which ``held`` then holds for this run alone; False where it is finished.

    ``what``: as of ``work_folder``, which keeps ``config`` in ``out/work``; a finished run has it in ``run.json``. Every
    process calls this. Raises InputError as ``work_folder``.
    """
    now, run = config.as_dict(), out / RUN

    def look() -> bool:
        if not (resume and run.is_file()):
            name = f"{WORK}/config.json"
            folder = work_folder(out, now, name=name, what=what, alone=True, makes=[WORK], kept=_LEARNED, resume=resume)
            held.enter_context(folder)
            return True
        with telling(run, "damaged", "give another folder"):
            before = json.loads(run.read_text(encoding="utf-8"))["config"]
        refuse_changes(out, before, now)
        shutil.rmtree(out / WORK, ignore_errors=True)
        return False

    return on_main(accelerator, look, out)


@contextlib.contextmanager
def told_after(out: Path, what: str) -> Iterator[None]:
    """Make ``what`` of the model that lies whole in ``out``; where that fails, in whatever way, InputError says it in a line."""
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split()) or repr(error)
        advice = "mend that, and give the command again (train, reinforce: with --resume)"
        raise InputError(f"{out}: what was trained is whole, but {what} can't be made ({why}); {advice}") from error


def finish(accelerator: "Accelerator", config: Reading, out: Path, watch: Stopwatch, **facts: Any) -> None:
    """Write the log and, last, ``run.json`` of the run in ``out``, and forget the work."""
    shutil.copyfile(out / WORK / "training.jsonl", out / "training.jsonl")
    about = {"device": str(accelerator.device), "processes": accelerator.num_processes, "config": config.as_dict()}
    remove_parts(out)
    write_run(out / RUN, watch, seed=config.seed, **about, **facts)
    shutil.rmtree(out / WORK, ignore_errors=True)


def _prepare(config: TrainConfig, recipe: Recipe | None, parts: Parts, work: Path) -> None:
    """Make the negatives and read every text, unless an earlier start has done so."""
    if not (work / "data.json").is_file():
        data = make_examples(config, recipe, work / "examples")
        atomic_json(work / "data.json", data)
    for name in SPLITS:
        # Labelled ones first: head ``align`` may read the beginning alone.
        files = [work / "examples" / f"{kind}{name}.jsonl.gz" for kind in (f"{LABELLED}-", "")]
        prepare_split([path for path in files if path.is_file()], work / name, parts.features)

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
from negsample.io.files import atomic_json, atomic_text
from negsample.io.run_record import Stopwatch, refuse_changes, work_folder, write_run
from negsample.models.build import Parts, make_network, new_parts, takes
from negsample.models.evaluation import by_kind, figures
from negsample.models.folder import percentiles_of, save_folder
from negsample.models.scale import on_scale, scale_of
from negsample.negatives.recipe import Recipe
from negsample.processes import refuse_sharding
from negsample.records import LABELLED
from negsample.terminal import figure_text
from negsample.train.config import Reading, TrainConfig, Training
from negsample.train.data import SPLITS, Split, make_examples, open_split, prepare_split
from negsample.train.fit.align import MOST_EXAMPLES, align_outputs, beginning, fit_align, ranking_on
from negsample.train.fit.checkpoint import PRINTED, Callbacks, read_epochs
from negsample.train.fit.loop import fit, own_state, predict

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
    watch = Stopwatch()
    config = config.resolved()
    takes(config.head)
    recipe = config.recipe_of()
    # The recipe as it is, not the name of the file it came from, decides whether a run may be resumed.
    config = dataclasses.replace(config, recipe=None if recipe is None else dict(recipe.weights))
    loss = loss_of(config, recipe)
    accelerator = make_accelerator(config)
    with contextlib.ExitStack() as held:
        if not hold_folder(accelerator, out, config, held, what="a training run", resume=resume):
            return None
        with own_state():
            return _run(accelerator, config, recipe, loss, out, watch, smoke, callbacks, notes)


def _run(
    accelerator: "Accelerator",
    config: TrainConfig,
    recipe: Recipe | None,
    loss: str,
    out: Path,
    watch: Stopwatch,
    smoke: bool,
    callbacks: Callbacks,
    notes: Sequence[str],
) -> dict[str, Any]:
    work = out / WORK
    parts = parts_of(config)
    on_main(accelerator, lambda: _prepare(config, recipe, parts, work), work)
    data: dict[str, Any] = on_main(accelerator, lambda: json.loads((work / "data.json").read_text("utf-8")), work)
    if accelerator.is_main_process:
        for note in [*notes, *data.get("labels", {}).get("told", ())]:
            callbacks.say(note)
    splits = {name: open_split(work / name, config.label_weight) for name in SPLITS}
    found = fit_and_test(accelerator, config, loss, parts, splits, work, callbacks)
    if callbacks.after_fit is not None:
        held = splits["validation"]
        held_scores = outputs_of(accelerator, config, parts, held, work, "validation")["score"]
        if accelerator.is_main_process:
            callbacks.after_fit(np.array(held.labels), held_scores)
    real, damaged = _held_outputs(accelerator, config, parts, splits, work)
    if not accelerator.is_main_process:
        accelerator.wait_for_everyone()
        return {}
    found["seconds"] = watch.seconds
    found["skipped"] = data["skipped_text"]
    corpora = f"held-out summaries of {', '.join(data['corpora'])}"
    # Other heads answer with the labels that they learned.
    scale = scale_of(real, damaged) if takes(parts.head) == "align" else {}
    save_model(
        parts, out, config, data["recipe"], loss, data, found, percentiles_of(on_scale(real, scale), corpora), scale
    )
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
    same = ("max_length", "min_summary", "max_document", "max_summary", "attention", "lm", "lm_prompt", "lm_tokens")
    given = {name: getattr(config, name) for name in (*same, "copy_lm", "seed")}
    parts = new_parts(config.head, str(config.encoder), freeze=config.freeze_encoder, **given)
    parts.options.update(head_options(config))
    return parts


def head_options(config: TrainConfig) -> dict[str, Any]:
    """The options of the network that the settings give."""
    return {"units": config.units} if config.head == "lstm" and config.units else {}


def fit_and_test(
    accelerator: "Accelerator",
    config: TrainConfig,
    loss: str,
    parts: Parts,
    splits: Mapping[str, Split],
    work: Path,
    callbacks: Callbacks = PRINTED,
) -> dict[str, Any]:
    """Train the network of ``parts`` on prepared ``splits`` and test it; the content of ``figures.json``.

    ``work`` holds the checkpoints and ``training.jsonl``.
    """
    test = splits["test"]
    facts = fit_parts(accelerator, config, loss, parts, splits, work, callbacks)
    scores = outputs_of(accelerator, config, parts, test, work)["score"]
    if not accelerator.is_main_process:
        return {}
    if takes(parts.head) == "align":
        facts["ranking"] = ranking_on(parts, test, work, config.seed)
    return {
        "test": figures(test.labels, scores, test.document_of, seed=config.seed),
        "by_kind": by_kind(test.labels, scores, [test.kind_names[kind] for kind in test.kinds]),
        "cut": cut_of(parts, splits),
        "unit": parts.features.unit,
        **facts,
    }


def fit_parts(
    accelerator: "Accelerator",
    config: TrainConfig,
    loss: str,
    parts: Parts,
    splits: Mapping[str, Split],
    work: Path,
    callbacks: Callbacks = PRINTED,
) -> dict[str, Any]:
    """Train the network of ``parts`` on the train and validation splits; ``epochs``, and what else the head tells.

    A network that ``parts`` have already (loaded from a model folder) is trained on. Arguments as of ``fit_and_test``.
    """
    if takes(parts.head) == "align":
        found = fit_align(accelerator, config, parts, splits, work, callbacks)
        if not accelerator.is_main_process:
            return {}
        return {"epochs": read_epochs(work / "training.jsonl"), **found}
    # Padding is that of the corpus' own pairs.
    parts.features.fit(*splits["train"].units(np.flatnonzero(splits["train"].is_found)))
    network = make_network(parts, config.seed)
    train_split, held = splits["train"], splits["validation"]
    fit(accelerator, config, loss, network, parts.features, train_split, held, work, callbacks)
    return {"epochs": read_epochs(work / "training.jsonl")} if accelerator.is_main_process else {}


def outputs_of(
    accelerator: "Accelerator", config: TrainConfig, parts: Parts, split: Split, work: Path, name: str = "test"
) -> dict[str, np.ndarray]:
    """``score`` and each aspect of trained ``parts`` on a split: float32 [n] in [0, 1] (on the main process; computed by all).

    Head ``align`` keeps the split's features in ``work/features`` as ``name``.
    """
    if takes(parts.head) == "align":
        return align_outputs(accelerator, parts, split, work, name)
    network = make_network(parts, config.seed)
    logits = predict(accelerator, network, parts.features, split, int(config.batch_size or 1))
    return {"score": torch.sigmoid(logits).numpy()}


def _held_outputs(
    accelerator: "Accelerator", config: TrainConfig, parts: Parts, splits: Mapping[str, Split], work: Path
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """``score`` and each aspect of the splits that nothing was learnt from: of summaries as written, and of damaged ones."""
    found: dict[str, list[np.ndarray]] = {}
    original: list[np.ndarray] = []
    for name in ("validation", "test"):
        # No further than what has been read for head ``align``.
        split = beginning(splits[name], MOST_EXAMPLES)
        for column, values in outputs_of(accelerator, config, parts, split, work, name).items():
            found.setdefault(column, []).append(values)
        original.append(split.is_found[: len(values)])
    columns, real = {column: np.concatenate(values) for column, values in found.items()}, np.concatenate(original)
    return {name: column[real] for name, column in columns.items()}, {
        name: column[~real] for name, column in columns.items()
    }


def cut_of(parts: Parts, splits: Mapping[str, Split]) -> dict[str, dict[str, int]]:
    """For each split: its examples (``pairs``) and how many of them are longer than the model reads (``cut``)."""
    return {name: {"pairs": len(split), "cut": split.cut(parts.features)} for name, split in splits.items()}


def save_model(
    parts: Parts,
    out: Path,
    config: TrainConfig,
    recipe: Recipe | str,
    loss: str,
    data: Mapping[str, Any],
    found: Mapping[str, Any],
    percentiles: Mapping[str, Any] | None = None,
    scale: Mapping[str, Any] | None = None,
) -> None:
    """Write the trained ``parts`` as a model folder at ``out``, with what they were trained on and how well, ``percentiles``
    (``percentiles_of``) and ``scale`` (``scale_of``)."""
    facts = {"recipe": str(recipe), "loss": loss, "training": config.as_dict(), "data": data, "figures": found}
    if scale:
        facts["scale"] = dict(scale)
    save_folder(parts, out, facts, "", percentiles)
    with told_after(out, "README.md"):
        atomic_text(out / "README.md", _model_card(out.name, parts, facts))


def _model_card(name: str, parts: Parts, facts: Mapping[str, Any]) -> str:
    """What the model is, in words (Markdown) that a person reads before using it."""
    from jinja2 import Environment, StrictUndefined

    template = (files("negsample.train") / "model_card.md.j2").read_text(encoding="utf-8")
    pages = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    pages.filters["figure"] = figure_text
    told: dict[str, Any] = {
        "name": name,
        "head": parts.head,
        "encoder": parts.encoder["name"],
        "version": negsample.__version__,
    }
    told["labels"] = facts["data"].get("labels") or {"scores": ()}
    return pages.from_string(template).render(**told, part=describe_part(facts["data"]), **facts)


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
    try:
        return Accelerator(
            mixed_precision=config.mixed_precision,
            gradient_accumulation_steps=config.gradient_accumulation,
            kwargs_handlers=[patience],
        )
    except ValueError as error:
        raise InputError(
            f"mixed_precision={config.mixed_precision} can't be used here ({error}); set it to no"
        ) from None


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
        try:
            before = json.loads(run.read_text(encoding="utf-8"))["config"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{run}: damaged; give another folder") from None
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
        raise InputError(
            f"{out}: what was trained is whole, but {what} can't be made ({why}); mend that, and give the command again"
            " (train, reinforce: with --resume)"
        ) from error


def finish(accelerator: "Accelerator", config: Reading, out: Path, watch: Stopwatch, **facts: Any) -> None:
    """Write the log and, last, ``run.json`` of the run in ``out``, and forget the work."""
    shutil.copyfile(out / WORK / "training.jsonl", out / "training.jsonl")
    about = {"device": str(accelerator.device), "processes": accelerator.num_processes, "config": config.as_dict()}
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

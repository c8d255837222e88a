"""A whole training run: pairs → negatives → features → network → test figures → model folder."""

import contextlib
import ctypes
import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.resume import refuse_changes, work_folder
from negsample.io.run_record import Stopwatch, write_run
from negsample.models.build import Parts, make_network, new_parts, takes
from negsample.models.evaluation import as_json, by_kind, figures
from negsample.models.folder import read_description, save_folder
from negsample.models.percentiles import percentiles_of
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.processes import refuse_sharding
from negsample.train.config import TrainConfig
from negsample.train.data import SPLITS, Split, make_examples, open_split, prepare_split
from negsample.train.fit.checkpoint import print_line, read_epochs
from negsample.train.fit.loop import Callbacks, fit, predict
from negsample.train.model_card import model_card

if TYPE_CHECKING:
    from accelerate import Accelerator

WORK = "work"
# What took long to learn: checkpoints, and head ``align``'s judge and features.
_LEARNED = (f"{WORK}/checkpoint-*[0-9]", f"{WORK}/checkpoint.old", f"{WORK}/judge.pt", f"{WORK}/features/*.npz")

# mallopt's names for its parameters (malloc.h), their defaults, and what a run sets them to.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_DEFAULT, _TRIM, _MMAP = 128 << 10, 1 << 28, 1 << 25


def train(
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    smoke: bool = False,
    command: list[str] | None = None,
    callbacks: Callbacks | None = None,
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
    recipe = parse_recipe(config.recipe)
    # The recipe as it is, not the name of the file it came from, decides whether a run may be resumed.
    config = dataclasses.replace(config, recipe=dict(recipe.weights))
    loss = loss_of(config, recipe)
    accelerator = make_accelerator(config)

    def finished() -> Mapping[str, Any] | None:
        return read_description(out).get("training", {}) if (out / "config.json").exists() else None

    with contextlib.ExitStack() as held:
        settings, what = config.as_dict(), "a training run"
        if not hold_folder(accelerator, out, settings, finished, held, what=what, kept=_LEARNED, resume=resume):
            return None
        with own_state():
            facts = {"command": command, "smoke": smoke}
            return _run(accelerator, config, recipe, loss, out, watch, facts, callbacks or Callbacks(), notes)


def _run(
    accelerator: "Accelerator",
    config: TrainConfig,
    recipe: Recipe,
    loss: str,
    out: Path,
    watch: Stopwatch,
    facts: Mapping[str, Any],
    callbacks: Callbacks,
    notes: Sequence[str],
) -> dict[str, Any]:
    work = out / WORK
    parts = parts_of(config)
    on_main(accelerator, lambda: _prepare(config, recipe, parts, work), work)
    if accelerator.is_main_process:
        for note in notes:
            callbacks.say(note)
    splits = {name: open_split(work / name) for name in SPLITS}
    found = fit_and_test(accelerator, config, loss, parts, splits, work, callbacks.say, callbacks.after_epoch)
    if callbacks.after_fit is not None:
        held = splits["validation"]
        held_scores = scores_of(accelerator, config, parts, held, work, "validation")
        if accelerator.is_main_process:
            callbacks.after_fit(np.array(held.labels), held_scores)
    real = _real_outputs(accelerator, config, parts, splits, work)
    if not accelerator.is_main_process:
        accelerator.wait_for_everyone()
        return {}
    data = json.loads((work / "data.json").read_text(encoding="utf-8"))
    found["seconds"] = watch.seconds
    found["skipped"] = data["skipped_text"]
    atomic_json(out / "figures.json", found)
    shutil.copyfile(work / "training.jsonl", out / "training.jsonl")
    write_run(
        out / "run.json",
        watch,
        **facts,
        device=str(accelerator.device),
        processes=accelerator.num_processes,
        config=config.as_dict(),
        seed=config.seed,
        data=data,
        figures=found,
    )
    # config.json is written last and makes the folder a model; only then may the work be forgotten.
    corpora = f"held-out summaries of {', '.join(data['corpora'])}"
    save_model(parts, out, config, recipe, loss, data, found, percentiles_of(real, corpora))
    shutil.rmtree(work, ignore_errors=True)
    accelerator.wait_for_everyone()
    return found


def loss_of(config: TrainConfig, recipe: Recipe) -> str:
    """The loss that ``config`` names, or the recipe's own (Bao et al. 2021 §3.2); head ``align`` has one of its own.

    Raises InputError for a loss or a language model that the head can't have.
    """
    if takes(config.head) == "align":
        if config.loss is not None:
            raise InputError(f"loss={config.loss}: head align has a loss of its own (ranking and bce); leave loss out")
        return "ranking+bce"
    if config.lm is not None:
        raise InputError(f"lm={config.lm}: head {config.head} has no language model; leave lm out, or take head=align")
    return config.loss or ("mse" if recipe.graded else "bce")


def parts_of(config: TrainConfig) -> Parts:
    """Features, and the network where it needs no ``fit`` of them, as a resolved ``config`` says."""
    return new_parts(
        config.head,
        str(config.encoder),
        max_length=config.max_length,
        min_summary=config.min_summary,
        max_document=config.max_document,
        max_summary=config.max_summary,
        freeze=config.freeze_encoder,
        attention=config.attention,
        lm=config.lm,
        lm_prompt=config.lm_prompt,
        lm_tokens=config.lm_tokens,
        copy_lm=config.copy_lm,
        seed=config.seed,
    )


def fit_and_test(
    accelerator: "Accelerator",
    config: TrainConfig,
    loss: str,
    parts: Parts,
    splits: Mapping[str, Split],
    work: Path,
    say: Callable[[str], None] = print_line,
    after_epoch: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Train the network of ``parts`` on prepared ``splits`` and test it; the content of ``figures.json``.

    ``work`` holds the checkpoints and ``training.jsonl``; ``say`` is told each epoch's losses (default: printed), and
    ``after_epoch`` each epoch (from 0) and its validation loss.
    """
    test = splits["test"]
    facts = fit_parts(accelerator, config, loss, parts, splits, work, say, after_epoch)
    scores = scores_of(accelerator, config, parts, test, work)
    if not accelerator.is_main_process:
        return {}
    if takes(parts.head) == "align":
        from negsample.train.fit.align import ranking_on

        facts["ranking"] = ranking_on(parts, test, work, config.seed)
    return {
        "test": as_json(figures(test.labels, scores, test.document_of, seed=config.seed)),
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
    say: Callable[[str], None] = print_line,
    after_epoch: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Train the network of ``parts`` on the train and validation splits; ``epochs``, and what else the head tells.

    A network that ``parts`` have already (loaded from a model folder) is trained on. Arguments as of ``fit_and_test``.
    """
    if takes(parts.head) == "align":
        from negsample.train.fit.align import fit_align

        found = fit_align(accelerator, config, parts, splits, work, say, after_epoch)
        if not accelerator.is_main_process:
            return {}
        return {"epochs": read_epochs(work / "training.jsonl"), **found}
    # Padding is that of the corpus' own pairs.
    parts.features.fit(*splits["train"].units(np.flatnonzero(splits["train"].is_original)))
    network = make_network(parts, config.seed)
    train_split, held = splits["train"], splits["validation"]
    fit(accelerator, config, loss, network, parts.features, train_split, held, work, say, after_epoch)
    return {"epochs": read_epochs(work / "training.jsonl")} if accelerator.is_main_process else {}


def scores_of(
    accelerator: "Accelerator", config: TrainConfig, parts: Parts, split: Split, work: Path, name: str = "test"
) -> np.ndarray:
    """Scores float32 [n] in [0, 1] of trained ``parts`` on a split (on the main process; computed by all).

    Head ``align`` keeps the split's features in ``work/features`` as ``name``.
    """
    return _outputs_of(accelerator, config, parts, split, work, name)["score"]


def _outputs_of(
    accelerator: "Accelerator", config: TrainConfig, parts: Parts, split: Split, work: Path, name: str
) -> dict[str, np.ndarray]:
    """As ``scores_of``, ``score`` and each aspect that the head has."""
    if takes(parts.head) == "align":
        from negsample.train.fit.align import align_outputs

        return align_outputs(accelerator, parts, split, work, name)
    network = make_network(parts, config.seed)
    logits = predict(accelerator, network, parts.features, split, int(config.batch_size or 1))
    return {"score": torch.sigmoid(logits).numpy()}


def _real_outputs(
    accelerator: "Accelerator", config: TrainConfig, parts: Parts, splits: Mapping[str, Split], work: Path
) -> dict[str, np.ndarray]:
    """``score`` and each aspect of the original summaries of the splits that nothing was learnt from."""
    from negsample.train.fit.align import MOST_EXAMPLES, beginning

    found: dict[str, list[np.ndarray]] = {}
    for name in ("validation", "test"):
        # No further than what has been read for head ``align``.
        split = beginning(splits[name], MOST_EXAMPLES)
        for column, values in _outputs_of(accelerator, config, parts, split, work, name).items():
            found.setdefault(column, []).append(values[split.is_original[: len(values)]])
    return {column: np.concatenate(values) for column, values in found.items()}


def cut_of(parts: Parts, splits: Mapping[str, Split]) -> dict[str, dict[str, int]]:
    """For each split: its examples (``pairs``) and how many of them are longer than the model reads (``cut``)."""
    return {name: {"pairs": len(split), "cut": split.cut(parts.features)} for name, split in splits.items()}


def save_model(
    parts: Parts,
    out: Path,
    config: TrainConfig,
    recipe: Recipe,
    loss: str,
    data: Mapping[str, Any],
    found: Mapping[str, Any],
    percentiles: Mapping[str, Any] | None = None,
) -> None:
    """Write the trained ``parts`` as a model folder at ``out``, with what they were trained on and how well, and
    ``percentiles`` (``percentiles_of``)."""
    facts = {"recipe": str(recipe), "loss": loss, "training": config.as_dict(), "data": data, "figures": found}
    save_folder(parts, out, facts, model_card(out.name, parts, facts), percentiles)


def make_accelerator(config: TrainConfig) -> "Accelerator":
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


def on_main(accelerator: "Accelerator", job: Callable[[], Any], work: Path) -> None:
    """Run ``job`` on the main process; where it fails there, every process ends with an error instead of waiting."""
    failed: Exception | None = None
    if accelerator.is_main_process:
        try:
            job()
        except Exception as error:  # told to the others first, then raised
            failed = error
    flag = torch.tensor([1.0 if failed else 0.0], device=accelerator.device)
    stopped = float(accelerator.reduce(flag, "sum")) > 0
    if failed is not None:
        raise failed
    if stopped:
        raise InputError(f"{work}: the main process could not go on; its message says why")


def hold_folder(
    accelerator: "Accelerator",
    out: Path,
    config: Mapping[str, Any],
    finished: Callable[[], Mapping[str, Any] | None],
    held: contextlib.ExitStack,
    *,
    what: str,
    kept: Sequence[str],
    resume: bool,
) -> bool:
    """Whether there is work to do in ``out``, which ``held`` then holds for this run alone; False where it is finished.

    ``finished()``: the configuration of a run that is finished in ``out``, else None. ``what``, ``kept``: as of
    ``work_folder``, which keeps ``config`` in ``out/work``. Every process calls this. Raises InputError as ``work_folder``.
    """
    answer = [True]

    def look() -> None:
        before = finished() if resume else None
        if before is None:
            folder = work_folder(
                out, config, name=f"{WORK}/config.json", what=what, alone=True, makes=[WORK], kept=kept, resume=resume
            )
            held.enter_context(folder)
        else:
            refuse_changes(out, before, config)
            shutil.rmtree(out / WORK, ignore_errors=True)
            answer[0] = False

    on_main(accelerator, look, out)
    flag = torch.tensor([1.0 if accelerator.is_main_process and answer[0] else 0.0], device=accelerator.device)
    return float(accelerator.reduce(flag, "sum")) > 0


def _prepare(config: TrainConfig, recipe: Recipe, parts: Parts, work: Path) -> None:
    """Make the negatives and read every text, unless an earlier start has done so."""
    if not (work / "data.json").is_file():
        data = make_examples(config, recipe, work / "examples")
        atomic_json(work / "data.json", data)
    for name in SPLITS:
        prepare_split(work / "examples" / f"{name}.jsonl.gz", work / name, parts.features)


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """A random state of the run's own inside the block, and denormal numbers flushed to zero; the caller's after it.

    Vanishing gradients, and their squares in RMSProp, end as denormal numbers, with which a CPU is many times slower (an
    LSTM over 600 words: 0.17 s a step, 0.04 s without). Enter it before any heavy work: threads inherit the setting when
    they are started.

    Inside the block glibc also keeps the memory of freed tensors: by default it gives large ones back to the system and
    fetches them again, page by page, in every step (a quarter of the time of the ``fc`` and ``cnn`` heads).
    """
    torch.set_flush_denormal(True)
    _set_malloc(_TRIM, _MMAP)
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
            yield
    finally:
        torch.set_flush_denormal(False)
        _set_malloc(_DEFAULT, _DEFAULT)


def _set_malloc(trim: int, mmap: int) -> None:
    """Set glibc's thresholds, in bytes; other C libraries have no such call, and nothing happens."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, trim)
        mallopt(_MMAP_THRESHOLD, mmap)

"""Everything that decides a training run: one frozen dataclass, read by ``negsample.settings``."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from negsample.corpora.pairs import check_sample
from negsample.errors import InputError
from negsample.negatives import ASPECTS
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.registry import check_keys
from negsample.settings import Settings, make_settings, number, read_settings

_SPLITS = ("train_split", "validation_split", "test_split")


@dataclass(frozen=True)
class Reading(Settings):
    """What is read of which corpora.

    ``corpus`` (a name or a list), ``corpus_config`` (of one on the hub), the names of its fields, ``limit`` (pairs read
    from each corpus, the first), ``sample`` (of these a random number, or a share below 1; by ``seed``), ``on_bad``.

    ``train_split``, ``validation_split``, ``test_split``: the corpus' own splits by name (of Newsroom, a hub's corpus or a
    folder like one), ``limit`` and ``sample`` then of each; the held-out two may be corpora with a path or ending, and
    ``train_split`` left out where ``corpus`` is what is trained on. Without them documents are split anew, by ``seed``.
    """

    corpus: str | list[str] = "sample"
    corpus_config: str | None = None
    document_field: str | None = None
    summary_field: str | None = None
    limit: int | None = number(None, least=1)
    sample: int | float | None = None
    train_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    on_bad: Literal["stop", "skip"] = "stop"
    seed: int = number(0, least=0, most=2**63 - 1)

    def check(self) -> None:
        check_sample(self.sample, "sample")
        named = [split for split in self.splits if split]
        if len(set(named)) < len(named) or (named and not (self.validation_split and self.test_split)):
            raise InputError("train_split, validation_split, test_split: give at least the last two, and none twice")

    @property
    def splits(self) -> tuple[str | None, str | None, str | None]:
        """The corpus' own splits."""
        return self.train_split, self.validation_split, self.test_split

    def corpora(self) -> list[str]:
        """Return the corpora as a list."""
        return [self.corpus] if isinstance(self.corpus, str) else list(self.corpus)


@dataclass(frozen=True)
class Training(Reading):
    """What every training has beside; see ``TrainConfig``."""

    patience: int = number(3, least=1)
    gradient_accumulation: int = number(1, least=1)
    mixed_precision: Literal["no", "bf16", "fp16"] = "no"
    checkpoint_every: int = number(500, least=1)


@dataclass(frozen=True)
class TrainConfig(Training):
    """Everything that decides a training run. ``None`` means "what suits the head" (see ``resolved``).

    Data, of what ``Reading`` says: ``recipe`` (a kind, ``mix:FILE`` or a mapping kind → weight), ``negatives`` a pair,
    ``redraws`` (how many such sets of negatives the training split holds; each epoch sees the next of them), ``vocabulary``
    (``uniform`` or ``frequency``).

    Labels: ``labels`` (a file of documents, summaries and scores; then ``recipe`` is none by default, and with one the labels
    stand beside damaged copies of the corpus), ``label`` (the score to learn), ``aspects`` (aspect → score, head ``align``),
    as of ``read_labels``; ``label_weight``: how much a labelled summary counts beside a damaged one.

    Model: ``head``, ``encoder``; ``max_length`` (tokens of a pair, ``cls``) with ``min_summary`` (the tokens that a summary
    keeps in any case when both are cut); ``max_document``/``max_summary`` (rows, other heads; ``None`` = 80th percentile of
    the training split); ``units`` (of the recurrence, ``lstm``; ``None`` = 128 over sentences, 25 over words);
    ``freeze_encoder``; ``attention`` (``sdpa`` or ``eager``).

    Optimisation: ``loss`` (``bce``, ``mse``, ``ranking``; ``None`` = by recipe; of labels ``mse``, ``align`` ``ranking``),
    ``optimizer`` (``adamw``, ``rmsprop``), ``learning_rate``, ``weight_decay``, ``warmup`` (share of all steps), ``schedule``
    (``linear`` or ``constant``), ``epochs`` (at most), ``patience`` (epochs without a better validation loss), ``batch_size``
    (examples of one optimiser step over all processes), ``gradient_accumulation`` (parts that each step's batch is computed
    in), ``max_gradient_norm``, ``mixed_precision`` (``no``, ``bf16``, ``fp16``), ``checkpoint_every`` steps, ``log_examples``
    (write the ids each step saw to ``training.jsonl``). ``seed`` decides everything random.

    Head ``align`` alone: ``judges`` (fine-tune a judge of form and coherence, for ``judge_steps`` steps, and one of support,
    for ``support_steps``, which labels of support teach too; false: the frozen variant, trained in seconds), ``lm`` (a
    causal language model or an encoder–decoder: folder, hub id, ``gguf:FILE`` or ``packaged``; it reads the document too, in
    the frame ``lm_prompt`` and at most ``lm_tokens`` tokens of it, and speaks for all aspects; ``copy_lm``: the model folder
    gets a copy of it; refused with other heads), ``epochs: 0`` (the untrained sum, without a judge); ``batch_size`` counts
    documents; of the other settings of optimisation it heeds ``learning_rate``, ``epochs`` and ``patience``, and beside
    labels ``loss`` (not ``bce``).
    """

    recipe: str | dict[str, float] | None = None
    labels: str | None = None
    label: str | None = None
    aspects: dict[str, str] | None = None
    label_weight: float = number(1.0, above=0)
    negatives: int = number(1, least=1)
    redraws: int = number(1, least=1)
    vocabulary: Literal["uniform", "frequency"] = "uniform"
    head: str = "cls"
    encoder: str | None = None
    max_length: int = number(512, least=16)
    min_summary: int = number(128, least=1)
    max_document: int | None = number(None, least=1)
    max_summary: int | None = number(None, least=1)
    units: int | None = number(None, least=1)
    freeze_encoder: bool = False
    attention: Literal["sdpa", "eager"] = "sdpa"
    loss: Literal["bce", "mse", "ranking"] | None = None
    optimizer: Literal["adamw", "rmsprop"] | None = None
    # Their product is computed in float32.
    learning_rate: float | None = number(None, above=0, most=1e12)
    weight_decay: float | None = number(None, least=0, most=1e12)
    warmup: float | None = number(None, least=0, most=1)
    schedule: Literal["linear", "constant"] | None = None
    epochs: int | None = number(None, least=0)
    batch_size: int | None = number(None, least=1)
    max_gradient_norm: float = number(1.0, least=0)
    log_examples: bool = False
    judges: bool = True
    judge_steps: int = number(200, least=1)
    support_steps: int = number(150, least=1)
    lm: str | None = None
    lm_prompt: str | None = None
    lm_tokens: int = number(2048, least=1)
    copy_lm: bool = False

    def check(self) -> None:
        super().check()
        if self.redraws > 1 and self.head == "align":
            raise InputError("redraws: head align reads all negatives in every epoch; give negatives instead")
        if self.lm is not None and not self.lm.strip():
            raise InputError("lm must be the folder or hub id of a language model, or null")
        if self.epochs == 0 and self.head != "align":
            raise InputError("epochs must be at least 1, not 0")
        self._check_labels()

    def _check_labels(self) -> None:
        def given(*names: str) -> str | None:
            return next((name for name in names if getattr(self, name) != getattr(type(self), name)), None)

        if self.labels is None:
            if name := given("label", "aspects", "label_weight"):
                raise InputError(f"{name} goes with labels=FILE")
        elif self.recipe is None and (name := given("corpus", "corpus_config", "sample", *_SPLITS, "label_weight")):
            raise InputError(f"{name} beside labels says what is damaged: give recipe=… too, or leave it out")
        if self.aspects is not None:
            if self.head != "align":
                raise InputError(f"aspects: head {self.head} has one score; give label=NAME, or take head=align")
            check_keys(self.aspects, ASPECTS, "aspects")
            for aspect, name in self.aspects.items():
                if not isinstance(name, str) or not name:
                    raise InputError(
                        f"aspects: {aspect} is {name!r}; give the name of a score, as in {aspect}: relevance"
                    )

    def recipe_of(self) -> Recipe | None:
        """The recipe, read; None where labels alone are learned. Raises InputError as ``parse_recipe``."""
        if self.recipe is None and self.labels is not None:
            return None
        return parse_recipe("crosspair" if self.recipe is None else self.recipe)

    def resolved(self) -> "TrainConfig":
        """Return the configuration with every ``None`` that depends on the head filled in.

        The heads over frozen vectors follow Bao et al. (2021 §4.2): RMSProp, 0.001. ``cls`` departs from them: its encoder
        is fine-tuned (AdamW, small rate, warm-up).
        """
        fine_tuned = self.head == "cls" and not self.freeze_encoder
        names = ("optimizer", "learning_rate", "weight_decay", "warmup", "schedule", "epochs")
        frozen = ("rmsprop", 1e-3, 0.0, 0.0, "constant", 30)
        defaults: dict[str, Any] = dict(
            zip(names, ("adamw", 3e-5, 0.01, 0.1, "linear", 5) if fine_tuned else frozen, strict=True),
            encoder="minilm" if self.head == "cls" else "sentence-transformer",
            batch_size=16 if self.head == "cls" else 32,
        )
        if self.head == "align":
            defaults = {"encoder": "sentence-transformer", "learning_rate": 0.02, "epochs": 30, "batch_size": 64}
        missing = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        settled = dataclasses.replace(self, **missing)
        # A set beyond the last epoch would be made and never seen.
        return dataclasses.replace(settled, redraws=min(self.redraws, max(1, int(settled.epochs or 1))))


def make_config(values: Mapping[str, Any], where: str = "configuration") -> TrainConfig:
    """Return a checked configuration from plain values. Raises InputError as ``make_settings``."""
    return make_settings(TrainConfig, values, where)


def read_config(path: str | Path | None, words: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration of a YAML file (or the defaults), then ``key=value`` words, the later winning."""
    return read_settings(TrainConfig, path, words, "train")

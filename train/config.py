"""Training configuration: one frozen dataclass, read from YAML and ``key=value`` words; unknown keys are refused."""

import contextlib
import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.configs import find_config
from negsample.corpora.pairs import check_sample
from negsample.errors import InputError
from negsample.registry import check_keys


@dataclass(frozen=True)
class Optimisation:
    """The numbers of the training loop that depend on the head unless they are given; fields as in ``TrainConfig``."""

    optimizer: str
    learning_rate: float
    weight_decay: float
    warmup: float
    schedule: str
    epochs: int
    batch_size: int


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run. ``None`` means "what suits the head" (see ``resolved``).

    Data: ``corpus`` (a name or a list), ``recipe`` (a kind, ``mix:FILE`` or a mapping kind → weight), ``negatives`` a
    pair, ``redraws`` (how many such sets of negatives the training split holds; each epoch sees the next of them),
    ``limit`` (pairs read from each corpus, the first), ``sample`` (of these a random number, or a share below 1), field names
    as in ``negsample generate``, ``vocabulary`` (``uniform`` or ``frequency``), ``on_bad`` (``stop`` or ``skip``).

    Model: ``head``, ``encoder``; ``max_length`` (tokens of a pair, ``cls``) with ``min_summary`` (the tokens that a
    summary keeps in any case when both are cut); ``max_document``/``max_summary`` (rows, other heads; ``None`` = 80th
    percentile of the training split); ``freeze_encoder``; ``attention`` (``sdpa`` or ``eager``).

    Optimisation: ``loss`` (``bce``, ``mse``, ``ranking``; ``None`` = by recipe),
    ``optimizer`` (``adamw``, ``rmsprop``), ``learning_rate``,
    ``weight_decay``, ``warmup`` (share of all steps), ``schedule`` (``linear`` or ``constant``), ``epochs`` (at most),
    ``patience`` (epochs without a better validation loss), ``batch_size`` (examples of one optimiser step over all
    processes), ``gradient_accumulation`` (parts that each step's batch is computed in), ``max_gradient_norm``,
    ``mixed_precision`` (``no``, ``bf16``, ``fp16``), ``checkpoint_every`` steps, ``log_examples`` (write the ids each
    step saw to ``training.jsonl``). ``seed`` decides everything random.

    Head ``align`` alone: ``judges`` (fine-tune a judge of form and coherence, for ``judge_steps`` steps; false: the frozen
    variant, trained in seconds), ``lm`` (a causal language model or an encoder–decoder: folder, hub id, ``gguf:FILE`` or
    ``packaged``; it reads the document too, in the frame ``lm_prompt`` and at most ``lm_tokens`` tokens of it, and speaks
    for all aspects; ``copy_lm``: the model folder gets a copy of it; refused with other heads), ``epochs: 0`` (the
    untrained sum, without a judge); ``batch_size`` counts documents; of the other settings of optimisation it heeds
    ``learning_rate``, ``epochs`` and ``patience``.
    """

    corpus: str | list[str] = "sample"
    recipe: str | dict[str, float] = "crosspair"
    negatives: int = 1
    redraws: int = 1
    limit: int | None = None
    sample: int | float | None = None
    document_field: str | None = None
    summary_field: str | None = None
    corpus_config: str | None = None
    vocabulary: str = "uniform"
    on_bad: str = "stop"
    head: str = "cls"
    encoder: str | None = None
    max_length: int = 512
    min_summary: int = 128
    max_document: int | None = None
    max_summary: int | None = None
    freeze_encoder: bool = False
    attention: str = "sdpa"
    loss: str | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    warmup: float | None = None
    schedule: str | None = None
    epochs: int | None = None
    patience: int = 3
    batch_size: int | None = None
    gradient_accumulation: int = 1
    max_gradient_norm: float = 1.0
    mixed_precision: str = "no"
    checkpoint_every: int = 500
    log_examples: bool = False
    judges: bool = True
    judge_steps: int = 200
    lm: str | None = None
    lm_prompt: str | None = None
    lm_tokens: int = 2048
    copy_lm: bool = False
    seed: int = 0

    def resolved(self) -> "TrainConfig":
        """Return the configuration with every ``None`` that depends on the head filled in.

        The heads over frozen vectors follow Bao et al. (2021 §4.2): RMSProp, 0.001. ``cls`` departs from them: its encoder
        is fine-tuned (AdamW, small rate, warm-up).
        """
        fine_tuned = self.head == "cls" and not self.freeze_encoder
        defaults: dict[str, Any] = {
            "encoder": "minilm" if self.head == "cls" else "sentence-transformer",
            "optimizer": "adamw" if fine_tuned else "rmsprop",
            "learning_rate": 3e-5 if fine_tuned else 1e-3,
            "weight_decay": 0.01 if fine_tuned else 0.0,
            "warmup": 0.1 if fine_tuned else 0.0,
            "schedule": "linear" if fine_tuned else "constant",
            "epochs": 5 if fine_tuned else 30,
            "batch_size": 16 if self.head == "cls" else 32,
        }
        if self.head == "align":
            defaults = {"encoder": "sentence-transformer", "learning_rate": 0.02, "epochs": 30, "batch_size": 64}
        missing = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        settled = dataclasses.replace(self, **missing)
        # A set beyond the last epoch would be made and never seen.
        return dataclasses.replace(settled, redraws=min(self.redraws, max(1, int(settled.epochs or 1))))

    def optimisation(self) -> Optimisation:
        """What the loop goes by, every number settled."""
        settled = self.resolved()
        return Optimisation(**{field.name: getattr(settled, field.name) for field in dataclasses.fields(Optimisation)})

    def corpora(self) -> list[str]:
        """The corpora as a list."""
        return [self.corpus] if isinstance(self.corpus, str) else list(self.corpus)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they go to YAML and JSON."""
        return dataclasses.asdict(self)


CHOICES: dict[str, tuple[str, ...]] = {
    "vocabulary": ("uniform", "frequency"),
    "on_bad": ("stop", "skip"),
    "attention": ("sdpa", "eager"),
    "loss": ("bce", "mse", "ranking"),
    "optimizer": ("adamw", "rmsprop"),
    "schedule": ("linear", "constant"),
    "mixed_precision": ("no", "bf16", "fp16"),
}
# Smallest allowed value of each number.
_AT_LEAST: dict[str, float] = {
    "negatives": 1,
    "redraws": 1,
    "limit": 1,
    "max_length": 16,
    "min_summary": 1,
    "max_document": 1,
    "max_summary": 1,
    "weight_decay": 0,
    "warmup": 0,
    "epochs": 0,
    "judge_steps": 1,
    "patience": 1,
    "batch_size": 1,
    "gradient_accumulation": 1,
    "max_gradient_norm": 0,
    "checkpoint_every": 1,
}
_TYPES = typing.get_type_hints(TrainConfig)
# What only a file for another command holds (key, type), and that command. A text "heads: fc" is a slip for "head: fc".
_OTHER_COMMANDS: dict[tuple[str, type], str] = {
    ("sources", dict): "transfer",
    ("space", dict): "tune",
    ("policy", str): "reinforce",
    ("table", str): "tables",
    ("encoders", list): "tables",
    ("heads", list): "tables",
}


def convert(value: Any, kind: Any, at: str, choices: Sequence[str] = ()) -> Any:
    """Return ``value`` as the type ``kind``, such as ``int | None``. Raises InputError, which begins with ``at``."""
    kinds = (kind,) if typing.get_origin(kind) is list else typing.get_args(kind) or (kind,)
    allowed = [typing.get_origin(one) or one for one in kinds]
    texts = not isinstance(value, list) or (value and all(isinstance(item, str) for item in value))
    if type(value) in allowed and texts:
        return value
    # YAML 1.1 reads "no" as false, and "3e-5" as text.
    if value is False and "no" in choices:
        return "no"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in allowed and (number or isinstance(value, str)):
        with contextlib.suppress(ValueError):
            return float(value)
    if str in allowed and number:
        return str(value)
    names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
    raise InputError(f"{at} must be {names}, not {value!r}")


def make_config(values: Mapping[str, Any], where: str = "configuration") -> TrainConfig:
    """Return a checked configuration from plain values.

    Raises InputError for an unknown key (with the nearest known one), a wrong type, or a value out of range.
    """
    check_keys(values, _TYPES, where)
    checked = {
        key: convert(value, _TYPES[key], f"{where}: {key}", CHOICES.get(key, ())) for key, value in values.items()
    }
    for key, value in checked.items():
        if value is None:
            continue
        if key in CHOICES and value not in CHOICES[key]:
            raise InputError(f"{where}: {key} must be one of {', '.join(CHOICES[key])}, not {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where}: {key} must be a finite number, not {value!r}")
        if key == "sample":
            check_sample(value, f"{where}: sample")
        if key in _AT_LEAST and value < _AT_LEAST[key]:
            raise InputError(f"{where}: {key} must be at least {_AT_LEAST[key]}, not {value!r}")
    config = TrainConfig(**checked)
    if config.redraws > 1 and config.head == "align":
        raise InputError(f"{where}: head align reads all negatives in every epoch; give negatives instead of redraws")
    if config.lm is not None and not config.lm.strip():
        raise InputError(f"{where}: lm must be the folder or hub id of a language model, or null")
    if config.epochs == 0 and config.head != "align":
        raise InputError(f"{where}: epochs must be at least 1, not 0")
    if config.learning_rate is not None and config.learning_rate <= 0:
        raise InputError(f"{where}: learning_rate must be above 0, not {config.learning_rate!r}")
    if config.warmup is not None and config.warmup > 1:
        raise InputError(f"{where}: warmup is a share of all steps and must lie in [0, 1], not {config.warmup!r}")
    return config


def read_values(path: str | Path) -> dict[str, Any]:
    """Return the ``key: value`` lines of a YAML file, or of a packaged one by its bare name (``p3_table3_transfer``).

    Raises InputError where there is no such file, or it holds something else.
    """
    from negsample.io.yaml_text import read_mapping

    return read_mapping(find_config(path), str(path))


def word_values(words: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` words as a mapping, their values read as YAML. Raises InputError for a word without ``=``."""
    import yaml

    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"{word!r}: expected key=value, such as limit=500")
        try:
            values[key.strip()] = yaml.safe_load(text) if text.strip() else None
        except yaml.YAMLError:
            values[key.strip()] = text
    return values


def read_config(path: str | Path | None, words: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration of a YAML file (or the defaults), then ``key=value`` words, the later winning.

    Values of words are read as YAML: ``limit=500``, ``corpus=[a.jsonl,b.jsonl]``, ``loss=null``. Raises InputError, for a
    file that another command reads with that command's name.
    """
    if path is None:
        return make_config(word_values(words), "key=value")
    values = read_values(path)
    for (key, kind), command in _OTHER_COMMANDS.items():
        if isinstance(values.get(key), kind):
            if command == "tables":
                command = f"tables {values.get('table', 'TABLE')}"
            raise InputError(f"{path}: is not for train (it has {key!r}); run negsample {command} --config {path} …")
    make_config(values, str(path))
    return make_config({**values, **word_values(words)}, f"{path} with {' '.join(words)}" if words else str(path))

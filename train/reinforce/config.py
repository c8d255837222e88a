"""Settings of ``negsample reinforce``: one frozen dataclass, read from YAML and ``key=value`` words."""

import dataclasses
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.summarizers.budget import Budget
from negsample.registry import check_keys
from negsample.train.config import convert, read_values, word_values

_POLICIES = ("extract", "abstract")
_LENGTHS = ("free", "partial")
# What the trained one is compared with.
OTHERS = ("start", "lead", "oracle")
_BAND = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class ReinforceConfig:
    """Everything that decides a training by a reward.

    Data: ``corpus`` (as of ``train``), ``limit``, ``document_field``, ``summary_field``, ``on_bad``; ``references: false``
    for a corpus of documents alone; ``unsupervised``, a further corpus of which only the documents are read, and
    ``unsupervised_share`` of each epoch's documents that come from it (Scialom et al. 2019 §4.2.2: 0.5);
    ``validation_share`` and ``test_share`` of the documents. ``headlines`` (Moeed et al. 2020): of a document only the first
    five sentences, of a summary the first line (the first sentence, where it is one line), left out where it has fewer than
    ``headline_characters``.

    Policy: ``policy``, ``extract`` (whole sentences, by their vectors from ``encoder``, within ``words`` words or
    ``sentences`` sentences) or ``abstract`` (``model``: folder or hub id of a sequence-to-sequence or causal language model;
    ``document_tokens`` that it reads, ``summary_tokens`` that it writes at most, ``prompt`` that stands between document
    and summary of a causal one; at the test beam search with ``beams``, or, where ``top_k`` is given, a draw from so many
    tokens at each step).

    Reward: ``reward`` (what ``negsample.rewards.reward`` takes), ``length`` (``free``, ``partial``, or a band of words such
    as ``30-80``); ``oracle``, the reward that the extracts are looked for by which an extractor learns before.

    Training: ``ml_epochs`` of maximum likelihood, then ``epochs`` of the mixed loss with weight ``gamma`` of the reward,
    rising to ``gamma_end`` where that is given (without references: 1); ``samples`` a document; ``ml_learning_rate``,
    ``learning_rate``; ``patience`` (epochs without a better validation), ``batch_size`` (documents of a step over all
    processes), ``gradient_accumulation`` (parts that each step's batch is computed in), ``max_gradient_norm``,
    ``mixed_precision``, ``checkpoint_every`` steps, ``seed``.

    Test: ``system``, what the trained one is called there; ``metrics`` of the table (those of Clark et al. 2019, Table 4,
    without a download).
    """

    corpus: str | list[str] = "sample"
    limit: int | None = None
    document_field: str | None = None
    summary_field: str | None = None
    on_bad: str = "stop"
    references: bool = True
    unsupervised: str | None = None
    unsupervised_share: float = 0.5
    validation_share: float = 0.1
    test_share: float = 0.1
    headlines: bool = False
    headline_characters: int = 0
    policy: str = "extract"
    encoder: str = "sentence-transformer"
    words: int | None = None
    sentences: int | None = None
    model: str | None = None
    document_tokens: int = 512
    summary_tokens: int = 100
    prompt: str = "\nTL;DR:"
    beams: int = 5
    top_k: int = 0
    reward: str = "rougeL(against=references)"
    length: str = "free"
    oracle: str = "rougeL(against=references)"
    ml_epochs: int = 3
    epochs: int = 10
    gamma: float = 0.97
    gamma_end: float | None = None
    samples: int = 1
    ml_learning_rate: float | None = None
    learning_rate: float | None = None
    patience: int = 3
    batch_size: int = 16
    gradient_accumulation: int = 1
    max_gradient_norm: float = 2.0
    mixed_precision: str = "no"
    checkpoint_every: int = 100
    seed: int = 0
    system: str = "trained"
    metrics: list[str] = dataclasses.field(default_factory=lambda: ["rouge1", "rouge2", "rougeL", "words"])

    def resolved(self) -> "ReinforceConfig":
        """The configuration with what depends on other settings filled in."""
        extract = self.policy == "extract"
        return dataclasses.replace(
            self,
            sentences=3 if extract and self.words is None and self.sentences is None else self.sentences,
            ml_epochs=self.ml_epochs if self.references else 0,
            gamma=self.gamma if self.references else 1.0,
            gamma_end=self.gamma_end if self.references else None,
            ml_learning_rate=self.ml_learning_rate or (1e-3 if extract else 5e-5),
            learning_rate=self.learning_rate or (1e-3 if extract else 1e-5),
        )

    @property
    def band(self) -> tuple[int, int] | None:
        """Fewest and most words, where ``length`` is a band."""
        found = _BAND.fullmatch(self.length)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def budget(self) -> Budget:
        """The extractor's."""
        return Budget(self.words, self.sentences)

    def corpora(self) -> list[str]:
        """The corpora as a list."""
        return [self.corpus] if isinstance(self.corpus, str) else list(self.corpus)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they go to JSON."""
        return dataclasses.asdict(self)


_CHOICES: dict[str, tuple[str, ...]] = {
    "policy": _POLICIES,
    "on_bad": ("stop", "skip"),
    "mixed_precision": ("no", "bf16", "fp16"),
}
_AT_LEAST: dict[str, float] = {
    "limit": 1, "words": 1, "sentences": 1, "document_tokens": 8, "summary_tokens": 2, "beams": 1, "ml_epochs": 0,
    "epochs": 0, "gamma": 0, "gamma_end": 0, "samples": 1, "ml_learning_rate": 1e-12, "learning_rate": 1e-12,
    "patience": 1, "batch_size": 1, "gradient_accumulation": 1, "max_gradient_norm": 0, "checkpoint_every": 1,
    "unsupervised_share": 0, "headline_characters": 0, "top_k": 0,
}  # fmt: skip
_TYPES = typing.get_type_hints(ReinforceConfig)


def make_reinforce_config(values: Mapping[str, Any], where: str = "configuration") -> ReinforceConfig:
    """A checked configuration from plain values.

    Raises InputError for an unknown key (with the nearest known one), a wrong type, a value out of range, and settings
    that contradict each other.
    """
    check_keys(values, _TYPES, where)
    checked = {
        key: convert(value, _TYPES[key], f"{where}: {key}", _CHOICES.get(key, ())) for key, value in values.items()
    }
    for key, value in checked.items():
        if key in _CHOICES and value not in _CHOICES[key]:
            raise InputError(f"{where}: {key} must be one of {', '.join(_CHOICES[key])}, not {value!r}")
        if key in _AT_LEAST and value is not None and not value >= _AT_LEAST[key]:
            raise InputError(f"{where}: {key} must be at least {_AT_LEAST[key]:g}, not {value!r}")
    config = ReinforceConfig(**checked)
    for key in ("gamma", "gamma_end"):
        if (getattr(config, key) or 0) > 1:
            raise InputError(f"{where}: {key} is a share and must lie in [0, 1], not {getattr(config, key)!r}")
    if not 0 < config.unsupervised_share < 1:
        raise InputError(f"{where}: unsupervised_share must lie between 0 and 1, not {config.unsupervised_share!r}")
    if not 0 < config.validation_share < 1 or not 0 < config.test_share < 1 - config.validation_share:
        raise InputError(f"{where}: validation_share and test_share are above 0, and leave something for training")
    if config.length not in _LENGTHS and config.band is None:
        raise InputError(f"{where}: length must be free, partial or a band of words such as 30-80")
    if config.policy == "extract":
        if config.words is not None and config.sentences is not None:
            raise InputError(f"{where}: give words or sentences, not both")
        if config.model is not None:
            raise InputError(f"{where}: model goes with policy=abstract; leave it out")
    elif config.model is None:
        raise InputError(f"{where}: policy=abstract needs model=FOLDER or a hub id such as facebook/bart-base")
    elif config.words is not None or config.sentences is not None:
        raise InputError(f"{where}: words and sentences go with policy=extract; give summary_tokens")
    if not config.references and config.unsupervised is not None:
        raise InputError(f"{where}: references=false means that all documents are without; leave unsupervised out")
    if config.system in OTHERS or not config.system.strip():
        raise InputError(f"{where}: system={config.system!r} is the name of another one; give a name of its own")
    if not config.ml_epochs + config.epochs:
        raise InputError(f"{where}: ml_epochs and epochs are both 0; nothing would be trained")
    return config


def read_reinforce_config(path: str | Path | None, words: Sequence[str] = ()) -> ReinforceConfig:
    """The configuration of a YAML file (or the defaults), then ``key=value`` words, the later winning.

    Raises InputError as ``make_reinforce_config``, and where the file can't be read.
    """
    given = word_values(words)
    if path is None:
        return make_reinforce_config(given, "key=value")
    values = read_values(path)
    make_reinforce_config(values, str(path))
    return make_reinforce_config({**values, **given}, f"{path} with {' '.join(words)}" if words else str(path))

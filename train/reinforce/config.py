"""Settings of ``negsample reinforce``: one frozen dataclass, read by ``negsample.settings``."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal

from negsample.errors import InputError
from negsample.models.summarizers import Budget
from negsample.settings import number
from negsample.train.config import Training

# What the trained one is compared with.
OTHERS = ("start", "lead", "oracle")
_BAND = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class ReinforceConfig(Training):
    """Everything that decides a training by a reward.

    Data: what is read, as of ``train``; ``references: false`` for a corpus of documents alone; ``unsupervised``, a
    further corpus (or one of the corpus' own splits, by its name) of which only the documents are read, and
    ``unsupervised_share`` of each epoch's documents that come from it (Scialom et al. 2019 §4.2.2: 0.5);
    ``validation_share`` and ``test_share`` of the documents, where these are split anew.
    ``headlines`` (Moeed et al. 2020): of a document only the first five sentences, of a summary the first line (the
    first sentence, where it is one line), left out where it has fewer than ``headline_characters``.

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

    references: bool = True
    unsupervised: str | None = None
    unsupervised_share: float = number(0.5, above=0, below=1)
    validation_share: float = number(0.1, above=0, below=1)
    test_share: float = number(0.1, above=0, below=1)
    headlines: bool = False
    headline_characters: int = number(0, least=0)
    policy: Literal["extract", "abstract"] = "extract"
    encoder: str = "sentence-transformer"
    words: int | None = number(None, least=1)
    sentences: int | None = number(None, least=1)
    model: str | None = None
    document_tokens: int = number(512, least=8)
    summary_tokens: int = number(100, least=2)
    prompt: str = "\nTL;DR:"
    beams: int = number(5, least=1)
    top_k: int = number(0, least=0)
    reward: str = "rougeL(against=references)"
    length: str = "free"
    oracle: str = "rougeL(against=references)"
    ml_epochs: int = number(3, least=0)
    epochs: int = number(10, least=0)
    gamma: float = number(0.97, least=0, most=1)
    gamma_end: float | None = number(None, least=0, most=1)
    samples: int = number(1, least=1)
    ml_learning_rate: float | None = number(None, above=0, most=1e12)
    learning_rate: float | None = number(None, above=0, most=1e12)
    batch_size: int = number(16, least=1)
    max_gradient_norm: float = number(2.0, least=0)
    checkpoint_every: int = number(100, least=1)
    system: str = "trained"
    metrics: list[str] = dataclasses.field(default_factory=lambda: ["rouge1", "rouge2", "rougeL", "words"])

    def check(self) -> None:
        super().check()
        if self.validation_share + self.test_share >= 1:
            raise InputError("validation_share and test_share leave nothing for training; their sum must be below 1")
        if self.length not in ("free", "partial") and self.band is None:
            raise InputError("length must be free, partial or a band of words such as 30-80")
        if self.policy == "extract":
            if self.words is not None and self.sentences is not None:
                raise InputError("words and sentences: give one, not both")
            if self.model is not None:
                raise InputError("model goes with policy=abstract; leave it out")
        elif self.model is None:
            raise InputError("policy=abstract needs model=FOLDER or a hub id such as facebook/bart-base")
        elif self.words is not None or self.sentences is not None:
            raise InputError("words and sentences go with policy=extract; give summary_tokens")
        if not self.references and self.unsupervised is not None:
            raise InputError("references=false means that all documents are without; leave unsupervised out")
        if self.system in OTHERS or not self.system.strip():
            raise InputError(f"system={self.system!r} is the name of another one; give a name of its own")
        if not self.ml_epochs + self.epochs:
            raise InputError("ml_epochs and epochs are both 0; nothing would be trained")

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

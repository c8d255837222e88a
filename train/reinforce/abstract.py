"""A language model as a policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from negsample.models.summarizers.language_model import LanguageSummarizer
from negsample.train.reinforce.policy import Source


class AbstractPolicy:
    """A sequence-to-sequence or causal language model; its targets are the tokens of the first reference."""

    def __init__(self, summarizer: LanguageSummarizer) -> None:
        self.summarizer = summarizer
        self.network: nn.Module = summarizer.network

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """As ``Policy.inputs``."""
        return self.summarizer.inputs([source.document for source in sources])

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """As ``Policy.targets``."""
        return self.summarizer.targets([source.references[0] if source.references else None for source in sources])

    def sample(self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...]) -> Tensor:
        """As ``Policy.sample``; a document's draw does not depend on the others."""
        return self.summarizer.decode(inputs, numbers=self.summarizer.numbers([(*draw, s.id) for s in sources]))

    def greedy(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """As ``Policy.greedy``."""
        return self.summarizer.decode(inputs)

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """As ``Policy.texts``."""
        return self.summarizer.texts(sequences)

    def summarize(self, documents: Sequence[str]) -> list[str]:
        """As ``Policy.summarize``: by beam search."""
        return self.summarizer.summarize(documents)

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """As ``Policy.save``."""
        self.summarizer.save(folder, facts)

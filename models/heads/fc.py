"""Fully connected head (Bao et al. 2021 §4.2): the frame flattened → 128 → 1."""

from torch import Tensor, nn

from negsample.models.heads.frame import framed, masked


class Fc(nn.Module):
    """logit = w · ReLU(W x + b) + c, where x is the frame [max_document + max_summary, dim] read row by row."""

    takes = "rows"

    def __init__(self, dim: int, max_document: int, max_summary: int, hidden: int = 128) -> None:
        super().__init__()
        self.max_document = max_document
        self.max_summary = max_summary
        self.hidden = nn.Linear((max_document + max_summary) * dim, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, document: Tensor, summary: Tensor, document_mask: Tensor, summary_mask: Tensor) -> Tensor:
        """Return logits [B] of document rows [B, N, dim] and summary rows [B, M, dim] with their masks."""
        frame = framed(
            masked(document, document_mask),
            self.max_document - document.shape[1],
            masked(summary, summary_mask),
            self.max_summary - summary.shape[1],
        )
        return self.output(self.hidden(frame.flatten(1)).relu()).squeeze(-1)

"""Fully connected head (P3 §4.2; SPEC §4): the frame flattened → 128 → 1."""

from torch import Tensor, nn

from negsample.models.heads.frame import check_lengths, framed, masked


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
        """Logits [B] of document rows [B, N, dim] and summary rows [B, M, dim] with their masks.

        Raises ValueError where N or M is more than the frame has.
        """
        check_lengths(document, summary, self.max_document, self.max_summary)
        frame = framed(
            masked(document, document_mask),
            self.max_document - document.shape[1],
            masked(summary, summary_mask),
            self.max_summary - summary.shape[1],
        )
        return self.output(self.hidden(frame.flatten(1)).relu()).squeeze(-1)

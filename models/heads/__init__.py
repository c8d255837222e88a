"""Networks over encoded texts: features in, a logit out.

A head over rows (``takes = "rows"``) is a ``torch.nn.Module`` made by ``Head(dim, max_document, max_summary, unit)``, where
``unit`` says what a row stands for ("sentence" or "word"), and called with
``(document [B, N, d], summary [B, M, d], document_mask [B, N], summary_mask [B, M]) -> logits [B]``.
N and M may be anything up to the maxima. A mask is true for the real rows, which come first; what stands in the other
rows never changes a score. Weights come from torch's current generator.
"""

from negsample.registry import Registry

HEADS = Registry(
    "head",
    {
        "fc": "negsample.models.heads.bao:Fc",
        "cnn": "negsample.models.heads.bao:Cnn",
        "lstm": "negsample.models.heads.bao:Lstm",
        "cls": "negsample.models.heads.bao:Cls",
        "align": "negsample.models.heads.align:Align",
    },
)

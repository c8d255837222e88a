"""Networks over encoded texts: features in, a logit out.

A head over rows (``takes = "rows"``) is a ``torch.nn.Module`` made by ``Head(dim, max_document, max_summary, ...)`` and
called with ``(document [B, N, d], summary [B, M, d], document_mask [B, N], summary_mask [B, M]) -> logits [B]``.
N and M may be anything up to the maxima. A mask is true for the real rows, which come first; what stands in the other
rows never changes a score.
"""

import inspect
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.registry import Registry, suggestion

if TYPE_CHECKING:
    from torch import nn

HEADS = Registry(
    "head",
    {
        "fc": "negsample.models.heads.rows:Fc",
        "cnn": "negsample.models.heads.rows:Cnn",
        "lstm": "negsample.models.heads.rows:Lstm",
        "cls": "negsample.models.heads.cls:Cls",
        "align": "negsample.models.heads.align:Align",
    },
)


def make_rows_head(
    name: str, dim: int, max_document: int, max_summary: int, unit: str = "sentence", **options: Any
) -> "nn.Module":
    """The head ``name`` over rows ``dim`` wide; ``unit`` (what a row stands for) is passed to a head that takes it.

    Weights come from torch's current generator. Raises InputError where there is no such head, it does not take rows,
    or an option is not one of its own.
    """
    factory = HEADS.get(name)
    if getattr(factory, "takes", None) != "rows":
        raise InputError(f"head {name!r} does not take encoded rows; choose another head or leave the encoder out")
    accepted = inspect.signature(factory).parameters
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        own = sorted(set(accepted) - {"dim", "max_document", "max_summary", "unit"})
        for option in options:
            if option not in own:
                raise InputError(f"head {name!r} has no option {option!r}; {suggestion(option, own)}")
    if "unit" in accepted:
        options["unit"] = unit
    return factory(dim, max_document, max_summary, **options)

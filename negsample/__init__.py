"""negsample: supervised, reference-free estimators of summary quality, and how well they agree with people."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Estimator", "ScoreBatches", "__version__", "assert_quality"]

if TYPE_CHECKING:
    from negsample.models.dataframe import ScoreBatches, assert_quality
    from negsample.models.estimator import Estimator

_HOMES = {"Estimator": "estimator", "ScoreBatches": "dataframe", "assert_quality": "dataframe"}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, and most of the package does not need it.
    if name not in _HOMES:
        raise AttributeError(f"module 'negsample' has no attribute {name!r}")
    return getattr(import_module(f"negsample.models.{_HOMES[name]}"), name)

"""negsample: supervised, reference-free estimators of summary quality, and how well they agree with people."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Estimator", "ScoreBatches", "__version__", "assert_quality"]

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator
    from negsample.models.frames import ScoreBatches
    from negsample.models.quality import assert_quality


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, and most of the package does not need it.
    if name == "Estimator":
        from negsample.models.estimator import Estimator

        return Estimator
    if name == "ScoreBatches":
        from negsample.models.frames import ScoreBatches

        return ScoreBatches
    if name == "assert_quality":
        from negsample.models.quality import assert_quality

        return assert_quality
    raise AttributeError(f"module 'negsample' has no attribute {name!r}")

"""Systems that write summaries: an extractor over sentence vectors, and language models."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.models.summarizers.extractor import Extractor
    from negsample.models.summarizers.language_model import LanguageSummarizer


def load_summarizer(model: str) -> "Extractor | LanguageSummarizer":
    """The summarizer in a folder (``negsample reinforce`` writes them), or a language model by folder or hub id.

    Raises InputError where there is none, or it can't be read.
    """
    from negsample.models.summarizers.extractor import KIND, Extractor
    from negsample.models.summarizers.language_model import LanguageSummarizer

    path = Path(model).expanduser() / "config.json"
    if path.is_file():
        try:
            kind = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise InputError(f"{path}: damaged; copy the model again") from None
        if kind.get("model_type") == KIND:
            return Extractor.load(path.parent)
        if "head" in kind:
            raise InputError(f"{model}: is an estimator, which scores summaries and writes none")
    return LanguageSummarizer.load(model)

"""A running report on what a policy gets its reward for."""

from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from negsample.text import word_tokens

# Outputs that the report looks back on.
_WINDOW = 2000


class Watch:
    """Remembers the last 2,000 outputs: reward, number of words, and whether each was empty, a repeat, or a loop."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, float, bool, bool, bool]] = deque(maxlen=_WINDOW)
        self.outputs = 0
        self.undefined = 0

    def add(
        self, documents: Sequence[str], summaries: Sequence[str], values: np.ndarray, words: np.ndarray, undefined: int
    ) -> None:
        """Take in n outputs with their rewards [n] (NaN where there is none) and numbers of words [n]."""
        times = Counter(zip(documents, summaries, strict=True))
        self.outputs += len(summaries)
        self.undefined += undefined
        for document, summary, value, count in zip(documents, summaries, values.tolist(), words.tolist(), strict=True):
            again = times[document, summary] > 1
            self._rows.append((value, count, not summary.strip(), again, loops(summary)))

    def report(self) -> dict[str, float | None]:
        """Mean and spread of the reward, its correlation with the number of words, mean number of words, and shares.

        ``empty``: outputs without text; ``repeated``: those that came more than once for a document in one call;
        ``looping``: those half of whose three-word runs, or more, have stood in them before. None where undefined.
        """
        rows = np.array(self._rows, np.float64).reshape(-1, 5)
        good = rows[~np.isnan(rows[:, 0])]
        varied = len(good) > 1 and good[:, 0].std() > 1e-12 and good[:, 1].std() > 1e-12
        return {
            "mean": float(good[:, 0].mean()) if len(good) else None,
            "spread": float(good[:, 0].std(ddof=1)) if len(good) > 1 else None,
            "correlation_with_words": float(np.corrcoef(good[:, 0], good[:, 1])[0, 1]) if varied else None,
            "words": float(rows[:, 1].mean()) if len(rows) else None,
            **{
                name: float(rows[:, column].mean()) if len(rows) else None
                for column, name in enumerate(("empty", "repeated", "looping"), start=2)
            },
            "undefined": self.undefined / self.outputs if self.outputs else None,
        }


def loops(text: str) -> bool:
    """Whether half of the three-word runs of ``text``, or more, have stood in it before."""
    words = word_tokens(text)
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return len(runs) > 1 and 2 * len(set(runs)) <= len(runs)

"""An estimator on a file of examples: figures by the kind of label, and agreement with labels that were given."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.figures import agreement
from negsample.eval.agreement.levels import MAIN_COEFFICIENT, make_table
from negsample.io.read import read_examples
from negsample.models.estimator import Estimator
from negsample.models.evaluation import by_kind, figures
from negsample.records import LABELLED, Example
from negsample.scoring.files import chunks
from negsample.terminal import Bar
from negsample.text import word_count

_LEVELS = ("summary", "pooled")


def evaluate(estimator: Estimator, examples: str, *, batch_size: int = 32, seed: int = 0) -> dict[str, Any]:
    """Measure ``estimator`` on the file ``examples``: figures by the kind of label, as plain values.

    Of labelled summaries there is ``agreement`` too: as `AgreementFigure`, of the score and each aspect (``metric``) with
    each label (``human``). Raises InputError for the first bad record, and where there is none.
    """
    read: list[Example] = []
    outputs: list[dict[str, np.ndarray]] = []
    words: list[int] = []
    cut = 0
    with Bar("scoring") as bar:
        for chunk in chunks(read_examples(examples)):
            texts = [example.document for example in chunk], [example.summary for example in chunk]
            scored = estimator.score_pairs(*texts, batch_size=batch_size)
            outputs.append(scored.named())
            cut += int(scored.cut.sum())
            words += map(word_count, texts[1])
            read += [replace(example, document="", summary="", change={}) for example in chunk]
            bar.advance(len(chunk))
    if not read:
        raise InputError(f"{examples}: no examples; give a file that 'negsample generate' wrote")
    every = {name: np.concatenate([part[name] for part in outputs]) for name in outputs[0]}
    labels = np.array([example.label for example in read])
    return {
        "model": estimator.fingerprint,
        "signature": estimator.signature,
        "examples": examples,
        "test": figures(labels, every["score"], [example.document_id for example in read], seed=seed),
        "by_kind": by_kind(labels, every["score"], [example.kind for example in read]),
        "cut": {"examples": {"pairs": len(read), "cut": cut}},
        "agreement": _agreement(read, every, np.array(words), examples, seed),
    }


def _agreement(
    read: Sequence[Example], outputs: dict[str, np.ndarray], words: np.ndarray, name: str, seed: int
) -> list[dict[str, Any]]:
    rows = [place for place, example in enumerate(read) if example.kind == LABELLED]
    if not rows:
        return []
    own = [read[place] for place in rows]
    human = {"score": [example.label for example in own]}
    for aspect in dict.fromkeys(aspect for example in own for aspect in example.aspects):
        human[aspect] = [example.aspects.get(aspect, np.nan) for example in own]
    metrics = {output: values[rows].astype(np.float64) for output, values in outputs.items()}
    table = make_table(name, [e.document_id for e in own], [None] * len(own), human, metrics, words[rows])
    both = (agreement(table, levels=[level], coefficients=[MAIN_COEFFICIENT[level]], seed=seed) for level in _LEVELS)
    return [asdict(figure) for found in both for figure in found]

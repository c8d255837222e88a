"""``negsample evaluate``."""

from typing import Any

from negsample.errors import InputError


def run(model: str, examples: str, json: str | None, batch_size: int, seed: int) -> None:
    """Print how well the model's scores follow the labels of ``examples``, and write the figures to ``json``."""
    from negsample.commands.train import print_figures
    from negsample.io.files import atomic_json, check_file
    from negsample.models.estimator import Estimator

    if json is not None:
        check_file(json)
    estimator = Estimator.load(model)
    found = evaluate(estimator, examples, batch_size=batch_size, seed=seed)
    # Shown first: what was found is not lost where it can't be written.
    print_figures(found)
    print(found["signature"])
    if json is not None:
        atomic_json(json, found)


def evaluate(estimator: Any, examples: str, *, batch_size: int = 32, seed: int = 0) -> dict[str, Any]:
    """Figures of ``estimator`` on an example file, by the kind of label, as plain values."""
    import numpy as np

    from negsample.io.examples import read_examples
    from negsample.models.evaluation import as_json, by_kind, figures
    from negsample.progress import Bar
    from negsample.scoring import chunks

    labels: list[float] = []
    documents: list[str] = []
    kinds: list[str] = []
    scores, cut = [], 0
    with Bar("scoring") as bar:
        for chunk in chunks(read_examples(examples)):
            scored = estimator.score_pairs(
                [example.document for example in chunk], [example.summary for example in chunk], batch_size=batch_size
            )
            scores.append(scored.scores)
            cut += int(scored.cut.sum())
            labels += [example.label for example in chunk]
            documents += [example.document_id for example in chunk]
            kinds += [example.kind for example in chunk]
            bar.advance(len(chunk))
    if not scores:
        raise InputError(f"{examples}: no examples; give a file that 'negsample generate' wrote")
    found = figures(np.array(labels), np.concatenate(scores), documents, seed=seed)
    return {
        "model": estimator.fingerprint,
        "signature": estimator.signature,
        "examples": examples,
        "test": as_json(found),
        "by_kind": by_kind(np.array(labels), np.concatenate(scores), kinds),
        "cut": {"examples": {"pairs": len(labels), "cut": cut}},
    }

"""Making the ready estimator: ``python -m negsample.train.ready corpus=sample steps=…`` teaches its support judge and writes it,
and the percentiles of the embedded sample, into the package; ``steps=0`` measures the percentiles alone.

The judge in the package was made by the command in docs/kinds.md, of corpora whose licences allow it.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator

from negsample.corpora import load_pairs
from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.models import ready
from negsample.models.align.support import FILE, new_network
from negsample.models.encoders import make_encoder
from negsample.models.estimator import Estimator
from negsample.models.folder import on_scale, percentiles_of, scale_of
from negsample.negatives.context import context_of
from negsample.negatives.generate import ExampleMaker
from negsample.negatives.recipe import parse_recipe
from negsample.records import Pair, document_key
from negsample.settings import number, read_settings
from negsample.terminal import say
from negsample.train.config import Reading
from negsample.train.data import pairs_of
from negsample.train.fit.support import train_support

# One document of so many is held out.
_HELD = 20
# What the scale is made of beside real summaries, each kind as often, and how many copies of a summary.
_DAMAGE = dict.fromkeys(
    ("sentence-delete", "intrude", "entity", "negate", "sentence-replace", "swap", "shuffle", "truncate"), 1.0
)
_COPIES = 3


@dataclass(frozen=True)
class ReadySettings(Reading):
    """What the judge is taught on (``Reading``), for how many ``steps``, and the folder ``work`` to go on from."""

    steps: int = number(1000, least=0)
    work: str | None = None


def read_pairs(settings: ReadySettings) -> tuple[list[Pair], list[Pair]]:
    """The pairs of the corpora, and those of the held-out documents. Raises InputError as ``pairs_of``."""
    pairs = list(pairs_of(settings, Counter()))
    held = [int(document_key(pair.document)[:8], 16) % _HELD == 0 for pair in pairs]
    return [p for p, out in zip(pairs, held, strict=True) if not out], [
        p for p, out in zip(pairs, held, strict=True) if out
    ]


def teach(settings: ReadySettings) -> dict[str, float]:
    """Train the judge and write ``ready.SUPPORT``; returns what it sees of held-out damage (``train_support``)."""
    pairs, held = read_pairs(settings)
    say(f"{len(pairs)} pairs, {len(held)} held out")
    with tempfile.TemporaryDirectory() as draft:
        work = Path(settings.work or draft)
        work.mkdir(parents=True, exist_ok=True)
        encoder = make_encoder(ready.ENCODER)
        network, tokenizer = new_network(encoder, "sdpa", settings.seed)
        judge, seen = train_support(
            Accelerator(cpu=True),
            network,
            tokenizer,
            encoder.fingerprint,
            pairs,
            held,
            settings.steps,
            settings.seed,
            work,
        )
        judge.save(work)
        shutil.copyfile(work / FILE, ready.SUPPORT)
    return seen


def measure(seed: int) -> dict[str, Any]:
    """Scale and percentiles of the ready estimator, by the embedded sample: its summaries, and damaged copies of each."""
    parts, description = ready.ready_parts()
    # As it answers without a scale.
    estimator = Estimator(parts, {**description, "scale": {}})
    pairs = list(load_pairs("sample"))
    context = context_of(pairs)
    maker = ExampleMaker(context, parse_recipe(_DAMAGE), _COPIES, seed)
    placed = [(pairs[context.index.number[position]], position) for position in context.positions.tolist()]
    examples = [example for pair, position in placed for example in maker.examples(pair, pair.id, position)]
    named = estimator.score_pairs([e.document for e in examples], [e.summary for e in examples]).named()
    real = np.array([example.kind == "original" for example in examples])
    columns = {name: column[real] for name, column in named.items()}
    scale = scale_of(columns, {name: column[~real] for name, column in named.items()})
    domains = [example.domain for example, own in zip(examples, real, strict=True) if own]
    return {"ready": ready.VERSION, "scale": scale, **percentiles_of(on_scale(columns, scale), "sample", domains)}


def main(words: list[str]) -> None:
    """Make what ``words`` (``key=value``) ask for."""
    settings = read_settings(ReadySettings, None, words, "ready")
    if settings.steps:
        say(json.dumps({name: round(share, 3) for name, share in teach(settings).items()}))
    atomic_json(ready.PERCENTILES, measure(settings.seed))
    say(f"{ready.PERCENTILES}: written")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        raise SystemExit(f"error: {error}") from None

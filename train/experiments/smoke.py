"""``--smoke``: the same configuration on a few pairs of the embedded sample, with packaged encoders and few steps.

A configuration that runs so has no unknown corpus, recipe, head or setting; its figures mean nothing.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from negsample.corpora.hub import KNOWN
from negsample.corpora.sample import DOMAINS
from negsample.models.build import takes
from negsample.models.encoders import parse_spec
from negsample.train.config import TrainConfig

# Pairs of each corpus: a domain of the sample has no more.
PAIRS = 20
# The most of what costs time, the first two also where the configuration sets no bound: texts (tokens of a pair and of
# its summary for ``cls``, rows of each for other heads) and steps of a judge (``align``).
_BOUNDS = {"limit": PAIRS, "epochs": 2}
_MOST = {
    "negatives": 2,
    "redraws": 2,
    "max_length": 64,
    "min_summary": 32,
    "max_document": 64,
    "max_summary": 32,
    "judge_steps": 2,
}

# The domain of the sample that is most like a corpus.
_DOMAINS = {
    "cnn_dailymail": "news",
    "newsroom": "news",
    "billsum": "legislation",
    "big_patent": "patents",
    "arxiv": "science",
}
# Packaged weights that work without a path, and what plays the part of the others: no two of P3's encoders get the same.
_PACKAGED = ("glove", "hf", "sentence-transformer", "use-multilingual")
_PARTS = {"use": "use-multilingual", "use-large": "sentence-transformer", "word2vec": "glove"}
_ANY_OTHER = "glove:unit=sentence"
# The encoder of heads that do not take rows, by what they take.
_WHOLE = {"tokens": "minilm", "align": "sentence-transformer"}


def smoke(config: TrainConfig, say: Callable[[str], None] = print) -> TrainConfig:
    """``config`` made small enough for a CPU and seconds: recipe, head, loss, optimiser and batches stay as they are.

    Each corpus becomes a domain of the sample (``stand_in_corpora``) of at most ``PAIRS`` pairs, the encoder a packaged
    one; at most two negatives a pair, two redraws, two epochs, two steps of a judge; short texts, no mixed precision, no
    language model.
    ``say`` gets one line that tells every change. A configuration that is small already stays as it is, and nothing is
    said. Raises InputError for an unknown head.
    """
    corpora = stand_in_corpora(config.corpora())
    names = list(dict.fromkeys(corpora.values()))
    changes: dict[str, Any] = {
        "corpus": names[0] if isinstance(config.corpus, str) else names,
        "document_field": None,
        "summary_field": None,
        "corpus_config": None,
        "encoder": _encoder(config),
        "mixed_precision": "no",
        "lm": None,
    }
    for key, most in {**_BOUNDS, **_MOST}.items():
        value = getattr(config, key)
        if value is not None or key in _BOUNDS:
            changes[key] = most if value is None else min(value, most)
    small = dataclasses.replace(config, **changes)
    told = [
        f"{key} {_shown(getattr(config, key))} → {_shown(value)}"
        for key, value in changes.items()
        if value != getattr(config, key)
    ]
    if told:
        say(f"smoke run: {', '.join(told)}")
    return small


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return "(unset)" if value is None else str(value)


def _encoder(config: TrainConfig) -> str | None:
    """The packaged encoder in place of the configuration's; None, the head's own default, is a packaged one."""
    if config.encoder is None:
        return None
    return _WHOLE.get(takes(config.head)) or stand_in_encoder(config.encoder)


def stand_in_corpora(names: Sequence[str]) -> dict[str, str]:
    """Corpus → ``sample:DOMAIN``: the domain most like it, a different one for each corpus while the four last.

    ``sample`` and ``sample:DOMAIN`` stand for themselves, so that what was replaced may be given again.
    """
    ids = {corpus.id: name for name, corpus in KNOWN.items()}
    likes = {name: _DOMAINS.get(ids.get(name, name).partition(":")[0]) for name in dict.fromkeys(names)}
    used: Counter[str] = Counter()
    found = {}
    for name in likes:
        if name.partition(":")[0] == "sample":
            found[name] = name
            used[name.partition(":")[2]] += 1
    # Those that are like a domain choose first.
    for name in sorted((name for name in likes if name not in found), key=lambda name: likes[name] is None):
        like = likes[name] or "news"
        domain = min(DOMAINS, key=lambda domain: (used[domain], domain != like))
        used[domain] += 1
        found[name] = f"sample:{domain}"
    return {name: found[name] for name in likes}


def stand_in_encoder(spec: str) -> str:
    """The packaged encoder of rows in place of ``spec``: itself where it is one, else one that plays its part."""
    name, path, options = parse_spec(spec)
    if name in _PACKAGED and path is None and not {"model", "path", "vectors", "weights"} & set(options):
        return spec
    if name == "glove" and options.get("unit") == "sentence":
        return _ANY_OTHER
    return name if name in _PACKAGED else _PARTS.get(name, _ANY_OTHER)


def stand_in_encoders(specs: Sequence[str]) -> list[str]:
    """``stand_in_encoder`` of each, in order, none twice."""
    return list(dict.fromkeys(stand_in_encoder(spec) for spec in specs))

"""Features and network for a head and an encoder: new for training, or from a model folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from negsample.errors import InputError
from negsample.models.align.evidence import MOST_TOKENS, load_evidence, new_evidence
from negsample.models.align.judge import load_judge
from negsample.models.align.support import FILE as SUPPORT_FILE
from negsample.models.align.support import load_support
from negsample.models.encoders import ENCODERS, Encoder, load_encoder, make_encoder
from negsample.models.features import Features
from negsample.models.features.align import AlignFeatures
from negsample.models.features.rows import RowFeatures
from negsample.models.features.tokens import TokenFeatures
from negsample.models.heads import HEADS
from negsample.models.language.model_files import called
from negsample.models.language.networks import load_pretrained, load_shell
from negsample.models.precision import to_bf16
from negsample.registry import parse


@dataclass
class Parts:
    """What scores a pair: ``features`` make tensors of texts, ``network`` makes logits of tensors.

    ``network`` is None until the features know their sizes (``make_network``). ``encoder`` is the encoder's name and
    fingerprint for signatures.
    """

    head: str
    options: dict[str, Any]
    features: Features
    network: nn.Module | None
    encoder: dict[str, str]


def takes(head: str) -> str:
    """What the head takes: the name of a kind of features. Raises InputError for an unknown head."""
    return HEADS.get(head).takes


def new_parts(
    head: str,
    encoder: str,
    *,
    max_length: int = 512,
    min_summary: int = 128,
    max_document: int | None = None,
    max_summary: int | None = None,
    freeze: bool = False,
    attention: str = "sdpa",
    lm: str | None = None,
    lm_prompt: str | None = None,
    lm_tokens: int = MOST_TOKENS,
    copy_lm: bool = False,
    seed: int = 0,
) -> Parts:
    """Parts for training. The ``cls`` network starts from the encoder's weights; a head over rows is made after ``fit``.

    ``lm``: a language model for head ``align``, which reads documents as ``lm_prompt`` and ``lm_tokens`` say (``evidence``).
    Raises InputError for an unknown head, encoder or language model, or a ``max_length`` beyond the encoder's positions.
    """
    if (kind := takes(head)) != "tokens":
        made = make_encoder(encoder)
        about = {"name": called(encoder), "fingerprint": made.fingerprint}
        if kind == "rows":
            return Parts(head, {}, RowFeatures(made, max_document, max_summary), None, about)
        evidence = None if lm is None else new_evidence(lm, made, lm_prompt, lm_tokens)
        features = AlignFeatures(made, evidence=evidence, copy_lm=copy_lm)
        return Parts(head, {"sources": features.sources}, features, None, about)
    if not Path(encoder).exists() and (name := parse(encoder, "encoder").name) in ENCODERS:
        raise InputError(
            f"encoder {encoder}: {name} is frozen, and head {head} fine-tunes a network; add head=fc (or cnn, lstm, "
            "align), or name a network's folder or hub id"
        )
    model, tokenizer, limit = load_pretrained(encoder, attention)
    if max_length > limit:
        raise InputError(f"max_length={max_length}, but encoder {encoder!r} reads at most {limit} tokens; lower it")
    options = {"hidden": 128}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = HEADS.get(head)(model, freeze=freeze, **options)
    return Parts(head, options, TokenFeatures(tokenizer, max_length, min_summary), network, {"name": called(encoder)})


def make_network(parts: Parts, seed: int) -> nn.Module:
    """The network of ``parts``, made now (initial weights from ``seed``) where it had to wait for ``features.fit``."""
    if parts.network is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(parts.features, RowFeatures):
                sizes = (parts.features.encoder.dim, *parts.features.limits)
                parts.network = HEADS.get(parts.head)(*sizes, parts.features.unit, **parts.options)
            else:
                parts.network = HEADS.get(parts.head)(**parts.options)
    return parts.network


def load_parts(
    description: Mapping[str, Any], folder: Path, attention: str = "sdpa", precision: str = "float32"
) -> Parts:
    """Parts as ``description`` (a model folder's config.json) says, weights not yet loaded; no request goes out.

    ``precision``: in which encoder and judges compute; a network that weights are loaded into is the caller's to convert.
    Raises InputError where files are missing, damaged or of another fingerprint, or the device can't compute so.
    """
    head, options = description["head"], dict(description.get("head_options", {}))
    settings = dict(description["features"])
    kind = takes(head)
    if kind == "tokens":
        model, tokenizer = load_shell(folder / "encoder", attention)
        network = HEADS.get(head)(model, **options)
        return Parts(head, options, TokenFeatures(tokenizer, **settings), network, dict(description["encoder"]))
    made = in_precision(load_encoder(settings.pop("encoder"), folder / "encoder"), precision)
    features: Features
    if kind == "rows":
        features = RowFeatures(made, **settings)
    else:
        saved, passages, reads = (settings.get(name) for name in ("judge", "support", "evidence"))
        judge = load_judge(folder / "judge", saved["fingerprint"], attention) if saved else None
        evidence = load_evidence(folder / "evidence", reads, made) if reads else None
        place = folder / "support" / SUPPORT_FILE
        support = load_support(place, made, passages["fingerprint"], attention) if passages else None
        readers: tuple[Any, ...] = (judge, support) if precision == "bf16" else ()
        for each in filter(None, readers):
            to_bf16(each.network.encoder)
        features = AlignFeatures(made, judge, evidence, support, copy_lm=bool(reads and reads["copied"]))
    parts = Parts(head, options, features, None, dict(description["encoder"]))
    make_network(parts, seed=0)
    return parts


def in_precision(encoder: Encoder, precision: str) -> Encoder:
    """``encoder``, computing in ``precision``; one that is no transformers network computes in float32 in any case."""
    convert = getattr(encoder, "in_bf16", None)
    return convert() if convert is not None and precision == "bf16" else encoder

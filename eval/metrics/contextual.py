"""Vectors of words in their sentences, from a Hugging Face token encoder (in the role of Clark et al. 2019's ELMo)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.tokens import content_spans

if TYPE_CHECKING:
    from negsample.models.encoders.transformer import TransformerEncoder
    from negsample.models.language.networks import Pretrained


def words_in_context(encoder: "TransformerEncoder", sentences: Sequence[str]) -> list[np.ndarray]:
    """For each sentence the vectors of its content words, in order; float32 [words, d] each.

    Each sentence is read whole and alone, and function words and punctuation are left out afterwards (Clark et al.
    2019, A.1). A word's vector is the mean over its tokens, in the encoder's ``layers``. A sentence beyond the model's
    longest input is read in pieces that end between words. Of a single "word" beyond it only the tokens that were read
    count.

    Raises InputError where the model's tokenizer can't say which characters a token stands for.
    """
    import torch

    from negsample.models.encoders.base import as_texts

    if not encoder.model.tokenizer.is_fast:
        raise InputError(
            f"{encoder.folder}: its tokenizer does not say where tokens stand; give a model with a tokenizer.json"
        )
    pieces: list[str] = []
    owners: list[int] = []
    for number, sentence in enumerate(as_texts(sentences)):
        if content_spans(sentence):
            parts = _within(encoder.model, sentence)
            pieces += parts
            owners += [number] * len(parts)
    found: list[np.ndarray] = [np.zeros((0, encoder.dim), dtype=np.float32)] * len(pieces)
    with torch.inference_mode():
        for batch in encoder.batches(pieces):
            offsets = encoder.model.tokenizer(
                [pieces[row] for row in batch.rows],
                truncation=True,
                max_length=encoder.model.limit,
                return_offsets_mapping=True,
            )["offset_mapping"]
            hidden = batch.hidden.float().cpu().numpy()
            own = (batch.mask & ~batch.special).cpu().numpy()
            for place, row in enumerate(batch.rows):
                tokens = np.flatnonzero(own[place])
                where = np.array(offsets[place], dtype=np.int64).reshape(-1, 2)[tokens]
                found[row] = _means(pieces[row], hidden[place][tokens], where)
    blocks: list[list[np.ndarray]] = [[] for _ in sentences]
    for owner, vectors in zip(owners, found, strict=True):
        blocks[owner].append(vectors)
    nothing = np.zeros((0, encoder.dim), dtype=np.float32)
    return [np.concatenate(block) if block else nothing for block in blocks]


def _means(text: str, vectors: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Mean of the token vectors [t, d] that overlap each content word; words without a token are left out."""
    rows = []
    for _, start, stop in content_spans(text):
        inside = (where[:, 0] < stop) & (where[:, 1] > start)
        if inside.any():
            rows.append(vectors[inside].mean(axis=0, dtype=np.float64))
    return np.array(rows, dtype=np.float32).reshape(len(rows), vectors.shape[1])


def _within(model: "Pretrained", text: str) -> list[str]:
    """``text``, or pieces of it that fit the model's longest input, cut between words."""
    tokenizer: Any = model.tokenizer
    if len(tokenizer(text, verbose=False)["input_ids"]) <= model.limit:
        return [text]
    words = text.split()
    if len(words) == 1:
        return words
    middle = len(words) // 2
    return _within(model, " ".join(words[:middle])) + _within(model, " ".join(words[middle:]))

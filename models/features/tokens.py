"""Token ids of ``[CLS] document [SEP] summary [SEP]`` for networks that read both texts at once (Bao et al. 2021 §3.1)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from negsample.errors import InputError
from negsample.models.batching import pad
from negsample.models.features import Features
from negsample.text import readable

# The longest part of a pair that the summary's floor may claim, so that a small max_length still shows the document.
_FLOOR_SHARE = 0.75


def cut_lengths(documents: np.ndarray, summaries: np.ndarray, room: int, floor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many tokens of each text stay.

    Both are cut in proportion to their lengths until they fit in ``room`` tokens; the summary keeps at least
    min(its length, ``floor``), where that leaves the document a quarter of the room. int [n] each → int64 [n] each.
    """
    documents, summaries = np.asarray(documents, np.int64), np.asarray(summaries, np.int64)
    total = documents + summaries
    long = total > room
    least = np.minimum(summaries, min(floor, int(room * _FLOOR_SHARE)))
    share = np.maximum(room * summaries // np.maximum(total, 1), least)
    kept = np.where(long, share, summaries)
    return np.where(long, np.minimum(room - kept, documents), documents), kept


def _frame(tokenizer: Any) -> tuple[list[list[int]], list[int] | None]:
    """Return the special tokens before, between and after two texts, and the token types of the five parts of a pair.

    They are read off the tokenizer's own rule for pairs, so that any model's convention is followed.
    """
    (a,) = tokenizer("a", add_special_tokens=False)["input_ids"][:1]
    encoded = tokenizer("a", "a", return_special_tokens_mask=True)
    ids, types = encoded["input_ids"], encoded.get("token_type_ids")
    texts = [i for i, special in enumerate(encoded["special_tokens_mask"]) if not special and ids[i] == a]
    first, second = texts[0], texts[-1]
    five = None if types is None else [types[place] for place in (0, first, first + 1, second, -1)]
    return [ids[:first], ids[first + 1 : second], ids[second + 1 :]], five


class TokenFeatures(Features):
    """Token ids of each text, joined, cut and padded pair by pair.

    ``tokenizer`` is a transformers tokenizer; ``max_length`` the tokens of a pair, special ones included;
    ``min_summary`` the floor of ``cut_lengths``.
    """

    dtype, width, unit = "int32", 1, "token"

    def __init__(self, tokenizer: Any, max_length: int = 512, min_summary: int = 128) -> None:
        self.tokenizer, self.max_length, self.min_summary = tokenizer, max_length, min_summary
        self._frame, self._types = _frame(tokenizer)
        self._special = sum(map(len, self._frame))
        self._room = max_length - self._special
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        if not self._frame[0]:
            told = "the encoder's tokenizer puts no token before a text, so there is no [CLS] to read"
            raise InputError(f"{told}; choose a BERT-like one")
        if self._room < 2:
            raise InputError(f"max_length={max_length} leaves no room for text; give at least {self._special + 2}")

    def read(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Token ids without special tokens, uncut: int32 arrays."""
        if not texts:
            return []
        encoded = self.tokenizer([readable(text) for text in texts], add_special_tokens=False, verbose=False)
        return [np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]]

    def lengths(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        document, summary = cut_lengths(documents, summaries, self._room, self.min_summary)
        return document + summary + self._special

    def was_cut(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        return np.asarray(documents) + np.asarray(summaries) > self._room

    def collate(self, documents: Sequence[np.ndarray], summaries: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask`` (and ``token_type_ids`` where the model has them), int64 [B, longest]."""
        sizes = np.array([[len(d), len(s)] for d, s in zip(documents, summaries, strict=True)], np.int64)
        kept = zip(*cut_lengths(sizes[:, 0], sizes[:, 1], self._room, self.min_summary), strict=True)
        before, between, after = self._frame
        pairs: list[list[Any]] = [
            [before, document[:d], between, summary[:s], after]
            for document, summary, (d, s) in zip(documents, summaries, kept, strict=True)
        ]
        ids, mask = pad([np.concatenate(parts).astype(np.int64) for parts in pairs], self._pad)
        batch = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}
        if self._types is not None:
            types, _ = pad([np.repeat(self._types, [len(part) for part in parts]) for parts in pairs])
            batch["token_type_ids"] = torch.from_numpy(types)
        return batch

    def save(self, folder: Path) -> dict[str, Any]:
        self.tokenizer.save_pretrained(folder / "encoder")
        return {"max_length": self.max_length, "min_summary": self.min_summary}

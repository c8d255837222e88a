"""What a language model that has read the document says of a summary: how likely its words are, with and without it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from negsample.errors import InputError
from negsample.models.align.alignment import compared, sentence_means
from negsample.models.align.aspects import SOURCES, lowest_mean, telling_facts
from negsample.models.align.words import pieces, read_words
from negsample.models.embedding_cache import EmbeddingCache
from negsample.models.language.language_model import PACKAGED, PROMPTS, Asked, framed, lm_folder, load_lm, losses_given
from negsample.models.language.model_files import called, copy_model, fingerprint
from negsample.models.language.networks import Pretrained

if TYPE_CHECKING:
    from negsample.models.align.reader import Text
    from negsample.models.encoders import Encoder
    from negsample.models.features.align import PairView

MOST_TOKENS = 2048
"""Tokens of a document that are read by default; of a longer one its lead and what matches the summary best, half each."""
# Shares of the tokens: the least likely, and those that the document explains least.
_LOWEST, _LEAST_EXPLAINED = 0.1, 0.2
# Nats, of each feature: the mean over machine-made summaries of news, and the spread between those of one document, for
# the packaged model (docs/recipes.md). No human score went into them.
_PACKAGED_SCALES = {
    "lm_mean": (-1.15, 0.44),
    "lm_lowest": (-5.85, 1.38),
    "lm_total": (-9.8, 3.44),
    "lm_least_sentence": (-1.7, 0.68),
    "lm_facts": (-0.8, 0.6),
    "lm_explained": (222.0, 75.0),
    "lm_unexplained": (-0.11, 0.33),
}
# A smaller spread would be that of texts that are nearly the same, and blow up every other mark.
_LEAST_SPREAD = 0.02
_REMEMBERED = 512
# Function words count a little when passages are chosen.
_LEAST_WEIGHT = 0.02


def evidence_values(given: np.ndarray, alone: np.ndarray, place: np.ndarray, facts: np.ndarray) -> np.ndarray:
    """The features of ``SOURCES["evidence"]``, in nats, float32 [F]; NaN where the summary has no token.

    Of a summary's T tokens, each after those before it: ``given``, ``alone`` float64 [T], log P(token | document) and log
    P(token); ``place`` int [T], the sentence of each; ``facts`` bool [T], tokens of names and numbers.

    ``lm_mean``: mean of ``given`` (BARTScore's direction *faithfulness*, Yuan et al. 2021 §3.2); ``lm_lowest``: of the least
    likely tenth; ``lm_total``: their sum over √T, between sum and mean, for a long summary has more places to go wrong;
    ``lm_least_sentence``: of the sentence with the lowest mean; ``lm_facts``: of names and numbers (``lm_mean`` where there
    are none); ``lm_explained``: Σ ``given`` − ``alone``, how much the document explains in all; ``lm_unexplained``: the mean
    of that difference over the fifth of the tokens that it explains least.
    """
    if not len(given):
        return np.full(len(SOURCES["evidence"]), np.nan, np.float32)
    explained, even = given - alone, np.ones(len(given), np.float32)
    _, sentence = np.unique(place, return_inverse=True)
    return np.array(
        [
            given.mean(),
            lowest_mean(given, even, _LOWEST),
            given.sum() / np.sqrt(len(given)),
            (np.bincount(sentence, given) / np.bincount(sentence)).min(),
            given[facts].mean() if facts.any() else given.mean(),
            explained.sum(),
            lowest_mean(explained, even, _LEAST_EXPLAINED),
        ],
        np.float32,
    )


class Evidence:
    """Reads documents and summaries with a causal language model or an encoder–decoder.

    ``lm``: how the model is named (folder, hub id, ``gguf:FILE``, ``packaged``). ``prompt``: what it reads before the
    summary, ``{document}`` in it; without the document, the same prompt with nothing in its place. ``most_tokens``: of a
    document. ``scales``: (centre, spread) of each feature, in nats. ``encoder``: whose alignment chooses the passages
    of a long document. ``source``: where the model lies, where it isn't looked for by its name (a copy in a model folder).
    To the embedding cache it is an encoder of pairs, joined into one text.
    """

    name, unit, dim = "lm", "pair", len(SOURCES["evidence"])

    def __init__(
        self,
        head: Pretrained,
        lm: str,
        encoder: "Encoder",
        prompt: str | None = None,
        most_tokens: int = MOST_TOKENS,
        scales: Mapping[str, Sequence[float]] | None = None,
        source: str | None = None,
    ) -> None:
        prompt = prompt or PROMPTS[head.kind]
        if prompt.count("{document}") != 1:
            raise InputError(f"lm_prompt={prompt!r}: it must have {{document}} in it, once")
        room = head.window // 2
        if room < 16:
            raise InputError(f"lm={lm}: it reads {head.window} tokens at a time; take one that reads 32")
        self.head, self.lm, self.prompt, self._encoder, self._source = head, lm, prompt, encoder, source or lm
        self.most_tokens = min(most_tokens, room)
        self.scales = dict(scales) if scales is not None else None
        self._before, self._after = framed(head, prompt)
        if not self._before and not self._after:
            raise InputError(f"lm={lm}: it has no beginning token, so lm_prompt needs words beside {{document}}")
        self._document = lru_cache(_REMEMBERED)(self._read_document)
        self._pairs: dict[str, PairView] = {}
        self._cache = EmbeddingCache(cast("Encoder", self))

    @property
    def fingerprint(self) -> str:
        """64 hex digits of all that decides the features before they are scaled."""
        options = {"prompt": self.prompt, "most_tokens": self.most_tokens, "lowest": [_LOWEST, _LEAST_EXPLAINED]}
        return fingerprint(self._encoder.fingerprint, options, [("lm", self.head.fingerprint.encode())])

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.head.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def read_in_part(self, document: str) -> bool:
        """Whether the document has more tokens than are read."""
        return bool(self._document(tuple(piece.text for piece in pieces(document)))[1])

    def _read_document(self, sentences: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The tokens that all summaries of a document share, and (); of one that is cut its lead's, and its sentences' sizes."""
        ids = self._ids(" ".join(sentences))
        if len(ids) <= self.most_tokens:
            return ids, ()
        return ids[: self.most_tokens // 2], tuple(len(self._ids(sentence)) for sentence in sentences)

    def _passages(self, pair: "PairView", sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Of a document that is cut, the tokens of the sentences after its lead that match the summary best, in order."""
        sentences = pair.document.text.pieces
        later = np.flatnonzero(np.cumsum(sizes) > self.most_tokens // 2)
        best = np.full(len(sentences), -1.0)
        if pair.alignment is not None:
            for part, _, by_sentence in compared(pair.document.text, pair.summary):
                means = sentence_means(by_sentence, part.weights + _LEAST_WEIGHT, part, -1.0)
                best = np.maximum(best, means.max(axis=1))
        room, chosen = self.most_tokens - self.most_tokens // 2, []
        for place in sorted(later.tolist(), key=lambda place: (-round(float(best[place]), 3), place)):
            if sizes[place] <= room:
                chosen.append(place)
                room -= sizes[place]
        return self._ids(" " + " ".join(sentences[place] for place in sorted(chosen)))

    def compute(self, pairs: Sequence["PairView"]) -> np.ndarray:
        """``evidence_values`` of pairs, float32 [n, F]; a document is read once for all of its summaries.

        Raises InputError where the model's answers are no numbers.
        """
        targets, places, facts = zip(*(self._summary(pair.summary) for pair in pairs), strict=True)
        asked = []
        for pair, target in zip(pairs, targets, strict=True):
            shared, sizes = self._document(pair.document.text.pieces)
            more = self._passages(pair, sizes) if sizes else ()
            asked.append(self._asked((*self._before, *shared), (*more, *self._after), target))
        alone = {target: self._asked(self._before, self._after, target) for target in dict.fromkeys(targets)}
        questions = [*asked, *alone.values()]
        losses = iter(losses_given(self.head, [one for several in questions for one in several]))
        found = [-np.concatenate([next(losses) for _ in several]) for several in questions]
        if not all(np.isfinite(values).all() for values in found):
            raise InputError(f"lm={self.lm}: this language model's answers are no numbers; take another")
        without = dict(zip(alone, found[len(asked) :], strict=True))
        told = zip(found, targets, places, facts, strict=False)
        return np.stack([evidence_values(given, without[target], *own) for given, target, *own in told])

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """``compute`` of the pairs that the cache asks for."""
        return self.compute([self._pairs[text] for text in texts])

    def _asked(self, shared: tuple[int, ...], own: tuple[int, ...], target: tuple[int, ...]) -> list[Asked]:
        """One question, or several where the summary is longer than the model can read after the document."""
        room = max(16, self.head.window - len(shared) - len(own) - 1)
        if len(target) < room:
            return [Asked(shared, own, target)]
        step = room // 2
        return [
            Asked(shared, (*own, *target[max(0, start - step) : start]), target[start : start + step])
            for start in range(0, len(target), step)
        ]

    def _summary(self, summary: "Text") -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        """The tokens of a summary, the sentence of each, int [T], and which belong to names and numbers, bool [T]."""
        how = {"add_special_tokens": self.head.kind == "encoder-decoder", "return_offsets_mapping": True}
        read = self.head.tokenizer(" ".join(summary.pieces), verbose=False, **how)
        begins, stops = np.array(read["offset_mapping"], int).reshape(-1, 2).T
        lengths = [len(piece) + 1 for piece in summary.pieces]
        starts = np.cumsum([0, *lengths])[:-1]
        # A token that begins with the space before a sentence is of that sentence.
        place = np.searchsorted(starts - 1, begins, side="right") - 1
        spans = [
            (start + begin, start + stop)
            for start, piece in zip(starts.tolist(), summary.pieces, strict=True)
            for begin, stop in read_words(piece, lambda _: 0.0).spans
        ]
        told = np.array(spans, int).reshape(-1, 2)[telling_facts(summary)].T
        # More have begun before a token ends than have ended where it begins.
        facts = np.searchsorted(told[0], stops, side="left") > np.searchsorted(told[1], begins, side="right")
        return tuple(read["input_ids"]), place, facts

    def marks(self, pairs: Sequence["PairView"]) -> np.ndarray:
        """The features on the scale of machine-made summaries, float32 [n, F]; 0, the ordinary, where there is no token."""
        assert self.scales is not None
        centres, spreads = np.array([self.scales[name] for name in SOURCES["evidence"]], np.float32).T
        return np.nan_to_num((self._values(pairs) - centres) / spreads)

    def _values(self, pairs: Sequence["PairView"]) -> np.ndarray:
        names = ["\0".join((" ".join(pair.document.text.pieces), " ".join(pair.summary.pieces))) for pair in pairs]
        # A copy of this object shares the dictionary, as it shares the cache.
        self._pairs.update(zip(names, pairs, strict=True))
        found = self._cache.rows(names)
        self._pairs.clear()
        return found

    def calibrate(self, pairs: Sequence["PairView"]) -> None:
        """Take the mean and spread over ``pairs`` (real summaries) as the scales, where none are known for this model."""
        if self.scales is None:
            values = self._values(pairs)
            columns = np.ascontiguousarray(values[np.isfinite(values).all(axis=1)].T)
            centres = columns.mean(axis=1) if columns.size else np.zeros(self.dim)
            spreads = np.maximum(columns.std(axis=1), _LEAST_SPREAD) if columns.shape[1] > 1 else np.ones(self.dim)
            both = zip(centres.tolist(), spreads.tolist(), strict=True)
            self.scales = dict(zip(SOURCES["evidence"], both, strict=True))

    def save(self, folder: Path, copy: bool) -> dict[str, Any]:
        """What ``load_evidence`` needs; the language model itself is written into ``folder`` only where ``copy`` is true."""
        if copy:
            copy_model(lm_folder(self._source), folder)
        return {
            "lm": called(self.lm) if copy else self.lm,
            "copied": copy,
            "fingerprint": self.head.fingerprint,
            "prompt": self.prompt,
            "most_tokens": self.most_tokens,
            "scales": self.scales,
        }


def new_evidence(lm: str, encoder: "Encoder", prompt: str | None = None, most_tokens: int = MOST_TOKENS) -> Evidence:
    """Evidence of the causal language model or encoder–decoder ``lm``; its scales are known for the packaged one alone.

    Raises InputError where it is no such model, cannot be loaded, or reads fewer than 32 tokens at a time.
    """
    head = load_lm(lm, shared=False)
    if head.kind == "masked":
        advice = "take a causal one or an encoder–decoder"
        raise InputError(f"lm={lm}: a masked model can't write after a document; {advice}")
    packaged = lm == PACKAGED and (prompt or PROMPTS["causal"], most_tokens) == (PROMPTS["causal"], MOST_TOKENS)
    return Evidence(head, lm, encoder, prompt, most_tokens, _PACKAGED_SCALES if packaged else None)


def load_evidence(folder: Path, saved: Mapping[str, Any], encoder: "Encoder") -> Evidence:
    """What ``Evidence.save`` wrote, with what it returned; the language model lies in ``folder`` where it was copied.

    Raises InputError where it is missing, damaged or another than it was.
    """
    lm = str(folder) if saved["copied"] else saved["lm"]
    head = load_lm(lm, shared=False)
    if head.fingerprint != saved["fingerprint"]:
        advice = "copy the model again" if saved["copied"] else "give the model that the estimator was made with"
        raise InputError(f"lm={lm}: damaged or changed (its hash is not the one in config.json); {advice}")
    return Evidence(head, saved["lm"], encoder, saved["prompt"], saved["most_tokens"], saved["scales"], lm)

"""From texts to what the alignment compares: sentence vectors and word vectors, each sentence encoded once."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import numpy as np

from negsample.errors import InputError
from negsample.models.align.words import Piece, TermWeights, Words, cut_tokens, pieces, read_words
from negsample.models.embedding_cache import EmbeddingCache, cache_root
from negsample.models.encoders import Encoder
from negsample.models.language.networks import token_batches
from negsample.recent import Recent

if TYPE_CHECKING:
    from negsample.models.align.alignment import DocumentView

# Bytes of word vectors of sentences that may come again, and words of documents whose summaries may still come (about 300 MB
# of vectors).
_KEPT = (384 << 20, 400_000)


@dataclass(frozen=True, eq=False)
class Text:
    """A text, read.

    ``pieces``: its S sentences, as encoders read them; ``ends`` bool [S]: those that close with an end mark, or go on in the
    next piece; ``whole`` bool [S]: those that are not a stretch of a very long sentence; ``vectors`` float32 [S, d], unit
    length; ``forms`` of its W words in order; ``place`` int [W], the sentence of each; ``starts`` int [S'], the first word of
    each sentence that has one, and ``worded`` int [S'], those sentences; ``weights`` float32 [W], ``facts`` bool [W] (see
    ``words``); ``words`` float16 [W, d], unit length or zero; ``speakers`` [S]: who says it, "" where the text is no
    dialogue; ``documents`` int [S], rising from 0: of which of several documents it is.
    """

    pieces: tuple[str, ...]
    ends: np.ndarray
    whole: np.ndarray
    vectors: np.ndarray
    forms: tuple[str, ...]
    place: np.ndarray
    starts: np.ndarray
    worded: np.ndarray
    weights: np.ndarray
    facts: np.ndarray
    words: np.ndarray
    speakers: tuple[str, ...]
    documents: np.ndarray

    def stretch(self, begin: int, stop: int) -> "Text":
        """The sentences from ``begin`` to ``stop`` alone."""
        own, said = slice(begin, stop), slice(*np.searchsorted(self.place, [begin, stop]))
        worded = slice(*np.searchsorted(self.worded, [begin, stop]))
        return Text(
            self.pieces[own], self.ends[own], self.whole[own], self.vectors[own],
            self.forms[said], self.place[said] - begin, self.starts[worded] - said.start, self.worded[worded] - begin,
            self.weights[said], self.facts[said], self.words[said], self.speakers[own],
            self.documents[own],
        )  # fmt: skip


class WordStates:
    """The encoder as the embedding cache sees it; the word vectors of what it encodes are kept beside.

    A word's vector is the mean of the last states of its tokens, scaled to unit length, read in its own sentence.
    """

    def __init__(self, encoder: Any, most: int) -> None:
        if not hasattr(encoder, "sentence_vectors"):
            raise InputError(
                f"encoder {encoder.name!r} has no token vectors, which head align compares; take a sentence-transformer"
            )
        if not encoder.model.tokenizer.is_fast:
            raise InputError(
                f"encoder {encoder.name!r}: its tokenizer does not tell where a token stands; take another"
            )
        self.encoder, self.model = encoder, encoder.model
        self.name, self.dim, self.unit = encoder.name, encoder.dim, encoder.unit
        self.fingerprint, self.counts = encoder.fingerprint, encoder.counts
        self._weigh = TermWeights(self.model.tokenizer)
        self._shift = len(encoder.prompt)
        # Of each text: its words, their vectors, and its own vector.
        self.recent = Recent[str, tuple[Words, np.ndarray, np.ndarray]](most, lambda e: e[1].nbytes + e[2].nbytes)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return sentence vectors float32 [n, dim], as the encoder's own ``encode`` gives them; word vectors are kept."""
        import torch

        result = np.zeros((len(texts), self.dim), np.float32)
        read = self.model.tokenizer(
            self.encoder.as_read(texts), truncation=True, max_length=self.model.limit, return_offsets_mapping=True
        )
        with torch.inference_mode():
            for rows, inputs in token_batches(read, self.model.tokenizer, self.model.device):
                hidden = self.model.network(**inputs).last_hidden_state
                vectors = self.encoder.sentence_vectors(hidden, inputs["attention_mask"].bool())
                result[rows] = vectors.float().cpu().numpy()
                for row, states in zip(rows, hidden.float().cpu().numpy(), strict=True):
                    offsets = np.array(read["offset_mapping"][row]) - self._shift
                    entry = (*_word_vectors(texts[row], states, offsets, self._weigh), result[row].copy())
                    self.recent.add([texts[row]], [entry])
        return result

    def cuts(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Return those of ``texts`` that have more tokens than the encoder reads, each in parts that it can read."""
        most = self.model.limit - self.model.tokenizer.num_special_tokens_to_add()
        # A token has a character at least; one beyond ASCII may be several.
        long = [text for text in texts if self._shift + len(text) > (most if text.isascii() else most // 4)]
        if not long:
            return {}
        found = self.model.tokenizer(
            self.encoder.as_read(long), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        cut = {}
        for text, offsets in zip(long, found, strict=True):
            if len(offsets) > most:
                starts = [begin - self._shift for begin, _ in offsets if begin >= self._shift]
                cut[text] = cut_tokens(text, starts, max(1, most - (len(offsets) - len(starts))))
        return cut

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Return sentence vectors float32 [n, dim], as an ``EmbeddingCache`` does, from memory alone."""
        self._encode_missing(texts)
        found = [vectors for *_, vectors in self.recent.find(texts)]
        return np.stack(found) if texts else np.zeros((0, self.dim), np.float32)

    def _encode_missing(self, texts: Sequence[str]) -> None:
        if missing := self.recent.missing(texts):
            self.encode(missing)

    def words(self, texts: Sequence[str]) -> list[tuple[Words, np.ndarray]]:
        """Return the words of each text and their vectors float16 [w, width], encoded where they are not kept."""
        self._encode_missing(texts)
        found = [entry[:2] for entry in self.recent.find(texts)]
        self.recent.trim()
        return found


def _word_vectors(text: str, states: np.ndarray, offsets: np.ndarray, weigh: TermWeights) -> tuple[Words, np.ndarray]:
    """Return the words and their unit vectors float16 [w, d] of ``states`` [L, d] and character ``offsets`` [L, 2]."""
    words = read_words(text, weigh)
    vectors = np.zeros((len(words.spans), states.shape[1]), np.float32)
    real = np.flatnonzero(offsets[:, 1] > offsets[:, 0])
    begins, stops = offsets[real, 0], offsets[real, 1]
    for row, (begin, stop) in enumerate(words.spans):
        own = real[(begins < stop) & (stops > begin)]
        if len(own):
            vectors[row] = states[own].mean(axis=0)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return words, (vectors / np.maximum(norms, 1e-9)).astype(np.float16)


class Reader:
    """Reads texts; sentence vectors go through the embedding cache, word vectors are kept at half precision.

    Threads may share one: ``alone`` is held while it reads, and by whoever asks ``views``, the documents that are kept for
    summaries still to come. ``kept``: bytes of word vectors and words of documents; ``on_disk`` false: sentence vectors
    stay in memory too.
    """

    def __init__(self, encoder: Encoder, *, kept: tuple[int, int] = _KEPT, on_disk: bool = True) -> None:
        self.alone = threading.RLock()
        self.states = WordStates(encoder, kept[0])
        self.views: Recent[bytes, DocumentView] = Recent(kept[1], lambda view: len(view.text.forms))
        self.cache: EmbeddingCache | WordStates = self.states
        if on_disk:
            self.cache = EmbeddingCache(cast("Encoder", self.states))

    def read(self, texts: Sequence[str]) -> list[Text]:
        """Return the texts, in order; sentences that several of them share are encoded once."""
        with self.alone:
            split = [pieces(text) for text in texts]
            cuts = self.states.cuts(list(dict.fromkeys(piece.text for own in split for piece in own)))
            split = [
                [part for piece in own for part in piece.split(cuts.get(piece.text, [piece.text]))] for own in split
            ]
            every = list(dict.fromkeys(piece.text for own in split for piece in own))
            vectors = self.cache.rows(every)
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
            row = {sentence: number for number, sentence in enumerate(every)}
            known = dict(zip(every, self.states.words(every), strict=True))
            return [self._text(own, vectors[[row[piece.text] for piece in own]], known) for own in split]

    def _text(self, own: list[Piece], vectors: np.ndarray, known: dict[str, tuple[Words, np.ndarray]]) -> Text:
        parts = [known[piece.text] for piece in own]
        counts = np.array([len(words.forms) for words, _ in parts], int)
        worded = np.flatnonzero(counts)
        return Text(
            pieces=tuple(piece.text for piece in own),
            ends=np.array([words.ends or not piece.closes for piece, (words, _) in zip(own, parts, strict=True)], bool),
            whole=np.array([piece.opens and piece.closes for piece in own], bool),
            vectors=vectors,
            forms=tuple(chain.from_iterable(words.forms for words, _ in parts)),
            place=np.repeat(np.arange(len(own)), counts),
            starts=(np.cumsum(counts) - counts)[worded],
            worded=worded,
            # The empty ones are for a text without a piece.
            weights=np.concatenate([np.zeros(0, np.float32), *(words.weights for words, _ in parts)]),
            facts=np.concatenate([np.zeros(0, bool), *(words.facts for words, _ in parts)]),
            words=np.concatenate([np.zeros((0, self.states.model.width), np.float16), *(own for _, own in parts)]),
            speakers=tuple(piece.speaker for piece in own),
            documents=np.array([piece.document for piece in own], int),
        )


# Readers live as long as what reads with them.
_SHARED: WeakValueDictionary[tuple[object, ...], Reader] = WeakValueDictionary()
_SHARING = threading.Lock()


def shared_reader(encoder: Any, kept: tuple[int, int] = _KEPT) -> Reader:
    """The one reader of this process that keeps as much, for what reads with ``encoder``'s weights on its device, so that models
    that compare the same texts read them once. A fingerprint tells precisions apart. Raises InputError as ``WordStates``."""
    device = getattr(getattr(encoder, "model", None), "device", None)
    which = (encoder.fingerprint, str(device), str(cache_root()), kept)
    with _SHARING:
        reader = _SHARED.get(which) or Reader(encoder, kept=kept)
        _SHARED[which] = reader
    return reader

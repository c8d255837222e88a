"""Texts as bags of word vectors, sentence vectors, or both, for the mover's similarities (Clark et al. 2019, §2–3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.tokens import content_spans
from negsample.eval.metrics.vectors import encode_distinct
from negsample.sentences import split_sentences
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder
    from negsample.models.encoders.transformer import TransformerEncoder
    from negsample.models.language.networks import Pretrained

NO_WORD = "has no content word"
UNKNOWN = "has more content words that the encoder does not know than others"


@dataclass(frozen=True, eq=False)
class Bag:
    """A text as weight on points: ``points`` int64 [k], ascending and distinct, rows of a matrix of vectors;
    ``weights`` float64 [k], positive, of sum 1."""

    points: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Space:
    """``vectors`` float64 [p, d]; for each text its ``Bag`` over their rows, or what is wrong with it."""

    vectors: np.ndarray
    bags: Mapping[str, Bag | str]


def reads_tokens(encoder: "Encoder") -> bool:
    """Whether ``encoder`` can give a vector for each word in its sentence (the encoder ``hf``)."""
    from negsample.models.encoders.transformer import TransformerEncoder

    return isinstance(encoder, TransformerEncoder) and encoder.name == "hf"


def make_space(texts: Sequence[str], encoder: "Encoder", *, words: bool, sentences: bool) -> Space:
    """The bags of ``texts`` with ``words``, ``sentences`` or both as points.

    Stop words and punctuation are left out, and so are words without a vector, unless they are most; n is the number of
    words that remain.
    A word's weight is its count / n, a sentence's the number of its words / n, halved where both are points. A
    sentence's vector is the mean of its words' vectors; only with an encoder of whole sentences (which can't give
    ``words``) it is the encoder's, and then every content word counts.

    An encoder with ``unit="word"`` gives each word type one vector; a token encoder gives each token in each sentence
    its own.
    """
    split = {text: split_sentences(readable(text)) for text in texts}
    distinct = sorted({sentence for found in split.values() for sentence in found})
    if encoder.unit != "word" and not reads_tokens(encoder):
        if words:
            raise ValueError("an encoder of whole sentences has no word vectors")
        return _sentence_space(split, distinct, encoder)
    vectors, ids_of, total_of = _word_points(distinct, encoder)
    centres: dict[tuple[int, ...], int] = {}
    bags: dict[str, Bag | str] = {}
    for text, found in split.items():
        pieces = [ids for sentence in found if len(ids := ids_of[sentence])]
        total = sum(total_of[sentence] for sentence in found)
        if not total or 2 * sum(map(len, pieces)) < total:
            bags[text] = UNKNOWN if total else NO_WORD
            continue
        points: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        if words:
            points_of_words, count = np.unique(np.concatenate(pieces), return_counts=True)
            points.append(points_of_words)
            counts.append(count)
        if sentences:
            keys = [centres.setdefault(tuple(ids.tolist()), len(centres)) for ids in pieces]
            rows, count = _summed(np.array(keys), np.array([len(ids) for ids in pieces]))
            points.append(rows + len(vectors))
            counts.append(count)
        weights = np.concatenate(counts)
        bags[text] = Bag(np.concatenate(points), weights / weights.sum())
    if centres:
        # The ids are sorted, so that a sentence's words in another order give the same sum to the last bit.
        means = np.stack([vectors[list(ids)].mean(axis=0) for ids in centres])
        vectors = np.concatenate([vectors, means])
    return Space(vectors, bags)


def _summed(keys: np.ndarray, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct ``keys``, ascending, and the sum of ``amounts`` of each."""
    distinct, places = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(places, weights=amounts)


def _word_points(
    distinct: Sequence[str], encoder: "Encoder"
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, int]]:
    """Vectors of the words [p, d], the ascending ids of each sentence's known words, and how many it has."""
    if reads_tokens(encoder):
        blocks = words_in_context(encoder, distinct)  # type: ignore[arg-type]
        ends = np.cumsum([len(block) for block in blocks], dtype=np.int64)
        ids_of = {
            sentence: np.arange(end - len(block), end)
            for sentence, block, end in zip(distinct, blocks, ends, strict=True)
        }
        vectors = np.concatenate(blocks) if blocks else np.zeros((0, encoder.dim))
        return vectors.astype(np.float64), ids_of, {sentence: len(ids) for sentence, ids in ids_of.items()}
    # Lower case is the type, unless the vectors tell cases apart.
    lower = getattr(encoder, "lower", True)
    words_of = {
        sentence: [word.lower() if lower else word for word, _, _ in content_spans(sentence)] for sentence in distinct
    }
    types = sorted({word for found in words_of.values() for word in found})
    vectors = np.asarray(encoder.encode(types), dtype=np.float64).reshape(len(types), encoder.dim)
    row_of = {types[row]: row for row in np.flatnonzero(vectors.any(axis=1))}
    ids_of = {
        sentence: np.array(sorted(row_of[word] for word in found if word in row_of), dtype=np.int64)
        for sentence, found in words_of.items()
    }
    return vectors, ids_of, {sentence: len(found) for sentence, found in words_of.items()}


def _sentence_space(split: Mapping[str, Sequence[str]], distinct: Sequence[str], encoder: "Encoder") -> Space:
    amount_of = {sentence: len(content_spans(sentence)) for sentence in distinct}
    counted = [sentence for sentence in distinct if amount_of[sentence]]
    vectors = encode_distinct(encoder, counted).astype(np.float64)
    row_of = {counted[row]: row for row in np.flatnonzero(vectors.any(axis=1))}
    bags: dict[str, Bag | str] = {}
    for text, found in split.items():
        usable = [sentence for sentence in found if sentence in row_of]
        if not usable:
            bags[text] = UNKNOWN if any(amount_of[sentence] for sentence in found) else NO_WORD
            continue
        rows = np.array([row_of[sentence] for sentence in usable])
        points, amounts = _summed(rows, np.array([amount_of[sentence] for sentence in usable]))
        bags[text] = Bag(points, amounts / amounts.sum())
    return Space(vectors, bags)


# --- words in their sentences, in the role of Clark et al. 2019's ELMo


def words_in_context(encoder: "TransformerEncoder", sentences: Sequence[str]) -> list[np.ndarray]:
    """For each sentence the vectors of its content words, in order; float32 [words, d] each.

    Each sentence is read whole and alone, and function words and punctuation are left out afterwards (Clark et al.
    2019, A.1). A word's vector is the mean over its tokens, in the encoder's ``layers``. A sentence beyond the model's
    longest input is read in pieces that end between words. Of a single "word" beyond it only the tokens that were read
    count.

    Raises InputError where the model's tokenizer can't say which characters a token stands for.
    """
    import torch

    from negsample.models.encoders import as_texts

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

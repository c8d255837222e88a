"""What all metrics share: how a function becomes one, what a summary is compared with, means over documents; tokens and function
words, all of them of the folded text.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import numpy as np

from negsample import __version__
from negsample.errors import InputError
from negsample.records import Judged, in_one
from negsample.registry import plain, suggestion, write
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.terminal import Bar
from negsample.text import fold, straight, word_spans, word_tokens

Results = Iterable[float | str]
"""One result an item: a number, or a text that says why there is none."""
Score = Callable[[Sequence[Item]], Results | Columns]
# Items that a model reads between two movements of the bar.
_CHUNK = 1024
Against = Literal["auto", "references", "document"]


def metric(
    name: str,
    *,
    needs: Iterable[str] | Callable[[Mapping[str, Any]], Iterable[str]] = (),
    higher_is_better: bool = True,
) -> Callable[[Callable[..., Score | tuple[Score, str]]], Callable[..., Scorer]]:
    """Make of a function the factory of the metric ``name``: called with options it gives a ``Scorer``.

    The function's keyword parameters are the options, all with defaults; those annotated as ``Literal`` are checked here.
    Name and signature tell them in their order, but for ``device``. It returns what scores items, and may return the end of
    the signature too: what else the number depends on. ``needs``: as of `Scorer`, or a function of the options; an option
    ``against`` decides by itself.
    """

    def decorated(function: Callable[..., Score | tuple[Score, str]]) -> Callable[..., Scorer]:
        parameters = inspect.signature(function, eval_str=True).parameters

        @functools.wraps(function)
        def make(**given: Any) -> Scorer:
            options = {key: parameter.default for key, parameter in parameters.items()} | given
            for key, parameter in parameters.items():
                if get_origin(parameter.annotation) is Literal:
                    choice(key, options[key], get_args(parameter.annotation))
            made = function(**options)
            score, more = made if isinstance(made, tuple) else (made, "")
            told = {key: value for key, value in options.items() if key != "device"}
            wanted = needs(options) if callable(needs) else needs
            if "against" in options:
                wanted = () if options["against"] == "auto" else (options["against"],)

            def columns(items: Sequence[Item]) -> Columns:
                found = score([Item(in_one(item.document), item.summary, item.references) for item in items])
                return found if isinstance(found, Columns) else collect(found)

            canonical = write(name, told, {key: parameter.default for key, parameter in parameters.items()})
            return Scorer(canonical, signature_of(name, told) + more, higher_is_better, frozenset(wanted), columns)

        return make

    return decorated


def signature_of(name: str, options: Mapping[str, object]) -> str:
    """Return the signature of a metric with ``options``."""
    told = (f"{key}:{plain(value)}" for key, value in options.items())
    return "|".join([f"metric:{name}", *told, f"version:{__version__}"])


def choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` where it is one of ``allowed``; else InputError with the nearest."""
    if value not in allowed:
        raise InputError(f"option {option}={value}: {suggestion(str(value), list(allowed))}")
    return value


def number(option: str, value: int, low: int, high: int) -> int:
    """Return ``value`` where it is in [low, high]; else InputError."""
    if not low <= value <= high:
        raise InputError(f"option {option}={value}: give a whole number from {low} to {high}")
    return value


def targets_of(item: Item, against: str) -> tuple[str, ...]:
    """Pick what to compare ``item``'s summary with: its references, its document, or (``auto``) the references where
    there are any, else the document. Empty where references are asked for and there are none."""
    if against == "document" or (against == "auto" and not item.references):
        return (item.document,)
    return item.references


def compare_with_targets(
    item: Item,
    against: str,
    problem: Callable[[str], str | None],
    similarity: Callable[[str, str], float | str],
) -> float | str:
    """Return the similarity of a summary with its targets, or the reason why there is none.

    ``problem(text)`` says what keeps a text from being compared (``"has no …"``), None where nothing does;
    ``similarity(summary, target)`` gives a number or a reason. A target that can't be compared is passed over where
    another can; of those that are left the best counts.
    """
    targets = targets_of(item, against)
    if not targets:
        return "no reference"
    if reason := problem(item.summary):
        return f"the summary {reason}"
    reasons = {target: problem(target) for target in targets}
    usable = [target for target in targets if not reasons[target]]
    if not usable:
        return f"the {'reference' if targets is item.references else 'document'} {reasons[targets[0]]}"
    values = []
    for target in usable:
        value = similarity(item.summary, target)
        if isinstance(value, str):
            return value
        values.append(value)
    return max(values)


def score_judged(scorer: Scorer, rows: Sequence[Judged]) -> Columns:
    """Score judged summaries, [n]; for a row with several documents every column is the mean over them.

    A metric that does not read the document is computed once a row. A mean is missing where a score is missing for one of
    the documents. Equal texts are scored once.
    """
    items: list[list[Item]] = []
    for row in rows:
        reads_document = "document" in scorer.needs or not row.references
        documents = row.documents if reads_document else row.documents[:1]
        items.append([Item(document, row.summary, row.references) for document in documents])
    # Summaries of one document stand together, so that a chunk reads few documents.
    order = sorted(
        {item for own in items for item in own}, key=lambda item: (item.document, item.summary, item.references)
    )
    place = {item: k for k, item in enumerate(order)}
    found = _in_chunks(scorer, order)
    at = [[place[item] for item in own] for own in items]

    def means(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        wide = {name: column.astype(np.float64) for name, column in columns.items()}
        return {name: np.array([column[own].mean() for own in at]) for name, column in wide.items()}

    reasons = [next((found.reasons[k] for k in own if found.reasons[k] is not None), None) for own in at]
    cut = np.array([found.cut[own].any() for own in at], dtype=bool)
    return Columns(means({"": found.scores})[""], reasons, cut, means(found.aspects))


def _in_chunks(scorer: Scorer, items: Sequence[Item]) -> Columns:
    """``scorer.score(items)``; a model reads some at a time, so that the bar moves, a metric all at once, which may sort them."""
    if scorer.signature.startswith("metric:") or len(items) <= _CHUNK:
        return scorer.score(items)
    parts = []
    with Bar(scorer.name, total=len(items)) as bar:
        for part in (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)):
            parts.append(scorer.score(part))
            bar.advance(len(part))
    aspects = {name: np.concatenate([part.aspects[name] for part in parts]) for name in parts[0].aspects}
    scores, cut = (np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "cut"))
    return Columns(scores, [reason for part in parts for reason in part.reasons], cut, aspects)


# --- tokens

# English function words: articles, pronouns, prepositions, conjunctions, auxiliaries, and a few adverbs that carry no
# topic. "s", "t" and the like are what clitics leave behind when punctuation goes.
_FUNCTION_WORDS = """
a an the this that these those some any each every either neither both all most much many more few less no
none i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
her hers herself it its itself they them their theirs themselves who whom whose which what one ones someone
anyone everyone something anything everything nothing nobody there here where when why how of in on at by for
from to into onto with without within about above below over under between among through during before after
since until till against across along around behind beside besides beyond despite down up off out near per
than toward towards upon via as and or but nor so yet if because although though while whereas unless whether
then else am is are was were be been being do does did done doing have has had having will would shall should
can could may might must ought need not n very too also just only even still again already ever never always
often such same other another own rather quite almost now once however therefore thus s t d ll m re ve don
didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

# Bytes table: a–z and 0–9 stay, every other byte becomes a space. Four times as fast as a regular expression.
_ROUGE_BYTES = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else 32 for code in range(256))


def content_words(text: str) -> list[str]:
    """``word_tokens`` without the function words, numbers kept."""
    return [token for token in word_tokens(text) if token not in STOP_WORDS]


def content_spans(text: str) -> list[tuple[str, int, int]]:
    """Return the words that are not function words, with straight apostrophes, and where each stands in ``text``.

    ``text`` is as encoders are given it (``readable``).
    """
    plain = straight(text)
    spans = ((plain[begin:stop], begin, stop) for begin, stop in word_spans(text))
    return [found for found in spans if found[0].lower() not in STOP_WORDS]


def rouge_tokens(text: str) -> list[str]:
    """ROUGE's tokens: lower case, runs of a–z and 0–9; everything else is a gap (so other scripts give none)."""
    return fold(text).lower().encode("ascii", "replace").translate(_ROUGE_BYTES).decode("ascii").split()


def ngrams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """The n-grams of ``tokens`` in order; none where there are fewer than n."""
    return zip(*(tokens[start:] for start in range(n)), strict=False)

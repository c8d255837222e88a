"""What a scorer leaves unread of records, and what kind of text they are, where an aspect is known to be worth little."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from negsample.errors import RecordError
from negsample.io.read import document_field, text_field
from negsample.records import Row, documents_of, told_document
from negsample.sentences import turns
from negsample.text import is_english, word_tokens

if TYPE_CHECKING:
    from negsample.scoring.files import Settings
    from negsample.scoring.scorer import Scorer
    from negsample.scoring.tally import Tally

KINDS = ("short turns", "several documents", "not English", "in words of their own")
"""What ``text_kind`` tells apart."""
WORTHLESS: dict[str, tuple[str, ...]] = {
    "short turns": ("form",),
    "several documents": ("support", "coherence", "form"),
    "not English": (),
    "in words of their own": (),
}
"""Kind → aspects of the ready estimator that did not go with people's scores on such texts (docs/kinds.md)."""
# Words of a turn, on average, that make a meeting's of a chat's; the share of pairs of words that are copied.
_SHORT, _COPIED = 30, 0.25
# Records of a file by which its kind is told, and of these the share that makes it one.
_LOOKED_AT, _MOST = 200, 0.5


def text_kind(document: str, summary: str) -> frozenset[str]:
    """Those of ``KINDS`` that a pair is: ``document`` a dialogue whose turns have under 30 words on average; several
    (``joined``); not English; fewer than a quarter of the summary's pairs of neighbouring words stand in it.
    """
    several, read, said = documents_of(document), word_tokens(document), list(pairwise(word_tokens(summary)))
    spoken = [turn for text in several for turn in turns(text) or ()]
    known = set(pairwise(read))
    found = (
        bool(spoken) and len(read) < _SHORT * len(spoken),
        len(several) > 1,
        not is_english(document),
        bool(said) and sum(pair in known for pair in said) < _COPIED * len(said),
    )
    return frozenset(kind for kind, is_so in zip(KINDS, found, strict=True) if is_so)


def look(rows: Sequence[Row], scorer: "Scorer", settings: "Settings", tally: "Tally") -> None:
    """Count in ``tally`` the records of which ``scorer`` leaves something unread, and of the first 200 their kinds."""
    for row in rows:
        documents = told_document(row.fields, settings.document_field)
        if row.fields.get("question") not in (None, ""):
            tally.unread["a question, which this score does not read"] += 1
        if isinstance(documents, list) and len(documents) > 1 and not scorer.several:
            tally.unread["several documents, read as one text"] += 1
    for row in islice(rows, max(0, _LOOKED_AT - tally.kinds["all"])):
        try:
            texts = document_field(row, settings.document_field), text_field(row, settings.summary_field)
        except RecordError:
            continue
        tally.kinds.update(("all", *text_kind(*texts)))


def notices(kinds: Counter[str], aspects: Collection[str]) -> Iterator[str]:
    """A line for each kind that most of the records are, where some of ``aspects`` are worth nothing."""
    for kind in KINDS:
        worthless = [aspect for aspect in WORTHLESS[kind] if aspect in aspects]
        if worthless and kinds[kind] > _MOST * kinds["all"]:
            told = " and ".join(worthless)
            yield f"most records are of the kind {kind!r}, on which {told} told nothing of people's scores (docs/kinds.md)"

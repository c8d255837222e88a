"""From pairs to labelled examples in three files: read once, split by document, damage, write; and those of one pair."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import new_folder
from negsample.io.write import open_writer
from negsample.negatives import ENGLISH, NEGATIVES
from negsample.negatives.context import Borrowed, CannotDamage, Context, Damaged
from negsample.negatives.index import PairIndex, PairStore, fingerprint, index_of, padded, summary_digest
from negsample.negatives.recipe import Recipe
from negsample.negatives.split import SPLITS, assign
from negsample.negatives.vocabulary import Vocabulary, VocabularyCounter
from negsample.records import Example, Pair
from negsample.seeds import digest, generator
from negsample.terminal import Bar
from negsample.text import is_english

# How often a kind is tried again where it gave a good summary of the document, or a negative made already.
_TRIES = 8

Part = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The split of each document, uint8 [documents], numbers as in ``SPLITS`` or higher for none; takes what ``assign`` takes."""


def generate(
    pairs: Iterable[Pair],
    recipe: Recipe,
    out: Path,
    *,
    negatives: int = 1,
    seed: int = 0,
    vocabulary: str = "uniform",
    redraws: int = 1,
    part: Part | None = None,
) -> dict[str, Any]:
    """Write ``train.jsonl.gz``, ``validation.jsonl.gz`` and ``test.jsonl.gz`` to the new folder ``out``.

    Each pair gives its original (label 1) and ``negatives`` damaged ones by ``recipe``, one JSON object a line with the
    fields of ``Example``; in the training split ``redraws`` times as many, of which each epoch sees the next set. Words are
    drawn "uniform" over the ``vocabulary`` or by "frequency". ``part``, where given, says which document goes to which
    split, in place of ``seed``.

    The files depend on the pairs and options, not on the order of the pairs. ``id`` is the pair's id and what became of it
    (``"17/delete-2"``); a pair id that is not unique is extended by corpus or hash. Pairs of one document have the same
    ``document_id``: the id of the first of them in the order of the hashes of their summaries.

    Memory does not grow with the texts: they are kept in a temporary file. The folder appears when all is complete; an
    exception before that leaves nothing.

    Returns, as plain values for ``run.json``: the ``recipe``; how many ``pairs`` were read, ``duplicates`` of them that said
    the same as another and were left out, ``documents``, those ``linked`` by a summary text to another; types in the
    ``vocabulary``; ``splits`` (``ExampleMaker.report``); ``fingerprint``, the SHA-256 of all pairs' hashes in any order.

    Raises InputError: too few documents or too few different summaries for the splits, a split for which not one
    negative can be made, a folder that holds something or can't be written, a full disk; and whatever ``pairs`` raises.
    """
    with new_folder(str(out)) as folder, PairStore(folder) as store, Bar("negatives") as bar:

        def stored() -> Iterator[Pair]:
            for pair in pairs:
                yield pair
                store.append(pair)
                bar.advance(note="reading")

        index = index_of(stored())
        keys = index.key[index.first[:-1]]
        split = part(keys, index.group) if part else assign(keys, index.group, seed)
        source = _Source(store, index)
        words = _count_words(source, split, vocabulary, bar)
        reports = {}
        for number, name in enumerate(SPLITS):
            positions = np.flatnonzero(split[index.document] == number)
            context = Context(words, index, positions, source.borrow)
            maker = ExampleMaker(context, recipe, negatives * (redraws if name == "train" else 1), seed)
            with open_writer(folder / f"{name}.jsonl.gz") as writer:
                for position in positions.tolist():
                    first = int(index.first[index.document[position]])
                    for example in maker.examples(source.pair(position), source.pair(first).id, position):
                        writer.write(example.as_dict())
                    bar.advance(note=name)
            reports[name] = maker.report(name)
    return {
        "recipe": str(recipe),
        "pairs": len(index.number) + index.duplicates,
        "duplicates": index.duplicates,
        "documents": len(index.group),
        "linked": int(np.sum(np.bincount(index.group)[index.group] > 1)),
        "vocabulary": len(words.words),
        "splits": reports,
        "fingerprint": fingerprint(index),
    }


@dataclass(frozen=True, slots=True)
class _Source:
    """The distinct pairs by position, with ids that are unique."""

    store: PairStore
    index: PairIndex

    def pair(self, position: int) -> Pair:
        pair = self.store.pair(int(self.index.number[position]))
        state = self.index.id_state[position]
        if not state:
            return pair
        name = f"{pair.corpus}:{pair.id}" if pair.corpus else pair.id
        if state == 2:
            texts = digest(padded(self.index.key[position]), padded(self.index.summary[position]), size=6)
            name = f"{name}#{texts.hex()}"
        return replace(pair, id=name)

    def borrow(self, position: int) -> Borrowed:
        pair = self.pair(position)
        return Borrowed(pair.summary, pair.id)


def _count_words(source: _Source, part: np.ndarray, draw: str, bar: Bar) -> Vocabulary:
    """The vocabulary of the training split; each document counts once, however many summaries it has."""
    index = source.index
    counter = VocabularyCounter()
    # In the order of the file: the counts do not depend on it, and the disk is read from end to end.
    positions = np.flatnonzero(part[index.document] == 0)
    for position in positions[np.argsort(index.number[positions])].tolist():
        pair = source.pair(position)
        if index.first[index.document[position]] == position:
            counter.add(pair.document)
        counter.add(pair.summary)
        bar.advance(note="vocabulary")
    return counter.finish(draw)


class ExampleMaker:
    """Makes the examples of a split's pairs: of each its original and up to ``count`` negatives."""

    def __init__(self, context: Context, recipe: Recipe, count: int, seed: int) -> None:
        self.context, self.recipe, self.count, self.seed = context, recipe, count, seed
        self.negatives: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.missing = self.repeated = 0

    def report(self, split: str) -> dict[str, Any]:
        """What was made, as plain values: ``documents``, ``originals``, ``negatives`` by kind; ``refusals``, how often, by
        ``"kind: reason"``, a kind could not be made (a mixture then tries its others); how many were ``missing``, because
        no kind could make one; ``repeated``, as no different one was found; ``fingerprint``, of the pairs' hashes.

        Raises InputError where there are pairs and not one negative of them.
        """
        index, positions = self.context.index, self.context.positions
        documents = len(np.unique(index.document[positions]))
        refusals = dict(sorted(self.refusals.items()))
        if len(positions) and not self.negatives:
            reasons = ", ".join(f"{reason} ({count} times)" for reason, count in refusals.items())
            raise InputError(
                f"not one negative can be made for the {split} split ({documents} document{'' if documents == 1 else 's'}) "
                f"by recipe {self.recipe}: {reasons}; give more and other documents, 6 or more whose summaries differ, "
                "or choose another recipe"
            )
        return {
            "documents": documents,
            "originals": len(positions),
            "negatives": dict(sorted(self.negatives.items())),
            "refusals": refusals,
            "missing": self.missing,
            "repeated": self.repeated,
            "fingerprint": fingerprint(index, positions),
        }

    def examples(self, pair: Pair, document_id: str, position: int) -> Iterator[Example]:
        """Make the examples of ``pair``, which stands at ``position`` in the context's index.

        Each negative is drawn by a generator of its own, made from seed, document, summary and its number, so that
        nothing else has a say in it. Ids are ``"<pair id>/original"`` and ``"<pair id>/<kind>-<number>"``.
        """
        index = self.context.index
        yield Example(
            f"{pair.id}/original", document_id, pair.document, pair.summary, 1.0, "original", domain=pair.domain
        )
        document = index.document[position]
        goods = {padded(digest) for digest in index.summary[index.first[document] : index.first[document + 1]].tolist()}
        seen: set[bytes] = set()
        key, summary = padded(index.key[position]), padded(index.summary[position])
        for draw in range(1, self.count + 1):
            made = self._damage(pair, generator(self.seed, "negative", key, summary, draw), goods, seen)
            if made is None:
                self.missing += 1
                continue
            kind, damaged = made
            self.negatives[kind] += 1
            name = f"{pair.id}/{kind}-{draw}"
            told: dict[str, Any] = {"change": damaged.change, "domain": pair.domain}
            yield Example(name, document_id, pair.document, damaged.summary, damaged.label, kind, **told)

    def _damage(
        self, pair: Pair, rng: np.random.Generator, goods: set[bytes], seen: set[bytes]
    ) -> tuple[str, Damaged] | None:
        """Make one negative; its kind and what it is, or None where no kind can make one.

        It is never one of the document's own summaries (``goods``), and one that was ``seen`` only where nothing else
        came.
        """
        for kind in self.recipe.order(rng):
            repeated = None
            try:
                if kind in ENGLISH and not is_english(pair.document):
                    raise CannotDamage("the document is not in English")
                for _ in range(_TRIES):
                    damaged = _checked(kind, NEGATIVES.get(kind)(pair, self.context, rng))
                    text = summary_digest(damaged.summary)
                    if text in goods:
                        continue
                    if text not in seen:
                        seen.add(text)
                        return kind, damaged
                    repeated = damaged
            except CannotDamage as refusal:
                self.refusals[f"{kind}: {refusal.reason}"] += 1
                continue
            if repeated is not None:
                self.repeated += 1
                return kind, repeated
            self.refusals[f"{kind}: equals a summary of the document"] += 1
        return None


def _checked(kind: str, damaged: Any) -> Damaged:
    """``damaged``, after a check that a kind from another package keeps to the contract."""
    if not isinstance(damaged, Damaged) or not damaged.summary.strip() or not (0 <= damaged.label <= 1):
        raise InputError(f"negative {kind!r} gave {damaged!r:.200}; it must give a text and a label from 0 to 1")
    return damaged

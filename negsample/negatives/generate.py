"""From pairs to labelled examples in three files: read once, split by document, damage, write."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.io.pair_store import Spool
from negsample.io.write import Writer, open_writer
from negsample.negatives.context import Borrowed, Context
from negsample.negatives.examples import Tally, examples_of
from negsample.negatives.index import IndexBuilder, PairIndex, fingerprint, padded
from negsample.negatives.recipe import Recipe
from negsample.negatives.split import SPLITS, Shares, assign
from negsample.negatives.vocabulary import DRAWS, Vocabulary, VocabularyCounter
from negsample.records import Pair
from negsample.seeds import digest

Part = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The split of each document, uint8 [documents], numbers as in ``SPLITS`` or higher for none; takes what ``assign`` takes."""
Progress = Callable[[str, int, int | None], None]
"""Called with the stage ("reading", "vocabulary" or a split), what is done, and of how many (None: not known)."""


@dataclass(frozen=True)
class GenerateOptions:
    """What to make: ``negatives`` of each pair by ``recipe``; ``vocabulary`` is drawn "uniform" or by "frequency".

    The training split holds ``redraws`` times as many negatives of each pair, for epochs that take turns with them.

    Raises InputError for fewer than one negative or another vocabulary.
    """

    recipe: Recipe
    negatives: int = 1
    seed: int = 0
    shares: Shares = field(default_factory=Shares)
    vocabulary: str = "uniform"
    redraws: int = 1

    def __post_init__(self) -> None:
        if self.negatives < 1:
            raise InputError(f"negatives {self.negatives}: give 1 or more")
        if self.redraws < 1:
            raise InputError(f"redraws {self.redraws}: give 1 or more")
        if self.vocabulary not in DRAWS:
            raise InputError(f"vocabulary {self.vocabulary!r} is not known; choose {' or '.join(DRAWS)}")


@dataclass(frozen=True)
class SplitReport:
    """What one split holds.

    ``negatives`` counts by kind; ``refusals`` counts, by ``"kind: reason"``, how often a kind could not be made (a
    mixture then tries its others); ``missing`` negatives could be made by no kind; ``repeated`` ones agree with another
    negative of the same pair, because no different one was found. ``fingerprint`` is the SHA-256 of its pairs' hashes.
    """

    documents: int
    originals: int
    negatives: Mapping[str, int]
    refusals: Mapping[str, int]
    missing: int
    repeated: int
    fingerprint: str


@dataclass(frozen=True)
class GenerateReport:
    """What was made of a corpus, as it goes into ``run.json`` (``dataclasses.asdict``).

    ``pairs`` were read; ``duplicates`` of them said the same as another and were left out; ``linked`` documents share a
    summary text with another. ``vocabulary`` is the number of word types that can be drawn.
    ``fingerprint`` is the SHA-256 of all pairs' hashes, whatever their order.
    """

    recipe: str
    pairs: int
    duplicates: int
    documents: int
    linked: int
    vocabulary: int
    splits: Mapping[str, SplitReport]
    fingerprint: str


def generate(
    pairs: Iterable[Pair],
    options: GenerateOptions,
    out: Path,
    *,
    progress: Progress | None = None,
    part: Part | None = None,
) -> GenerateReport:
    """Write ``train.jsonl.gz``, ``validation.jsonl.gz`` and ``test.jsonl.gz`` to the folder ``out``.

    Each pair gives its original (label 1) and ``options.negatives`` damaged ones, one JSON object a line with the
    fields of ``Example``. The files depend on the pairs and options, not on the order of the pairs. ``id`` is the
    pair's id and what became of it (``"17/delete-2"``); a pair id that is not unique is extended by corpus or hash.
    Pairs of one document have the same ``document_id``: the id of the first of them in the order of the hashes of their
    summaries.

    ``part``, where given, says which document goes to which split, in place of seed and shares.

    Memory does not grow with the texts: they are kept in a temporary file in ``out``. The three files appear, replacing
    those that stand in ``out`` already, when all are complete; an exception before that changes nothing.

    Raises InputError: too few documents or too few different summaries for the splits, a split for which not one
    negative can be made, a folder that can't be written, a full disk; and whatever ``pairs`` raises.
    """
    with _workplace(out) as folder, Spool(folder) as spool:
        index = _collect(pairs, spool, progress)
        keys = index.key[index.first[:-1]]
        split = part(keys, index.group) if part else assign(keys, index.group, options.seed, options.shares)
        source = _Source(spool, index)
        vocabulary = _count_words(source, split, options.vocabulary, progress)
        reports = {}
        for number, name in enumerate(SPLITS):
            positions = np.flatnonzero(split[index.document] == number)
            with open_writer(folder / f"{name}.jsonl.gz") as writer:
                context = Context(vocabulary, index, positions, source.borrow)
                reports[name] = _write_split(name, source, context, options, writer, progress)
        for name in SPLITS:
            os.replace(folder / f"{name}.jsonl.gz", out / f"{name}.jsonl.gz")
    return GenerateReport(
        recipe=str(options.recipe),
        pairs=len(index.number) + index.duplicates,
        duplicates=index.duplicates,
        documents=len(index.group),
        linked=int(np.sum(np.bincount(index.group)[index.group] > 1)),
        vocabulary=len(vocabulary.words),
        splits=reports,
        fingerprint=fingerprint(index),
    )


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A temporary folder in ``out``, which is made; on an exception both are gone again."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".negsample-", dir=out))
    except OSError as error:
        _remove_empty(made)
        raise failure(str(out), error) from error
    try:
        yield folder
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty(made)
        if isinstance(error, OSError) and error.filename is not None and str(error.filename).startswith(str(out)):
            raise failure(str(out), error) from error
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _collect(pairs: Iterable[Pair], spool: Spool, progress: Progress | None) -> PairIndex:
    builder = IndexBuilder()
    for pair in pairs:
        builder.add(pair)
        spool.append(pair)
        if progress:
            progress("reading", len(spool), None)
    return builder.finish()


@dataclass(frozen=True, slots=True)
class _Source:
    """The distinct pairs by position, with ids that are unique."""

    spool: Spool
    index: PairIndex

    def name(self, position: int, identifier: str, corpus: str) -> str:
        state = self.index.id_state[position]
        if not state:
            return identifier
        full = f"{corpus}:{identifier}" if corpus else identifier
        if state == 1:
            return full
        texts = digest(padded(self.index.key[position]), padded(self.index.summary[position]), size=6)
        return f"{full}#{texts.hex()}"

    def pair(self, position: int) -> Pair:
        pair = self.spool.pair(int(self.index.number[position]))
        return Pair(self.name(position, pair.id, pair.corpus), pair.document, pair.summary, pair.corpus)

    def borrow(self, position: int) -> Borrowed:
        identifier, corpus, summary = self.spool.head(int(self.index.number[position]))
        return Borrowed(summary, self.name(position, identifier, corpus))

    def document_id(self, position: int) -> str:
        first = int(self.index.first[self.index.document[position]])
        identifier, corpus, _ = self.spool.head(int(self.index.number[first]))
        return self.name(first, identifier, corpus)


def _count_words(source: _Source, part: np.ndarray, draw: str, progress: Progress | None) -> Vocabulary:
    """The vocabulary of the training split; each document counts once, however many summaries it has."""
    index = source.index
    counter = VocabularyCounter()
    # In the order of the file: the counts do not depend on it, and the disk is read from end to end.
    positions = np.flatnonzero(part[index.document] == 0)
    positions = positions[np.argsort(index.number[positions])]
    for done, position in enumerate(positions.tolist(), start=1):
        pair = source.pair(position)
        if index.first[index.document[position]] == position:
            counter.add(pair.document)
        counter.add(pair.summary)
        if progress:
            progress("vocabulary", done, len(positions))
    return counter.finish(draw)


def _write_split(
    name: str, source: _Source, context: Context, options: GenerateOptions, writer: Writer, progress: Progress | None
) -> SplitReport:
    index, positions = context.index, context.positions
    tally = Tally()
    negatives = options.negatives * (options.redraws if name == "train" else 1)
    for done, position in enumerate(positions.tolist(), start=1):
        pair = source.pair(position)
        document_id = source.document_id(position)
        for example in examples_of(
            pair, document_id, position, context, options.recipe, negatives, options.seed, tally
        ):
            writer.write(example.as_dict())
        if progress:
            progress(name, done, len(positions))
    documents = len(np.unique(index.document[positions]))
    if len(positions) and not tally.negatives:
        raise InputError(_no_negatives(name, documents, options, tally.refusals))
    return SplitReport(
        documents=documents,
        originals=len(positions),
        negatives=dict(sorted(tally.negatives.items())),
        refusals=dict(sorted(tally.refusals.items())),
        missing=tally.missing,
        repeated=tally.repeated,
        fingerprint=fingerprint(index, positions),
    )


def _no_negatives(name: str, documents: int, options: GenerateOptions, refusals: Counter[str]) -> str:
    reasons = ", ".join(f"{reason} ({count} times)" for reason, count in sorted(refusals.items()))
    plural = "" if documents == 1 else "s"
    return (
        f"not one negative can be made for the {name} split ({documents} document{plural}) by recipe {options.recipe}: "
        f"{reasons}; give more and other documents, 6 or more whose summaries differ, or choose another recipe"
    )

"""From pairs to labelled examples in three files: read once, split by document, damage, write."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from negsample.errors import InputError
from negsample.io.files import check_folder, failure
from negsample.io.pair_store import PairStore
from negsample.io.write import Writer, open_writer
from negsample.negatives.context import Borrowed, Context
from negsample.negatives.examples import ExampleMaker
from negsample.negatives.index import PairIndex, fingerprint, index_of, padded
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

    The training split holds ``redraws`` times as many negatives of each pair, of which each epoch sees the next set.

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
    tell = progress or (lambda stage, done, total: None)
    with _workplace(out) as folder, PairStore(folder) as store:
        index = index_of(_stored(pairs, store, tell))
        keys = index.key[index.first[:-1]]
        split = part(keys, index.group) if part else assign(keys, index.group, options.seed, options.shares)
        source = _Source(store, index)
        vocabulary = _count_words(source, split, options.vocabulary, tell)
        reports = {}
        for number, name in enumerate(SPLITS):
            positions = np.flatnonzero(split[index.document] == number)
            with open_writer(folder / f"{name}.jsonl.gz") as writer:
                context = Context(vocabulary, index, positions, source.borrow)
                reports[name] = _write_split(name, source, context, options, writer, tell)
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
    check_folder(out)
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".negsample-", dir=out, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except BaseException as error:
        with suppress(OSError):
            for empty in made:
                empty.rmdir()
        if isinstance(error, OSError) and str(error.filename).startswith(str(out)):
            raise failure(str(out), error) from error
        raise


def _stored(pairs: Iterable[Pair], store: PairStore, progress: Progress) -> Iterator[Pair]:
    for pair in pairs:
        yield pair
        store.append(pair)
        progress("reading", len(store), None)


@dataclass(frozen=True, slots=True)
class _Source:
    """The distinct pairs by position, with ids that are unique."""

    store: PairStore
    index: PairIndex

    def _named(self, position: int, pair: Pair) -> Pair:
        state = self.index.id_state[position]
        if not state:
            return pair
        name = f"{pair.corpus}:{pair.id}" if pair.corpus else pair.id
        if state == 2:
            texts = digest(padded(self.index.key[position]), padded(self.index.summary[position]), size=6)
            name = f"{name}#{texts.hex()}"
        return replace(pair, id=name)

    def pair(self, position: int) -> Pair:
        return self._named(position, self.store.pair(int(self.index.number[position])))

    def borrow(self, position: int) -> Borrowed:
        pair = self._named(position, self.store.summary(int(self.index.number[position])))
        return Borrowed(pair.summary, pair.id)

    def document_id(self, position: int) -> str:
        return self.borrow(int(self.index.first[self.index.document[position]])).id


def _count_words(source: _Source, part: np.ndarray, draw: str, progress: Progress) -> Vocabulary:
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
        progress("vocabulary", done, len(positions))
    return counter.finish(draw)


def _write_split(
    name: str, source: _Source, context: Context, options: GenerateOptions, writer: Writer, progress: Progress
) -> SplitReport:
    index, positions = context.index, context.positions
    count = options.negatives * (options.redraws if name == "train" else 1)
    maker = ExampleMaker(context, options.recipe, count, options.seed)
    for done, position in enumerate(positions.tolist(), start=1):
        for example in maker.examples(source.pair(position), source.document_id(position), position):
            writer.write(example.as_dict())
        progress(name, done, len(positions))
    documents = len(np.unique(index.document[positions]))
    if len(positions) and not maker.negatives:
        reasons = ", ".join(f"{reason} ({count} times)" for reason, count in sorted(maker.refusals.items()))
        raise InputError(
            f"not one negative can be made for the {name} split ({documents} document{'' if documents == 1 else 's'}) "
            f"by recipe {options.recipe}: {reasons}; give more and other documents, 6 or more whose summaries differ, "
            "or choose another recipe"
        )
    return SplitReport(
        documents=documents,
        originals=len(positions),
        negatives=dict(sorted(maker.negatives.items())),
        refusals=dict(sorted(maker.refusals.items())),
        missing=maker.missing,
        repeated=maker.repeated,
        fingerprint=fingerprint(index, positions),
    )

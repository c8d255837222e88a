"""RealSumm (Bhandari et al. 2020): lite-pyramid recall of 24 systems on 100 CNN/DM documents.

The published scores are pickles, which this project never loads: a pickle runs whatever code its author chose. Convert
them once, if you trust them, with the command that the error message gives. Layout read, at DIR or below it:

- ``scores_dicts/abs.json`` and ``ext.json`` (or any ``*.json`` at DIR): ``{doc: {"doc_id", "ref_summ",
  "system_summaries": {system: {"system_summary", "scores": {"litepyramid_recall": …}}}}}``, as in the pickles;
- ``src.txt``, one document a line, line number = ``doc_id`` from 0; in the repository it is
  ``selected_docs_for_human_eval/abs/ptr_generator/src.txt``; with ``ref.txt`` beside it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Collector, Unusable, finite
from negsample.io.lines import open_text
from negsample.io.read import Row
from negsample.records import Judged

SCORE = "litepyramid_recall"
CONVERT = (
    """python -c "import json, pickle; [json.dump(pickle.load(open(n + '.pkl', 'rb')), open(n + '.json', 'w'), """
    """default=float) for n in ('abs', 'ext')]" """
).strip()
_FIELDS = ("document", "system", "summary", "reference", "score")
_TAG = re.compile(r"\s*</?t>\s*")


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``litepyramid_recall`` in [0, 1]; one reference.

    A system that stands in both files (the published ``bart_out.txt``) is taken from the extractive one, as
    SacreROUGE's reading of the data has it, and counted. Where ``ref.txt`` is there, a row whose reference shares
    fewer than half of its words with that line is left out and counted: its document would be the wrong one.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{path}: not a folder; give RealSumm's (its repository, or one with src.txt and scores)")
    source = _find(folder, "src.txt")
    if source is None:
        raise InputError(f"{path}: no src.txt in it; add the documents, one a line, in the order of doc_id")
    documents = [_untag(line) for line in open_text(source)]
    beside = source.with_name("ref.txt")
    references = [_untag(line) for line in open_text(beside)] if beside.exists() else None
    scored = _scored(folder, unusable)
    return Collector(unusable).read(scored, partial(_judged, documents=documents, references=references))


def _judged(found: Row, documents: Sequence[str], references: Sequence[str] | None) -> Judged:
    name, system, summary, reference, score = (found.fields[key] for key in _FIELDS)
    place = int(name) if name.isdecimal() else -1
    if not 0 <= place < len(documents) or not documents[place]:
        raise RecordError(found.where, "no document at line doc_id of src.txt")
    if not isinstance(summary, str) or not (summary := _untag(summary)):
        raise RecordError(found.where, "the summary is missing or blank")
    if (score := finite(score)) is None:
        raise RecordError(found.where, f"{SCORE} is missing or not a number")
    line = references[place] if references is not None and place < len(references) else None
    reference = _untag(reference) if isinstance(reference, str) and reference else line
    if line and reference and not _alike(reference, line):
        raise RecordError(found.where, "the reference is not the one at line doc_id of ref.txt")
    kept = (reference,) if reference else ()
    return Judged(name, system, (documents[place],), summary, kept, {SCORE: score}, "realsumm")


def _find(folder: Path, name: str) -> Path | None:
    """The file called ``name`` nearest to ``folder``; of several equally near the first by name."""
    found = sorted(folder.rglob(name), key=lambda place: (len(place.parts), place))
    return found[0] if found else None


def _scored(folder: Path, unusable: Unusable) -> Iterator[Row]:
    """Every scored summary of the folder's JSON files."""
    files = sorted([*folder.glob("*.json"), *folder.glob("scores_dicts/*.json")])
    if not files:
        if any(folder.rglob("*.pkl")):
            why = "the scores are pickles, which are never loaded here; if you trust them, run in their folder"
            raise InputError(f"{folder}: {why}: {CONVERT}")
        raise InputError(f"{folder}: no scores; add scores_dicts/abs.json and ext.json")
    # "ext" before "abs", so that a system in both is the extractive one.
    for file in sorted(files, key=lambda file: (file.stem != "ext", str(file))):
        try:
            table = json.loads(file.read_text(encoding="utf-8-sig"))
        except (ValueError, OSError) as error:
            raise InputError(f"{file}: not readable as JSON ({error}); convert it again") from None
        if not isinstance(table, dict):
            raise InputError(f"{file}: not an object of documents; convert it again")
        for key, entry in table.items():
            where = f"{file.name}, document {key}"
            systems = entry.get("system_summaries") if isinstance(entry, dict) else None
            if not isinstance(systems, dict):
                unusable.note("a document without 'system_summaries'", where)
                continue
            reference = entry.get("ref_summ")
            if isinstance(reference, list):
                reference = reference[0] if reference else None
            for system, given in systems.items():
                place = f"{where}, system {system}"
                if not isinstance(given, dict) or not isinstance(given.get("scores"), dict):
                    unusable.note("a system without 'scores'", place)
                    continue
                told = str(entry.get("doc_id", key)), str(system), given.get("system_summary"), reference
                yield Row(place, dict(zip(_FIELDS, (*told, given["scores"].get(SCORE)), strict=True)))


def _untag(text: str) -> str:
    """The text with one line a sentence: sentences are marked ``<t> … </t>``."""
    return "\n".join(part for part in (" ".join(piece.split()) for piece in _TAG.split(text)) if part)


def _alike(first: str, second: str) -> bool:
    """Whether at least half of the words of the shorter text stand in the other (tokenisation differs by system)."""
    a, b = set(re.findall(r"\w+", first.lower())), set(re.findall(r"\w+", second.lower()))
    return not a or not b or 2 * len(a & b) >= min(len(a), len(b))

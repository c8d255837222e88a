"""Writes a small directory in the layout of TAC 2010's guided summarization data; all texts are made here.

3 topics, 4 machine summarizers, 10 articles a docset, 4 human summaries; docset B is there too, and must not be read.
``make_tac2010(folder, packed=True)`` writes the archives that NIST hands out, ``packed=False`` the same unpacked.
"""

import io
import tarfile
from pathlib import Path

TOPICS = {
    "D1001A": ("ferry", "harbour", "storm", "captain"),
    "D1002B": ("orchard", "blight", "growers", "spray"),
    "D1003C": ("bridge", "toll", "council", "repairs"),
}
SYSTEMS = ("1", "2", "7", "43")
WRITERS = ("A", "C", "E", "H")
KINDS = ("ROUGE-1", "ROUGE-2", "ROUGE-3", "ROUGE-4", "ROUGE-L", "ROUGE-W-1.2", "ROUGE-SU4")
# Share of the topic's words that each system's summary names, so that quality falls from the first to the last.
NAMED = {"1": 4, "2": 3, "7": 2, "43": 1}


def article(topic: str, number: int, group: str) -> str:
    """One SGML article. Number 3 has no <P>, as some newswire types have not."""
    nouns = TOPICS[topic]
    noun, other = nouns[number % 4], nouns[(number + 1) % 4]
    first = f"Report {number} on the {noun} reached the {other} office."
    second = f"Nobody at the {nouns[0]} had asked for it &amp; the {other} stayed shut."
    body = f"{first}\n{second}\n" if number == 3 else f"<P>\n{first}\n</P>\n<P>\n{second}\n</P>\n"
    identifier = f"AFP_ENG_200{number % 8}010{number % 9 + 1}.000{number}"
    return (
        f'<DOC id="{identifier}" type="{"other" if number == 3 else "story"}">\n<HEADLINE>\nHeadline {group} {number}\n'
        f"</HEADLINE>\n<DATELINE>\nPORT, Jan 1\n</DATELINE>\n<TEXT>\n{body}</TEXT>\n</DOC>\n"
    )


def summary(topic: str, system: str) -> str:
    """A machine summary, one sentence a line."""
    return "\n".join(f"The {noun} was in the report." for noun in TOPICS[topic][: NAMED[system]]) + "\n"


def reference(topic: str, writer: str) -> str:
    """A human summary, one sentence a line."""
    a, b, c, d = TOPICS[topic]
    return f"The {a} and the {b} were in the report.\nWriter {writer} adds the {c} and the {d}.\n"


def scores(topic: str, system: str) -> tuple[float, float, int, int]:
    """Modified pyramid, jackknifed, linguistic quality, responsiveness."""
    place = sorted(TOPICS).index(topic)
    pyramid = NAMED[system] / 4 - 0.05 * place
    return round(pyramid, 3), round(pyramid - 0.01, 3), NAMED[system], min(NAMED[system] + place, 5)


def rouge(topic: str, system: str, kind: str) -> tuple[float, float, float]:
    """What the archive says of a summary's recall, precision and F."""
    place, own = sorted(TOPICS).index(topic), KINDS.index(kind)
    recall = NAMED[system] / 10 + 0.02 * place - 0.01 * own
    return recall, 0.9 - recall, recall**2


def nist() -> str:
    """NIST's ROUGE of machine and human summarizers, as ROUGE-1.5.5 prints them: an average, then each summary."""
    lines = []
    for kind in KINDS:
        for system in SYSTEMS:
            lines += ["-" * 45, f"{system} {kind} Average_R: 0.12345 (95%-conf.int. 0.11 - 0.13)", "." * 45]
            for topic in TOPICS:
                recall, precision, f = rouge(topic, system, kind)
                where = f"{topic[:-1]}-A.M.100.{topic[-1]}.{system}"
                lines.append(f"{system} {kind} Eval {where} R:{recall:.5f} P:{precision:.5f} F:{f:.5f}")
        lines.append(f"E {kind} Eval D1001-A.M.100.A.E R:0.99000 P:0.99000 F:0.99000")
    return "\n".join(lines) + "\n"


def files() -> dict[str, bytes]:
    """Every file, by its path in the unpacked layout."""
    written: dict[str, bytes] = {}
    documents = "TAC2010_Summarization_Documents/GuidedSumm10_test_docs_files"
    evaluation = "GuidedSumm2010_eval"
    manual: dict[str, list[str]] = {"A": [], "B": []}
    for topic in TOPICS:
        number, selector = topic[:-1], topic[-1]
        for group in "AB":
            for place in range(10):
                text = article(topic, place, group)
                data = text.replace("Nobody", "Nobod\xe9").encode("latin-1") if place == 7 else text.encode()
                name = f"{documents}/{topic}/{topic}-{group}/AFP_ENG_200501{place + 1:02d}.00{place:02d}"
                written[name] = data
            base = f"{number}-{group}.M.100.{selector}"
            for writer in WRITERS:
                written[f"{evaluation}/ROUGE/models/{base}.{writer}"] = reference(topic, writer).encode()
            for system in SYSTEMS:
                written[f"{evaluation}/ROUGE/peers/{base}.{system}"] = summary(topic, system).encode()
                # The annotated peers under manual/ have the same names and must not be taken for summaries.
                written[f"{evaluation}/manual/peers/{base}.{system}"] = b"<annotation/>\n"
                pyramid, jackknife, quality, overall = scores(topic, system)
                manual[group].append(
                    f"{number}-{group}\t{system}\t{pyramid:.3f}\t{NAMED[system]}\t0\tB\t4\t{jackknife:.3f}\t{quality}\t{overall}"
                )
    for group, lines in manual.items():
        written[f"{evaluation}/manual/manual.peer.{group}"] = ("\n".join(lines) + "\n").encode()
        written[f"{evaluation}/manual/manual.model.{group}"] = b"".join(
            f"{topic[:-1]}-{group} {writer} 6 B 4 0.700 5 5\n".encode() for topic in TOPICS for writer in WRITERS
        )
    written[f"{evaluation}/ROUGE/rouge_A.m.out"] = nist().encode()
    return written


def archive(members: dict[str, bytes]) -> bytes:
    """A gzipped tar archive of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def make_tac2010(folder: Path, *, packed: bool, changes: dict[str, bytes | None] | None = None) -> Path:
    """Write the directory and return it. ``changes`` replaces files by their unpacked path; None takes one away."""
    written = files()
    for name, data in (changes or {}).items():
        if data is None:
            del written[name]
        else:
            written[name] = data
    if packed:
        top = "TAC2010_Summarization_Documents/"
        inner = {name.removeprefix(top): data for name, data in written.items() if name.startswith(top)}
        outer = {f"{top}GuidedSumm10_test_docs_files.tar.gz": archive(inner), f"{top}README": b"Made for a test.\n"}
        rest = {name: data for name, data in written.items() if not name.startswith(top)}
        written = {"TAC2010_Summarization_Documents.tgz": archive(outer), "GuidedSumm2010_eval.tgz": archive(rest)}
    for name, data in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder

"""Writes small directories in the layouts of DUC 2001 and 2002's single-document task; all texts are made here.

3 articles, 5 machine summarizers (1 is the baseline), 2 human writers of each article, one of whom wrote the judge's model.
"""

from pathlib import Path

from tac2010_maker import archive

ARTICLES = {"AP880911-0016": "ferry", "WSJ880912-0064": "orchard", "FT923-5089": "bridge"}
SYSTEMS = ("1", "15", "19", "23", "30")
# How many of the four model units each summarizer expresses.
EXPRESSED = {"1": 4, "15": 3, "19": 2, "23": 1, "30": 0}
FACTS = ("opened in spring", "was paid for by the town", "cost less than planned", "will be mended every year")


def article(noun: str, *, breaks: bool) -> str:
    """SGML: a leading paragraph, then the text; ``breaks``: with a tag a sentence, as 2002's second copy has it."""
    sentences = [f"The {noun} {fact}." for fact in FACTS] + ["A &amp; B said so."]
    if breaks:
        sentences = [f'<s docid="X" num="{k}" wdcount="5"> {text}</s>' for k, text in enumerate(sentences, 1)]
    lead, *rest = sentences
    body = "\n".join(rest) if breaks else "<P>\n" + "\n</P>\n<P>\n".join(rest) + "\n</P>"
    return f"<DOC>\n<DOCNO>X</DOCNO>\n<HL>Headline</HL>\n<LP>\n{lead}\n</LP>\n<TEXT>\n{body}\n</TEXT>\n</DOC>\n"


def summary(noun: str, system: str) -> list[str]:
    """The sentences of a machine summary."""
    return [f"The {noun} {fact}." for fact in FACTS[: EXPRESSED[system]]] or ["Nothing was said."]


def see(sentences: list[str]) -> str:
    """A summary as the judges' tool had it."""
    units = "\n".join(
        f'<a name="{k}">[{k}]</a> <a href="#{k}" id={k}>{text}</a>' for k, text in enumerate(sentences, 1)
    )
    return f"<html>\n<head><title>D061</title></head>\n<body bgcolor='white'>\n{units}\n</body>\n</html>\n"


def model(noun: str, writer: str) -> str:
    """A human summary."""
    return f"Writer {writer} says the {noun} {FACTS[0]} and {FACTS[1]}."


def files(year: int) -> dict[str, bytes]:
    """Every file of ``year``, by its path."""
    written: dict[str, str] = {}
    table = [] if year == 2001 else ["Columns:", "", "D061 M --------------- 050  47 J   I I  19     2  0 0"]
    for number, (name, noun) in enumerate(ARTICLES.items()):
        docset = f"D{61 + number:03d}"
        folder = f"{docset.lower()}j"
        if year == 2001:
            written[f"DUC2001_Summarization_Documents/data/test/docs/{folder}/{name}"] = article(noun, breaks=False)
            places = {"A": f"DUC2001_Summarization_Documents/data/test/original.summaries/{folder}a/perdocs"}
            places["B"] = f"DUC2001_Summarization_Documents/data/test/duplicate.summaries/{folder}b/perdocs"
        else:
            written[f"docs.with.sentence.breaks/{folder}/{name}.S"] = article(noun, breaks=True)
            places = {writer: f"extracts_abstracts/{folder}{writer.lower()}/perdocs" for writer in "AB"}
        for writer, place in places.items():
            head = f'DSET="{docset}" TYPE="PERDOC" SIZE="100" DOCREF="{name}" SELECTOR="J" SUMMARIZER="{writer}"'
            written[place] = f"<SUM {head}>\n{model(noun, writer)}\n</SUM>\n"
        for system in (*SYSTEMS, "B"):
            sentences = [model(noun, "B")] if system == "B" else summary(noun, system)
            written[f"results/SEEpeers/{docset}.P.100.J.{system}.{name}.html"] = see(sentences)
            expressed = EXPRESSED.get(system, 2)
            if year == 2001:
                units = " ".join("1 4 1" if k < expressed else "0 0 -" for k in range(4))
                table.append(f"{docset} P {name} 100 J  A A {system}  3 2 2  0 5 0    4   2   1   {units}")
            else:
                quality = " ".join("0" * 12)
                mean = f"{expressed / 4:.3f}"
                units = f"0.00 5 5 0 4 {mean} {mean} 0.100 {mean} {mean} 0.100"
                table.append(f"{docset} P {name} 100  98 J   A A {system}  2  {quality}  {units}")
    written["results/results1_table.txt" if year == 2001 else "results/phase1/short.results.table"] = "\n".join(table)
    return {name: text.encode("cp1252") for name, text in written.items()}


def make_duc(folder: Path, year: int, *, packed: bool = False, changes: dict[str, bytes | None] | None = None) -> Path:
    """Write the directory and return it. ``changes`` replaces files; None takes one away."""
    written = {name: data for name, data in {**files(year), **(changes or {})}.items() if data is not None}
    if packed:
        peers = {name: data for name, data in written.items() if "SEEpeers" in name}
        rest = {name: data for name, data in written.items() if "SEEpeers" not in name and "table" not in name}
        results = {name: data for name, data in written.items() if "table" in name}
        written = {
            "submittedpeers.tar.gz": archive(peers),
            "documents.tgz": archive({"in.tar.gz": archive(rest)}),
            **results,
        }
    for name, data in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder

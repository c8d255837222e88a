"""Tables and figures of headlines: loading, means by hand, correlations beside scipy, distances of the same texts."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import pearsonr

from negsample.errors import InputError
from negsample.papers.declared import declared
from negsample.papers.headlines import KINDS, OVERALL, TABLE_4, TASKS, headline_sources, read_headlines
from negsample.papers.judged import Asked, measure
from negsample.scoring.scorer import Item, make_metric

STORIES = [
    "A storm closed the port. Ships waited outside. Two crews were safe. Shops stayed shut. The owners lost money. It ended.",
    "The team won the cup. Fans sang all night. The coach wept. Streets were full. The mayor came. It rained.",
    "Prices rose again. Bread costs more. Wages stay flat. Families save. Shops complain. Banks watch. Fuel rose too.",
    "A new bridge opened. It spans the river. Trains cross it. Boats pass below. The mayor spoke. It rained.",
]
GENERATED = ["Storm shuts port", "Coach weeps as fans sing", "Bread and fuel cost more", "Trains cross new bridge"]
REFERENCE = ["Port closed by storm", "Team wins the cup", "Prices rise", "Mayor opens bridge in the rain"]
SCORES = [(5, [4, 5], 4), (2, [5, 4], 1), (4, [3], 2), (3, [2, 2], 5)]
FIELDS = ("gen_story", "ref_story", "gen_ref")
JUDGED = [
    {"dataset": "ab"[place % 2], "story": story, "generated": made, "reference": known}
    | dict(zip(FIELDS, score, strict=True))
    for place, (story, made, known, score) in enumerate(zip(STORIES, GENERATED, REFERENCE, SCORES, strict=True))
] * 2
FIRST = {"story": "storm closed port. ships waited.", "generated": "storm port", "reference": "storm sails"}
SECOND = {"story": "prices rose in march.", "generated": "prices rose fast", "reference": "prices rose fast"}
ROWS = [FIRST | {"gen_ref": [2, 4]}, SECOND, SECOND | {"generated": "bread", "draw": 2}]


@pytest.fixture
def table(tmp_path):
    """A table of headlines by cheap metrics: the table, and its records by place."""

    def made(name, records, rows="rouge1  rouge1\n"):
        path, spec = tmp_path / "h.jsonl", replace(declared(name).with_parts(["USE=glove(unit=sentence)"]), rows=rows)
        if not isinstance(records, str):
            path.write_text("".join(json.dumps({"dataset": "d", "system": "s"} | row) + "\n" for row in records))
        sources = headline_sources(read_headlines(records if isinstance(records, str) else str(path)), spec.kind)
        found = KINDS[spec.kind](measure(spec, sources, Asked(), tmp_path / "t", str))
        return found, {(record.row, record.column): record for record in found.records}

    return made


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"gen_ref": "good"}, "p4-table3"),
        ({"gen_ref": []}, "p4-table3"),
        ({"gen_ref": [1, None]}, "p4-table3"),
        ({"gen_ref": None}, "p4-table3"),
        ({"gen_ref": None}, "p4-figure2"),
        ({"generated": " "}, "p4-table3"),
        ({"dataset": OVERALL}, "p4-table2"),
    ],
)
def test_a_bad_record_is_named(table, change, name):
    (key,) = change
    with pytest.raises(InputError, match=f"line 1: .*{key}"):
        table(name, [JUDGED[0] | change])


def test_tables_3_and_4(table):
    made, found = table("p4-table3", JUDGED, "rouge1  rouge1\nrouge2  rouge2\n")
    assert [row for (row, column), record in found.items() if column == "Gen-Ref" and record.about] == [
        f"{dataset} {name}" for dataset in ("a", "b", OVERALL) for name in ("rouge1", "rouge2")
    ]
    stories = [" ".join(story.split(". ")[:5]) for story in STORIES] * 2
    for task, items, scores in (
        (
            "Gen-Ref",
            [Item("", made, (known,)) for made, known in zip(GENERATED, REFERENCE, strict=True)] * 2,
            [4, 1, 2, 5],
        ),
        ("Ref-Story", list(map(Item, stories, REFERENCE * 2)), [4.5, 4.5, 3, 2]),
    ):
        expected = pearsonr(make_metric("rouge1").score(items).scores, scores * 2)
        record = found[f"{OVERALL} rouge1", task]
        assert record.value == pytest.approx(expected.statistic)
        assert record.about["p"] == pytest.approx(expected.pvalue)
        assert (record.mark == "*") == (expected.pvalue < 0.05 / 6)
    assert {record.row for record in made.records if record.section == TABLE_4} >= {"rouge1", "rouge2"}
    assert found["a rouge1", "Gen-Ref"].n == 4
    for few, why in ((JUDGED[:1] * 3, "metric scores are constant"), (JUDGED[:2], "1 rows")):
        assert why in table("p4-table3", few)[1]["a rouge1", "Gen-Ref"].reason


def test_means_by_hand_over_one_headline_a_story(table, monkeypatch):
    monkeypatch.setattr("negsample.resampling.MIN_UNITS", 2)
    _, value = table("p4-table2", [*ROWS, ROWS[0] | {"system": "t", "generated": " "}])
    # One of two words with one of two; three of three.
    gen_ref = value["d s Gen-Ref", "rouge1"]
    assert (gen_ref.value, gen_ref.n) == (pytest.approx((0.5 + 1) / 2), 2)
    # Resampled, the mean of .5 and 1 is one of .5, .75, 1.
    assert (gen_ref.low, gen_ref.high) == (0.5, 1.0)
    # Two of two words with two of five, F1 = 4/7; two of three with two of four, F1 = 4/7.
    assert value["d s Gen-Story", "rouge1"].value == pytest.approx(4 / 7)
    people = value["d s Gen-Ref", "people"]
    assert (people.value, people.n) == (3.0, 1)
    assert ("d s Gen-Story", "people") not in value
    # A headline without a word has no vector, and a single text no distance.
    assert value["d t Gen-Ref", "fed"].value is None


def test_the_same_texts_in_another_order_are_no_distance_apart(table):
    swapped = [ROWS[0] | {"generated": ROWS[1]["reference"]}, ROWS[1] | {"generated": ROWS[0]["reference"]}]
    _, found = table("p4-table2", swapped)
    fed = {task: found[f"d s {task}", "fed"].value for task in TASKS}
    assert fed["Gen-Ref"] == pytest.approx(0, abs=1e-9)
    # Then both sides are as far from the stories.
    assert fed["Gen-Story"] == pytest.approx(fed["Ref-Story"])
    assert fed["Gen-Story"] > 0.01


def test_examples_are_the_stories_with_most_headlines_the_nearest_first(table, monkeypatch):
    monkeypatch.setattr("negsample.papers.headlines.SHOWN", 1)
    made, found = table("p4-table1", ROWS, "recall  rouge1(value=recall)\n")
    # Recalled: two of the story's four words and the whole reference; nothing of either.
    assert {place: record.value for place, record in found.items()} == {
        ("1 s", "to story"): 0.5, ("1 s", "to reference"): 1.0, ("2 s", "to story"): 0.0, ("2 s", "to reference"): 0.0,
    }  # fmt: skip
    texts = [text for _, text in made.texts]
    assert texts == ["prices rose in march.", "prices rose fast", "prices rose fast", "bread"]


def test_points_have_peoples_mean_and_the_distance_of_the_larger_corpus(table):
    scores = [(5, 4, 1), (1, 2, 2), (3, 3, 3)]
    rated = [ROWS[n % 2] | dict(zip(FIELDS, row, strict=True)) for n, row in enumerate(scores)]
    _, found = table("p4-figure2", rated)
    means = [(found[f"d {task}", "people"].value, found[f"d {task}", "fed"].n) for task in TASKS]
    assert means == [(3, 3), (3, 3), (2, 3)]
    more = [FIRST | {"generated": FIRST["reference"]}, *ROWS[1:]]
    _, others = table("p4-figure2", [*rated, *more])
    assert (others["d Gen-Ref", "fed"].n, others["d Gen-Ref", "people"].n) == (2, 3)
    assert others["d Gen-Ref", "fed"].value == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="no headline has people's scores"):
        table("p4-figure2", more)
    with pytest.raises(InputError, match="two data sets' headlines, and there are 1"):
        table("p4-figure1", more)


def workbook(path, rows):
    """A workbook as a rater's: two lines of head, texts shared, numbers as they are."""
    texts = list(dict.fromkeys(value for row in rows for value in row if isinstance(value, str)))
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = [
            f'<c r="{letter}{number}" t="s"><v>{texts.index(value)}</v></c>'
            if isinstance(value, str)
            else f'<c r="{letter}{number}"><v>{value}</v></c>'
            for letter, value in zip("ABCDEFG", row, strict=False)
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with zipfile.ZipFile(path, "w") as book:
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")
        sheet = f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet1.xml", sheet)


def test_the_raters_workbooks_are_read(table, tmp_path):
    head = [("Dataset", "Text", "H1", "H2", "(H1, H2)", "(Text, H1)", "(Text, H2)"), ("", "", "", "", "", "1 to 5")]
    texts = [("cnn-dailymail", "A b c.", "a b", "a x"), ("gigaword", "D e f.", "d", "e y")]
    for rater, scores in enumerate((((1, 2, 3), (4, 5, 1)), ((2, 2, 4), (4, 3, 1)))):
        workbook(tmp_path / f"{rater}.xlsx", [*head, *((*text, *own) for text, own in zip(texts, scores, strict=True))])
    rows = list(read_headlines(f"headlines:{tmp_path}"))
    assert [row.fields["dataset"] for row in rows] == ["CNN/DailyMail", "Gigaword"]
    assert rows[0].fields["gen_ref"] == ["1", "2"]
    assert [rows[1].fields[name] for name in ("ref_story", "gen_story")] == [["5", "3"], ["1", "1"]]
    assert rows[1].fields["generated"] == "e y"
    workbook(tmp_path / "1.xlsx", [*head, (*texts[0], 2, 2, 4), (*texts[1], 4, "n/a", 1)])
    with pytest.raises(InputError, match=r"headline 2: field 'ref_story' is not a number \(the text 'n/a'\)"):
        table("p4-table3", f"headlines:{tmp_path}")
    (tmp_path / "2.xlsx").write_text("no workbook")
    with pytest.raises(InputError, match=r"2\.xlsx: can't be read as a workbook"):
        read_headlines(f"headlines:{tmp_path}")
    with pytest.raises(InputError, match=r"no \.xlsx in it"):
        read_headlines("headlines:/nowhere")


def test_their_own_headlines_give_what_is_printed(table):
    path = Path(__file__).parents[3] / "shared" / "data" / "headlines80.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    _, found = table("p4-table3", str(path), declared("p4-table3").rows.rpartition("aes  ")[0])
    counts = dict.fromkeys(("rouge1", "rouge2", "rougeL"), 0)
    for (row, _), record in found.items():
        if "p" in record.about:
            counts[row.rpartition(" ")[2]] += record.about["p"] < 0.05 / 12
    assert list(counts.values()) == [3, 1, 2]
    for dataset in ("Amazon", "CNN/DailyMail", "Newsroom", "Gigaword", OVERALL):
        own = found[f"{dataset} rouge2", "Gen-Ref"]
        assert own.value == pytest.approx(float(own.printed), abs=6e-5)

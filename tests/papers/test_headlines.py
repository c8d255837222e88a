"""Tables and figures of headlines: loading, means by hand, correlations beside scipy, distances of the same texts."""

import json
from dataclasses import replace

import pytest
from scipy.stats import pearsonr

from negsample.errors import InputError
from negsample.io.read import read_rows
from negsample.papers.declared import declared
from negsample.papers.headlines import KINDS, OVERALL, TABLE_4, TASKS, headline_sources
from negsample.papers.judged import Asked, measure
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item

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
        path.write_text("".join(json.dumps({"dataset": "d", "system": "s"} | row) + "\n" for row in records))
        sources = headline_sources(read_rows(path), spec.kind)
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


def test_means_by_hand_over_one_headline_a_story(table):
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

"""Headlines of Moeed et al. 2020: tasks, correlations against scipy, means and distances by hand."""

import json
from dataclasses import replace

import pytest
from scipy.stats import pearsonr

from negsample.errors import InputError
from negsample.papers.declared import declared
from negsample.papers.headlines import KINDS, OVERALL, TABLE_4, TASKS, load_headlines
from negsample.papers.judged import Asked
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item

STORIES = [
    "The storm closed the port. Ships waited. Crews slept. Nobody sailed. The owners lost money. Then it cleared.",
    "The team won the cup. Fans sang in the streets. The coach wept. It was late. Police smiled. They went home.",
    "Prices rose in March. Bread cost more. So did fuel. The bank held its rate. Shops were empty. Summer came.",
    "A new bridge opened. It spans the river. Trains cross it. Boats pass below. The mayor spoke. It rained.",
]
GENERATED = ["Storm shuts port", "Coach weeps as fans sing", "Bread and fuel cost more", "Trains cross new bridge"]
REFERENCE = ["Port closed by storm", "Team wins the cup", "Prices rise", "Mayor opens bridge in the rain"]
SCORES = [(5, [4, 5], 4), (2, [5, 4], 1), (4, [3], 2), (3, [2, 2], 5)]
JUDGED = [
    {"dataset": "ab"[place % 2], "story": story, "generated": made, "reference": known}
    | dict(zip(TASKS.values(), score, strict=True))
    for place, (story, made, known, score) in enumerate(zip(STORIES, GENERATED, REFERENCE, SCORES, strict=True))
] * 2
FIRST = {"story": "storm closed port. ships waited.", "generated": "storm port", "reference": "storm sails"}
SECOND = {"story": "prices rose in march.", "generated": "prices rose fast", "reference": "prices rose fast"}
ROWS = [FIRST | {"gen_ref": [2, 4]}, SECOND, SECOND | {"generated": "bread", "draw": 2}]


@pytest.fixture
def write(tmp_path):
    """Write records to a new file."""

    def written(rows):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps({"dataset": "d", "system": "s"} | row) + "\n" for row in rows))
        return path

    return written


def table(name, headlines, out, rows="rouge1  rouge1\n"):
    """A table of headlines by cheap metrics, record by place."""
    spec = replace(declared(name).with_parts(["USE=glove(unit=sentence)"]), rows=rows)
    made = KINDS[spec.kind](spec, headlines, Asked(bootstrap=1000), out)
    return made, {(record.row, record.column): record for record in made.records}


def test_loading(write):
    found = load_headlines(write(JUDGED))
    assert len(found) == 8
    assert found[0].story.endswith("The owners lost money.")
    assert found[1].scores == {"Gen-Story": 2.0, "Ref-Story": 4.5, "Gen-Ref": 1.0}


@pytest.mark.parametrize(
    ("change", "judged"),
    [
        ({"gen_ref": "good"}, True),
        ({"gen_ref": []}, True),
        ({"gen_ref": [1, None]}, True),
        ({"gen_ref": None}, True),
        ({"gen_ref": None}, None),
        ({"generated": " "}, True),
        ({"dataset": OVERALL}, False),
    ],
)
def test_a_bad_record_is_named(write, change, judged):
    (key,) = change
    with pytest.raises(InputError, match=f"line 1: .*{key}"):
        load_headlines(write([JUDGED[0] | change]), judged=judged)


def test_tables_3_and_4(write, tmp_path):
    headlines = load_headlines(write(JUDGED))
    made, found = table("p4-table3", headlines, tmp_path, "rouge1  rouge1\nrouge2  rouge2\n")
    assert [row for (row, column), record in found.items() if column == "Gen-Ref" and record.about] == [
        f"{dataset} {name}" for dataset in ("a", "b", OVERALL) for name in ("rouge1", "rouge2")
    ]
    for task, item in (
        ("Gen-Ref", lambda one: Item("", one.generated, (one.reference,))),
        ("Ref-Story", lambda one: Item(one.story, one.reference)),
    ):
        scores = make_metric("rouge1").score(list(map(item, headlines))).scores
        expected = pearsonr(scores, [headline.scores[task] for headline in headlines])
        record = found[f"{OVERALL} rouge1", task]
        assert record.value == pytest.approx(expected.statistic)
        assert record.about["p"] == pytest.approx(expected.pvalue)
        assert (record.mark == "*") == (expected.pvalue < 0.05 / 6)
    assert {record.row for record in made.records if record.section == TABLE_4} >= {"rouge1", "rouge2"}
    assert found["a rouge1", "Gen-Ref"].n == 4
    for few, why in ((headlines[:1] * 3, "metric scores are constant"), (headlines[:2], "1 rows")):
        assert why in table("p4-table3", few, tmp_path)[1]["a rouge1", "Gen-Ref"].reason


def test_means_by_hand_over_one_headline_a_story(write, tmp_path):
    path = write([*ROWS, ROWS[0] | {"system": "t", "generated": " "}])
    _, value = table("p4-table2", load_headlines(path, judged=False), tmp_path)
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


def test_the_same_texts_in_another_order_are_no_distance_apart(write, tmp_path):
    swapped = [ROWS[0] | {"generated": ROWS[1]["reference"]}, ROWS[1] | {"generated": ROWS[0]["reference"]}]
    _, found = table("p4-table2", load_headlines(write(swapped), judged=False), tmp_path)
    fed = {task: found[f"d s {task}", "fed"].value for task in TASKS}
    assert fed["Gen-Ref"] == pytest.approx(0, abs=1e-9)
    # Then both sides are as far from the stories.
    assert fed["Gen-Story"] == pytest.approx(fed["Ref-Story"])
    assert fed["Gen-Story"] > 0.01


def test_examples_are_the_stories_with_most_headlines_the_nearest_first(write, tmp_path, monkeypatch):
    monkeypatch.setattr("negsample.papers.headlines.SHOWN", 1)
    headlines = load_headlines(write(ROWS), judged=False)
    made, found = table("p4-table1", headlines, tmp_path, "recall  rouge1(value=recall)\n")
    # Recalled: two of the story's four words and the whole reference; nothing of either.
    assert {place: record.value for place, record in found.items()} == {
        ("1 s", "to story"): 0.5, ("1 s", "to reference"): 1.0, ("2 s", "to story"): 0.0, ("2 s", "to reference"): 0.0,
    }  # fmt: skip
    texts = [text for _, text in made.texts]
    assert texts == ["prices rose in march.", "prices rose fast", "prices rose fast", "bread"]


def test_points_have_peoples_mean_and_the_distance_of_the_larger_corpus(write, tmp_path):
    scores = [(5, 4, 1), (1, 2, 2), (3, 3, 3)]
    rated = [ROWS[n % 2] | dict(zip(TASKS.values(), row, strict=True)) for n, row in enumerate(scores)]
    judged = load_headlines(write(rated), judged=None)
    _, found = table("p4-figure2", judged, tmp_path)
    means = [(found[f"d {task}", "people"].value, found[f"d {task}", "fed"].n) for task in TASKS]
    assert means == [(3, 3), (3, 3), (2, 3)]
    unscored = {key: value for key, value in ROWS[0].items() if key != "gen_ref"}
    more = load_headlines(write([unscored | {"generated": ROWS[0]["reference"]}, *ROWS[1:]]), judged=None)
    _, others = table("p4-figure2", [*judged, *more], tmp_path)
    assert (others["d Gen-Ref", "fed"].n, others["d Gen-Ref", "people"].n) == (2, 3)
    assert others["d Gen-Ref", "fed"].value == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="no headline has people's scores"):
        table("p4-figure2", more, tmp_path)
    with pytest.raises(InputError, match="two data sets' headlines, and there are 1"):
        table("p4-figure1", more, tmp_path)

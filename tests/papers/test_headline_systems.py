"""Those who write headlines: means by hand, the examples' order, the points of Figure 2, and what is printed in the paper."""

import json
from pathlib import Path

import pytest

from negsample.errors import InputError
from negsample.papers.headline_systems import draw_fed, examples, fed_points, system_figures
from negsample.papers.headlines import OVERALL, TASKS, HeadlineAgreement, HeadlineTable, load_headlines, published
from negsample.scoring.metrics import make_metric

FED = "fed(encoder=(glove:unit=sentence))"
ROWS = [
    {
        "story": "storm closed port. ships waited.",
        "generated": "storm port",
        "reference": "storm sails",
        "gen_ref": [2, 4],
    },
    {"story": "prices rose in march.", "generated": "prices rose fast", "reference": "prices rose fast"},
    {"story": "prices rose in march.", "generated": "bread", "reference": "prices rose fast", "draw": 2},
]


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps({"dataset": "d", "system": "s"} | row) + "\n" for row in rows))
    return path


def test_means_by_hand_over_one_headline_a_story(tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[0] | {"system": "t", "generated": " "}]
    found, signatures = system_figures(load_headlines(write(tmp_path / "h.jsonl", rows), judged=False), ["rouge1"], FED)
    value = {(one.system, one.task, one.metric): one for one in found}
    # One of two words with one of two; three of three.
    gen_ref = value["s", "Gen-Ref", "rouge1"]
    assert gen_ref.value == pytest.approx((0.5 + 1) / 2)
    assert (gen_ref.n, gen_ref.missing) == (2, 0)
    # Two of two words with two of five, F1 = 4/7; two of three with two of four, F1 = 4/7.
    assert value["s", "Gen-Story", "rouge1"].value == pytest.approx(4 / 7)
    # Resampled, the mean of .5 and 1 is one of .5, .75, 1.
    assert (gen_ref.low, gen_ref.high) == (0.5, 1.0)
    people = value["s", "Gen-Ref", "people"]
    assert (people.value, people.n, people.missing) == (3.0, 1, 1)
    assert ("s", "Gen-Story", "people") not in value
    # A headline without a word has no vector, and a single text no distance.
    assert (value["t", "Gen-Ref", "fed"].value, value["t", "Gen-Ref", "fed"].missing) == (None, 1)
    assert set(signatures) == {"rouge1", "fed"}
    with pytest.raises(InputError, match="gen_story"):
        load_headlines(tmp_path / "h.jsonl")
    with pytest.raises(InputError, match="no headlines"):
        system_figures([], ["rouge1"], FED)


def test_the_same_texts_in_another_order_are_no_distance_apart(tmp_path: Path) -> None:
    swapped = [ROWS[0] | {"generated": ROWS[1]["reference"]}, ROWS[1] | {"generated": ROWS[0]["reference"]}]
    found, _ = system_figures(load_headlines(write(tmp_path / "h.jsonl", swapped), judged=False), [], FED)
    fed = {one.task: one.value for one in found if one.metric == "fed"}
    assert fed["Gen-Ref"] == pytest.approx(0, abs=1e-9)
    # Then both sides are as far from the stories.
    assert fed["Gen-Story"] == pytest.approx(fed["Ref-Story"])
    assert fed["Gen-Story"] > 0.01


def test_examples_are_the_stories_with_most_headlines_the_nearest_first(tmp_path: Path) -> None:
    found = examples(
        load_headlines(write(tmp_path / "h.jsonl", ROWS), judged=False), make_metric("rouge1(value=recall)"), 1
    )
    assert [(one.story, one.reference) for one in found] == [("prices rose in march.", "prices rose fast")]
    # Recalled: two of the story's four words and the whole reference; nothing of either.
    assert found[0].headlines == (("s", "prices rose fast", 0.5, 1.0), ("s", "bread", 0.0, 0.0))


def test_points_have_peoples_mean_and_the_distance_of_the_larger_corpus(tmp_path: Path) -> None:
    scores = [(5, 4, 1), (1, 2, 2), (3, 3, 3)]
    rated = [ROWS[n % 2] | dict(zip(TASKS.values(), row, strict=True)) for n, row in enumerate(scores)]
    judged = load_headlines(write(tmp_path / "h.jsonl", rated))
    points, signature = fed_points(judged, FED)
    assert [(point.task, point.people, point.texts) for point in points] == [
        ("Gen-Story", 3.0, 3), ("Ref-Story", 3.0, 3), ("Gen-Ref", 2.0, 3),
    ]  # fmt: skip
    assert signature.startswith("metric:fed")
    more = [ROWS[0] | {"generated": ROWS[0]["reference"]}, ROWS[1], *ROWS[2:]]
    others, _ = fed_points(judged, FED, load_headlines(write(tmp_path / "m.jsonl", more), judged=False))
    assert (others[2].texts, others[2].judged) == (2, 3)
    assert others[2].fed == pytest.approx(0, abs=1e-9)
    picture = draw_fed(points).decode()
    assert all(f">{task}</text>" in picture for task in TASKS)
    assert picture.count(">d</text>") == 3


def test_what_is_printed_gives_table_4() -> None:
    entries = [
        HeadlineAgreement(row["data"], row["metric"], task, 0, 0, float(row[task]), None, False)
        for row in published(3)
        for task in TASKS
    ]
    assert len(entries) == 60
    counts = HeadlineTable(tuple(entries), 0.05 / 12, dict.fromkeys(("rouge1", "rouge2", "rougeL", "aes"), "")).counts()
    printed = {row["metric"]: int(row["highest"]) for row in published(4)}
    # As is told there: their Table 3 gives ROUGE-1 and ROUGE-2 each other's number.
    swapped = {"rouge1": printed["rouge2"], "rouge2": printed["rouge1"]}
    assert {name: best for name, (best, _) in counts.items()} == printed | swapped
    assert sum(entry.dataset == OVERALL for entry in entries) == 12
    assert [row["AES"] for row in published(2)] == ["0.575", "0.623"]

"""The headline tables of Moeed et al. 2020: tasks, correlations against scipy, Bonferroni, Table 4 from their Table 3."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr

from negsample.errors import InputError
from negsample.eval.agreement.correlation import p_value
from negsample.papers.headlines import (
    METRICS,
    OVERALL,
    TASKS,
    Headline,
    HeadlineAgreement,
    HeadlineTable,
    load_headlines,
    p4_table3,
)
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item

# Moeed et al. 2020, Table 3: r and p of each dataset (20 headlines; Overall 80), metric and task (Gen-Story, Ref-Story,
# Gen-Ref).
PAPER = """
Amazon rouge1 .1199 .6148 .2100 .3743 .602 .00498
Amazon rouge2 -.0746 .75446 .2417 .30459 .5423 .0135
Amazon rougeL .0843 .72379 .1959 .40773 .575 .008
Amazon aes -.0330 .89112 .1260 .59791 .6540 .00176
CNN rouge1 .3785 .09985 -.1565 .51001 .4875 .02923
CNN rouge2 .5019 .02414 -.3061 .18933 .4681 .0374
CNN rougeL .4346 .05549 -.1802 .44702 .4436 .05007
CNN aes .2430 .30174 .0000 .99916 .2550 .27735
Newsroom rouge1 -.0465 .84576 .5390 .01419 .7706 7e-05
Newsroom rouge2 -.1231 .60523 .2858 .22184 .6027 .00491
Newsroom rougeL .0563 .81366 .4891 .02865 .7560 .00012
Newsroom aes .5010 .02449 .4110 .07149 .8240 1e-05
Gigaword rouge1 .5450 .01295 .4636 .0395 .6584 .0016
Gigaword rouge2 .5522 .01158 .1640 .48955 .3722 .10613
Gigaword rougeL .5056 .02296 .4976 .02559 .5985 .00531
Gigaword aes .4070 .07509 .7260 .00029 .4480 .04759
Overall rouge1 .2829 .01099 .2308 .03941 .6749 6.6e-12
Overall rouge2 .3023 .00643 .0797 .48196 .5128 1.1e-06
Overall rougeL .2878 .00963 .2570 .02136 .6542 4.69e-11
Overall aes .2290 .04128 .2820 .01127 .5810 2e-08
"""


def paper_entries() -> list[HeadlineAgreement]:
    entries = []
    for line in PAPER.split("\n")[1:-1]:
        dataset, metric, *numbers = line.split()
        for place, task in enumerate(TASKS):
            r, p = map(float, numbers[2 * place : 2 * place + 2])
            n = 80 if dataset == OVERALL else 20
            entries.append(HeadlineAgreement(dataset, metric, task, n, 0, r, p, p < 0.05 / 12))
    return entries


def test_table_4_from_table_3() -> None:
    table = HeadlineTable(tuple(paper_entries()), 0.05 / 12, dict.fromkeys(("rouge1", "rouge2", "rougeL", "aes"), ""))
    # Their Table 4 says 4, 5, 0, 6 highest, which their Table 3 does not bear out for the first two; 3, 1, 2, 4
    # significant.
    assert table.counts() == {"rouge1": (5, 3), "rouge2": (4, 1), "rougeL": (0, 2), "aes": (6, 4)}


def test_p_values_are_the_papers() -> None:
    for entry in paper_entries():
        assert entry.r is not None
        assert entry.p is not None
        if abs(entry.r) > 0.01 and entry.p > 1e-4:
            found = p_value(np.zeros(entry.n), np.zeros(entry.n), entry.r, "pearson")
            assert found == pytest.approx(entry.p, rel=0.05, abs=0.002)


STORIES = [
    "The storm closed the port. Ships waited. Crews slept. Nobody sailed. The owners lost money. Then it cleared.",
    "The team won the cup. Fans sang in the streets. The coach wept. It was late. Police smiled. They went home.",
    "Prices rose in March. Bread cost more. So did fuel. The bank held its rate. Shops were empty. Summer came.",
    "A new bridge opened. It spans the river. Trains cross it. Boats pass below. The mayor spoke. It rained.",
]
GENERATED = ["Storm shuts port", "Coach weeps as fans sing", "Bread and fuel cost more", "Trains cross new bridge"]
REFERENCE = ["Port closed by storm", "Team wins the cup", "Prices rise", "Mayor opens bridge in the rain"]


def records() -> list[dict[str, object]]:
    scores = [(5, [4, 5], 4), (2, [5, 4], 1), (4, [3], 2), (3, [2, 2], 5)]
    return [
        {"dataset": "ab"[place % 2], "story": story, "generated": made, "reference": known}
        | dict(zip(TASKS.values(), score, strict=True))
        for place, (story, made, known, score) in enumerate(zip(STORIES, GENERATED, REFERENCE, scores, strict=True))
    ] * 2


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_loading(tmp_path: Path) -> None:
    found = load_headlines(write(tmp_path / "h.jsonl", records()))
    assert len(found) == 8
    assert found[0].story.endswith("The owners lost money.")
    assert found[1].scores == {"Gen-Story": 2.0, "Ref-Story": 4.5, "Gen-Ref": 1.0}
    assert load_headlines(tmp_path / "h.jsonl", sentences=0)[0].story == STORIES[0]
    for change, words in (
        ({"gen_ref": "good"}, "line 1: field 'gen_ref' is not a number"),
        ({"gen_ref": []}, "line 1: field 'gen_ref' is an empty list"),
        ({"gen_ref": [1, None]}, "line 1: field 'gen_ref' is not a number"),
        ({"generated": " "}, "line 1: field 'generated' is blank"),
        ({"dataset": OVERALL}, "line 1: field 'dataset' is 'Overall'"),
    ):
        with pytest.raises(InputError, match=words):
            load_headlines(write(tmp_path / "bad.jsonl", [records()[0] | change]))


def test_table_3(tmp_path: Path) -> None:
    headlines = load_headlines(write(tmp_path / "h.jsonl", records()))
    table = p4_table3(headlines, ("rouge1", "rouge2"))
    assert table.threshold == pytest.approx(0.05 / 6)
    assert [entry.dataset for entry in table.entries[::6]] == ["a", "b", OVERALL]
    entry = next(c for c in table.entries if (c.dataset, c.metric, c.task) == (OVERALL, "rouge1", "Gen-Ref"))
    scores = make_metric("rouge1").score([Item("", h.generated, (h.reference,)) for h in headlines]).values
    expected = pearsonr(scores, [h.scores["Gen-Ref"] for h in headlines])
    assert entry.r == pytest.approx(expected.statistic)
    assert entry.p == pytest.approx(expected.pvalue)
    assert entry.significant == (expected.pvalue < 0.05 / 6)
    against_story = next(c for c in table.entries if (c.dataset, c.metric, c.task) == (OVERALL, "rouge1", "Ref-Story"))
    scores = make_metric("rouge1").score([Item(h.story, h.reference) for h in headlines]).values
    assert against_story.r == pytest.approx(pearsonr(scores, [h.scores["Ref-Story"] for h in headlines]).statistic)
    assert json.loads(json.dumps(table.as_dict()))["table4"].keys() == {"rouge1", "rouge2"}
    assert p4_table3(headlines[:1] * 3, ("rouge1",)).entries[0].reason == "one side is constant"
    assert p4_table3(headlines[:2], ("rouge1",)).entries[0].reason == "fewer than three headlines with a score"


def test_default_threshold_is_the_papers() -> None:
    assert METRICS == ("rouge1", "rouge2", "rougeL", "aes")
    scores = dict.fromkeys(TASKS, 3.0)
    headline = Headline("", "A story here.", "A headline", "Another headline", scores)
    # Four metrics without an encoder stand for the default four, whose loading takes longer than all tests here.
    table = p4_table3([headline] * 3, ("rouge1", "rouge2", "rougeL", "words"))
    assert table.threshold == pytest.approx(0.0042, abs=5e-5)
    assert len(table.entries) == 12
    with pytest.raises(InputError, match="no headlines"):
        p4_table3([])
    with pytest.raises(InputError, match="alpha"):
        p4_table3([headline] * 3, ("rouge1",), alpha=2)

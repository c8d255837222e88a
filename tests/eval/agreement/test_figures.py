"""Levels, intervals and what is left out, against loops of scipy calls that share nothing with the package."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import stats

from negsample import resampling
from negsample.eval.agreement import figures as ag
from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.figures import agreement, article_sampling, average_ranks
from negsample.eval.agreement.levels import make_block, make_resamples, make_table, system_samples
from negsample.eval.agreement.significance import compare_metrics

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
LEVELS, COEFFICIENTS = ("pooled", "summary", "system"), ("pearson", "spearman", "kendall")


def simulated(documents=12, systems=7, seed=0, missing=0.0, ties=True):
    rng = np.random.default_rng(seed)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    words = rng.integers(5, 12, size=len(d)).astype(float)
    quality = rng.normal(size=systems)[s] + rng.normal(size=len(d)) + 0.2 * words
    human = np.round(quality) if ties else quality
    metric = np.round(quality + rng.normal(size=len(d)), 1 if ties else 9)
    other = rng.normal(size=len(d))
    if missing:
        human[rng.random(len(d)) < missing] = np.nan
        metric[rng.random(len(d)) < missing] = np.nan
    names = [f"d{i:03}" for i in d], [f"s{i}" for i in s]
    return make_table("simulated", *names, {"quality": human}, {"metric": metric, "other": other}, words)


def one(figures, metric, level, coefficient, human=None):
    wanted = (metric, level, coefficient)
    (found,) = (f for f in figures if (f.metric, f.level, f.coefficient) == wanted and human in (None, f.human))
    return found


def loop(x, y, words, documents, systems, coefficient):
    """{level: (value, value given the number of words)} by scipy, row by row."""
    f = SCIPY[coefficient]

    def given(i, j, k):
        a, b, c = f(i, j)[0], f(i, k)[0], f(j, k)[0]
        return (a - b * c) / math.sqrt((1 - b * b) * (1 - c * c))

    good = ~np.isnan(x) & ~np.isnan(y)
    x, y, words, documents, systems = x[good], y[good], words[good], documents[good], systems[good]
    per_document, per_document_given = [], []
    for d in sorted(set(documents)):
        i = documents == d
        if i.sum() > 2 and np.ptp(x[i]) > 0 and np.ptp(y[i]) > 0:
            per_document.append(f(x[i], y[i])[0])
            if i.sum() > 5 and np.ptp(words[i]) > 0:
                per_document_given.append(given(x[i], y[i], words[i]))
    mean = [[v[systems == s].mean() for s in sorted(set(systems))] for v in (x, y, words)]
    return {
        "pooled": (f(x, y)[0], given(x, y, words)),
        "summary": (np.mean(per_document), np.mean(per_document_given)),
        "system": (f(mean[0], mean[1])[0], given(*mean)),
    }


def test_every_level_by_hand():
    # Within document a the metric orders 1 2 3 4 as people do 2 1 3 4: r = ρ = 0.8, τ = 2/3; in document b it turns
    # people's order round: −1. Over both documents every system has the same mean of the metric, 2.5.
    table = make_table(
        "hand",
        list("aaaabbbb"),
        ["s1", "s2", "s3", "s4"] * 2,
        {"h": [2, 1, 3, 4, 1, 2, 3, 4]},
        {"m": [1, 2, 3, 4, 4, 3, 2, 1]},
        [5] * 8,
    )
    figures = agreement(table, bootstrap=200)
    assert one(figures, "m", "summary", "spearman").value == pytest.approx((0.8 - 1) / 2)
    assert one(figures, "m", "summary", "kendall").value == pytest.approx((2 / 3 - 1) / 2)
    # All rows: Σ(m − 2.5)(h − 2.5) = 4 − 5 = −1 of 10 on both sides.
    assert one(figures, "m", "pooled", "pearson").value == pytest.approx(-0.1)
    assert one(figures, "m", "system", "pearson").reason == "the systems' means are constant"
    summary = one(figures, "m", "summary", "spearman")
    assert (summary.n, summary.documents, summary.systems) == (8, 2, 4)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_values_against_scipy_loops(coefficient, missing):
    table = simulated(missing=missing, seed=5)
    figures = agreement(table, bootstrap=0)
    for metric, x in table.metrics.items():
        expected = loop(x, table.human["quality"], table.words, table.documents, table.systems, coefficient)
        for level in LEVELS:
            figure = one(figures, metric, level, coefficient)
            assert figure.value == pytest.approx(expected[level][0], abs=1e-10)
            assert figure.given_length == pytest.approx(expected[level][1], abs=1e-10)
            assert figure.low is None


def test_what_is_left_out_is_counted():
    table = make_table(
        "small",
        ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["d"] * 4 + ["e"] * 2,
        ["1", "2", "3", "4"] * 4 + ["1", "2"],
        {"h": [1, 2, 3, 4, 5, 5, 5, 5, 1, 2, 3, 4, 1, np.nan, np.nan, 2, 1, 2]},
        {"m": [1, 2, 3, 4, 1, 2, 3, 4, 7, 7, 7, 7, 1, 2, 3, 4, np.nan, 2]},
        [5.0] * 18,
    )
    figures = agreement(table, coefficients=["spearman"], bootstrap=50)
    summary = one(figures, "m", "summary", "spearman")
    assert summary.value == 1
    assert (summary.n, summary.documents, summary.systems) == (4, 1, 4)
    missing = {ag.MISSING_HUMAN: 2, ag.MISSING_METRIC: 1, resampling.FEW_DOCUMENTS: 50}
    assert summary.left_out == missing | {ag.FEW_ROWS: 2, ag.CONSTANT_HUMAN: 1, ag.CONSTANT_METRIC: 1}
    assert summary.p is None  # one document has no spread
    assert summary.given_reason == "all summaries have the same number of words"
    system = one(figures, "m", "system", "spearman")
    # Used are all rows but the second and third of d and the first of e: system 1 has a, b, c, d; 2 a, b, c, e; 3 a, b, c;
    # 4 a, b, c, d. None has all five documents.
    assert system.uneven == 4
    assert system.n == 15


def test_no_nan_anywhere_and_reasons_given():
    n = 12
    table = make_table(
        "hard",
        [f"d{i // 3}" for i in range(n)],
        [None] * n,
        {"constant": np.ones(n), "nothing": np.full(n, np.nan), "h": np.arange(n) % 5},
        {"flat": np.zeros(n), "none": np.full(n, np.nan), "words": np.arange(n), "two": [1.0, 2] + [np.nan] * 10},
        np.arange(n),
    )
    figures = agreement(table, bootstrap=20)
    assert len(figures) == 3 * 4 * 3 * 3
    for figure in figures:
        for item in fields(figure):
            value = getattr(figure, item.name)
            assert not (isinstance(value, float) and math.isnan(value)), (figure, item.name)
        assert (figure.value is None) == (figure.reason is not None)
        assert (figure.given_length is None) == (figure.given_reason is not None)
    assert one(figures, "flat", "pooled", "pearson", "h").reason == "metric scores are constant"
    assert one(figures, "words", "pooled", "pearson", "constant").reason == "human scores are constant"
    assert one(figures, "two", "pooled", "pearson", "h").reason.startswith("2 rows have both scores")
    assert one(figures, "words", "system", "pearson", "h").reason.startswith("no row names its system")
    # One summary a document, one system.
    table = make_table("qags", list("abcdefghi"), ["0"] * 9, {"h": range(9)}, {"m": np.arange(9) ** 2}, range(9))
    pooled, summary, system = agreement(table, coefficients=["spearman"], bootstrap=0)
    assert pooled.value == pytest.approx(1)
    assert summary.reason.startswith("no document has three scored summaries")
    assert system.reason == "1 system; the system level needs at least 4"


def test_a_document_determined_by_length_counts_as_nothing_left():
    # Document a: metric = words, so 0 is left of it; document b: an ordinary partial correlation.
    rng = np.random.default_rng(6)
    words, metric, human = rng.permutation(16).astype(float), rng.normal(size=16), rng.normal(size=16)
    metric[:8] = words[:8]
    table = make_table("x", ["a"] * 8 + ["b"] * 8, list("12345678") * 2, {"h": human}, {"m": metric}, words)
    figure = agreement(table, levels=["summary"], coefficients=["spearman"], bootstrap=0)[0]
    r = [stats.spearmanr(*p)[0] for p in [(metric[8:], human[8:]), (metric[8:], words[8:]), (human[8:], words[8:])]]
    rest = (r[0] - r[1] * r[2]) / math.sqrt((1 - r[1] ** 2) * (1 - r[2] ** 2))
    assert figure.given_length == pytest.approx((0 + rest) / 2, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_order_of_rows_and_other_metrics_change_nothing(level):
    table = simulated(seed=7, missing=0.05)
    order = np.random.default_rng(8).permutation(len(table.words))
    shuffled = make_table(
        "simulated",
        [table.document_names[d] for d in table.documents[order]],
        [table.system_names[s] for s in table.systems[order]],
        {k: v[order] for k, v in table.human.items()},
        {k: v[order] for k, v in table.metrics.items()},
        table.words[order],
    )
    alone = replace(shuffled, metrics={"metric": shuffled.metrics["metric"]})
    whole, again, few = (agreement(t, levels=[level], bootstrap=50) for t in (table, shuffled, alone))
    for a, b in [*zip(whole, again, strict=True), *zip((f for f in whole if f.metric == "metric"), few, strict=True)]:
        for name in ("value", "low", "high", "p", "given_length"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-12)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_system_resamples_equal_explicit_ones(coefficient):
    table = simulated(documents=8, systems=6, seed=10, missing=0.4)
    block = make_block(table, [table.metrics["metric"], table.human["quality"]])
    assert len(set(block.systems)) == 6
    resamples = make_resamples(table, 40, seed=1)
    found = system_samples(block, coefficient, [(0, 1)], resamples)[:, 0]
    compared = 0
    for b in range(40):
        documents = np.repeat(np.arange(8), resamples.weights[b].astype(int))
        rows = np.concatenate([np.flatnonzero(block.documents == d) for d in documents])
        drawn = (resamples.systems[b] * 6).astype(int)
        means = []
        for s in drawn:
            mine = rows[block.systems[rows] == s]
            if len(mine):
                means.append([block.values[0, mine].mean(), block.values[1, mine].mean()])
        x, y = np.round(np.array(means).T, 10)
        if len(means) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
            assert np.isnan(found[b])
            continue
        compared += 1
        assert found[b] == pytest.approx(SCIPY[coefficient](x, y)[0], abs=1e-8)
    assert compared > 20


def test_summary_interval_equals_explicit_bootstrap():
    # It is as wide as the percentile bootstrap is: of a mean over 60 documents such intervals hold the truth 94 times in 100.
    table = simulated(documents=10, seed=11)
    figure = one(agreement(table, bootstrap=60, seed=3), "metric", "summary", "kendall")
    y, x = table.human["quality"], table.metrics["metric"]
    per_document = np.array([stats.kendalltau(x[table.documents == d], y[table.documents == d])[0] for d in range(10)])
    weights = make_resamples(table, 60, seed=3).weights.astype(int)
    means = [np.nanmean(np.repeat(per_document, w)) for w in weights]
    assert (figure.low, figure.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)
    assert figure.p == pytest.approx(stats.ttest_1samp(per_document, 0)[1])


def test_few_documents_and_resamples_that_are_all_alike_give_no_interval():
    samples = np.array([*np.linspace(0, 1, 101), np.nan])
    assert resampling.resampled_interval(samples, 9) == (None, None, {resampling.FEW_DOCUMENTS: 102})
    assert resampling.resampled_interval(samples, 10) == (
        pytest.approx(0.025),
        pytest.approx(0.975),
        {resampling.SKIPPED: 1},
    )
    assert resampling.resampled_interval(np.ones(50), 10) == (None, None, {resampling.ALIKE: 50})
    # One document: every resample is the document itself; 12 that all order their systems as people do are no certainty.
    one_document, alike = simulated(documents=1), simulated(documents=12)
    alike = replace(alike, metrics={"metric": alike.human["quality"]})
    for table, why in ((one_document, resampling.FEW_DOCUMENTS), (alike, resampling.ALIKE)):
        for figure in agreement(table, levels=["summary", "pooled"], coefficients=["spearman"], bootstrap=40):
            assert figure.value is not None
            assert (figure.low, figure.high, figure.left_out) == (None, None, {why: 40})
    # One row a system is no system level, for the comparisons neither.
    (compared,) = compare_metrics(one_document, "quality", level="system", bootstrap=0)
    assert (compared.difference, compared.p_permutation) == (None, None)
    (compared,) = compare_metrics(one_document, "quality", level="pooled", bootstrap=40)
    assert (compared.low, compared.p_bootstrap, compared.p_permutation) == (None, None, 1.0)


def test_long_kendall_resamples_are_left_out_and_say_so(monkeypatch):
    monkeypatch.setattr(lv, "KENDALL_ROWS", 50)
    figures = agreement(simulated(), levels=["pooled", "summary"], bootstrap=30)
    kendall = one(figures, "metric", "pooled", "kendall")
    assert kendall.value is not None
    assert (kendall.low, kendall.high, kendall.left_out) == (None, None, {ag.NOT_TAKEN: 30})
    assert one(figures, "metric", "summary", "kendall").low is not None
    assert one(figures, "metric", "pooled", "spearman").left_out == {}


# --- articles and data sets


def ranked_systems(documents=40, systems=8, noise=3.0):
    rng = np.random.default_rng(0)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    human = rng.normal(size=systems)[s] + rng.normal(size=len(d))
    metric = human + noise * rng.normal(size=len(d))
    return make_table(
        "made", [f"{i:02}" for i in d], [str(i) for i in s], {"h": human}, {"m": metric}, np.arange(len(d))
    )


def test_all_articles_give_the_system_level_every_time():
    t = ranked_systems()
    means = [[v[t.systems == s].mean() for s in range(8)] for v in (t.metrics["m"], t.human["h"])]
    expected = stats.pearsonr(*means)
    found = article_sampling(t, "m", "h", draws=5)[-1]
    assert found.mean == pytest.approx(expected[0], abs=1e-9)
    assert found.sd == pytest.approx(0, abs=1e-12)
    assert (found.articles, found.draws, found.skipped) == (40, 5, 0)
    assert [size.articles for size in article_sampling(t, "m", "h", draws=2)] == [1, 2, 3, 5, 7, 10, 15, 20, 30, 40]
    few = (ranked_systems(systems=2), ranked_systems(documents=1))
    assert not any(article_sampling(table, "m", "h") for table in few)


def test_one_article_gives_the_per_document_correlations():
    # Drawn one at a time, the articles' own correlations come out, and nothing else.
    t = ranked_systems(documents=3)
    own = [stats.pearsonr(t.metrics["m"][t.documents == d], t.human["h"][t.documents == d])[0] for d in range(3)]
    found = article_sampling(t, "m", "h", sizes=[1], draws=3000, seed=4)[0]
    assert found.mean == pytest.approx(np.mean(own), abs=0.03)
    assert found.sd == pytest.approx(np.std(own), abs=0.03)
    # Two draws: the spread is over n − 1.
    two = article_sampling(t, "m", "h", sizes=[1], draws=2, seed=3)[0]
    assert any(two.sd == pytest.approx(np.std([a, b], ddof=1)) for a in own for b in own)


def test_more_articles_are_steadier_and_the_seed_decides():
    found = article_sampling(ranked_systems(), "m", "h", sizes=[2, 10, 30], seed=1)
    assert found[0].sd > found[1].sd > found[2].sd
    assert found[1] == article_sampling(ranked_systems(), "m", "h", sizes=[10], seed=1)[0]
    assert found[0].mean != article_sampling(ranked_systems(), "m", "h", sizes=[2], seed=2)[0].mean


def test_undefined_draws_are_counted():
    # Article a has the same metric everywhere, so drawing it alone gives no correlation.
    t = make_table(
        "two", list("aaaabbbb"), list("12341234"), {"h": [1, 2, 3, 4] * 2}, {"m": [5, 5, 5, 5, 1, 2, 3, 4]}, [1] * 8
    )
    found = article_sampling(t, "m", "h", sizes=[1], draws=40)[0]
    assert found.mean == pytest.approx(1)
    assert found.skipped > 0
    assert found.draws + found.skipped == 40


def test_average_ranks_by_hand():
    found = average_ranks(
        {
            "one": {"a": 0.5, "b": 0.5, "c": 0.1, "d": None},  # a, b share 1.5; c 3
            "two": {"a": 0.2, "b": 0.3, "c": 0.9, "d": float("nan")},  # c 1, b 2, a 3
            "three": {"a": 0.4, "b": 0.1, "d": -0.2},  # a 1, b 2, d 3
        }
    )
    assert [(r.metric, r.rank, r.datasets) for r in found] == [
        ("a", pytest.approx(5.5 / 3), 3),
        ("b", pytest.approx(5.5 / 3), 3),
        ("c", 2.0, 2),
        ("d", 3.0, 1),
    ]
    assert average_ranks({}) == []

import numpy as np
import pytest
from scipy import stats

from negsample.eval.agreement.figures import article_sampling, average_ranks
from negsample.eval.agreement.levels import make_table


def table(documents=40, systems=8, noise=3.0):
    rng = np.random.default_rng(0)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    human = rng.normal(size=systems)[s] + rng.normal(size=len(d))
    metric = human + noise * rng.normal(size=len(d))
    return make_table(
        "made", [f"{i:02}" for i in d], [str(i) for i in s], {"h": human}, {"m": metric}, np.arange(len(d))
    )


def test_all_articles_give_the_system_level_every_time():
    t = table()
    means = [[v[t.systems == s].mean() for s in range(8)] for v in (t.metrics["m"], t.human["h"])]
    expected = stats.pearsonr(*means)
    found = article_sampling(t, "m", "h", draws=5)[-1]
    assert found.mean == pytest.approx(expected[0], abs=1e-9)
    assert found.sd == pytest.approx(0, abs=1e-12)
    assert (found.articles, found.draws, found.skipped) == (40, 5, 0)


def test_one_article_gives_the_per_document_correlations():
    # Drawn one at a time, the articles' own correlations come out, and nothing else.
    t = table(documents=3)
    own = [stats.pearsonr(t.metrics["m"][t.documents == d], t.human["h"][t.documents == d])[0] for d in range(3)]
    found = article_sampling(t, "m", "h", sizes=[1], draws=3000, seed=4)[0]
    assert found.mean == pytest.approx(np.mean(own), abs=0.03)
    assert found.sd == pytest.approx(np.std(own), abs=0.03)
    # Two draws: the spread is over n − 1.
    two = article_sampling(t, "m", "h", sizes=[1], draws=2, seed=3)[0]
    assert any(two.sd == pytest.approx(np.std([a, b], ddof=1)) for a in own for b in own)


def test_more_articles_are_steadier_and_the_seed_decides():
    found = article_sampling(table(), "m", "h", sizes=[2, 10, 30], seed=1)
    assert found[0].sd > found[1].sd > found[2].sd
    assert found == article_sampling(table(), "m", "h", sizes=[2, 10, 30], seed=1)
    assert found[1] == article_sampling(table(), "m", "h", sizes=[10], seed=1)[0]
    assert found[0].mean != article_sampling(table(), "m", "h", sizes=[2], seed=2)[0].mean


def test_undefined_draws_are_counted():
    # Article a has the same metric everywhere, so drawing it alone gives no correlation.
    t = make_table(
        "two", list("aaaabbbb"), list("12341234"), {"h": [1, 2, 3, 4] * 2}, {"m": [5, 5, 5, 5, 1, 2, 3, 4]}, [1] * 8
    )
    found = article_sampling(t, "m", "h", sizes=[1], draws=40)[0]
    assert found.mean == pytest.approx(1)
    assert found.skipped > 0
    assert found.draws + found.skipped == 40


def test_sizes_end_with_all_articles_and_few_articles_or_systems_give_nothing():
    sizes = [size.articles for size in article_sampling(table(), "m", "h", draws=2)]
    assert sizes == [1, 2, 3, 5, 7, 10, 15, 20, 30, 40]
    assert article_sampling(table(systems=2), "m", "h") == article_sampling(table(documents=1), "m", "h") == []


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

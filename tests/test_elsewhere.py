"""What other tools take of negsample: pytest its plugin, ``evaluate`` its metric, a shell its words."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests_support import story

from negsample import Estimator

pytest_plugins = ["pytester"]
ALONE = ("-p", "no:xdist", "-p", "no:cacheprovider")


def test_a_fixture_with_limits_from_options(pytester: pytest.Pytester, align_model: Path) -> None:
    (document, good), (_, foreign) = story(1), story(2)
    score = float(Estimator.load(align_model).score([document], [good])[0])
    pytester.makepyfile(f"""
        def test_given(negsample_quality):
            negsample_quality([{document!r}], [{good!r}])

        def test_both(negsample_quality):
            negsample_quality([{document!r}] * 2, [{good!r}, {foreign!r}], score=0.0)

        def test_its_own(negsample_quality):
            negsample_quality([{document!r}], [{good!r}], score={score + 0.01})
    """)
    pytester.makeini(f"[pytest]\nnegsample_model = {align_model}\nnegsample_fail_under = score={score - 0.01}")
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: mean score *lowest: pair 0 (*"])
    done = pytester.runpytest_inprocess(*ALONE, "--negsample-fail-under", "1", "-k", "given")
    done.assert_outcomes(failed=1)
    done = pytester.runpytest_inprocess(*ALONE, "--negsample-fail-under", "supprt=0", "-k", "given")
    done.stdout.fnmatch_lines(["*InputError: nothing is called 'supprt' here*"])


def test_the_plugin_loads_nothing_until_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_light(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("negsample")
            assert not {"torch", "numpy", "pandas", "negsample.models"} & set(sys.modules)
    """)
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)


def test_a_metric_of_evaluate(align_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = pytest.importorskip("evaluate")
    from negsample import summary_quality

    documents, summaries = map(list, zip(story(1), story(2), strict=True))
    metric = evaluate.load(summary_quality.__path__[0], cache_dir=str(tmp_path))
    found = metric.compute(predictions=summaries, documents=documents, model=str(align_model))
    scores = Estimator.load(align_model).score(documents, summaries)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-5)
    assert found["score"] == pytest.approx(float(scores.mean()), abs=1e-5)
    assert {"coverage", "support", "coherence", "form"} < found.keys()


def test_the_shell_completes() -> None:
    asked = {"_NEGSAMPLE_COMPLETE": "complete_bash", "COMP_WORDS": "negsample score --fail", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "negsample"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["--fail-under"], "")

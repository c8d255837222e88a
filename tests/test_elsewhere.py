"""What other tools take of negsample: pytest its plugin, ``evaluate`` and ``inspect_ai`` what scores, a shell its words."""

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


def test_a_scorer_of_inspect(align_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: the extra [inspect]")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.util import registry_create

    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path))
    # Without a network tokens can't be counted: each answer says that it took none.
    answers = [story(1)[1], story(2)[1], " "]
    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in answers]
    given = [output.model_copy(update={"usage": ModelUsage()}) for output in outputs]
    samples = [Sample(input="Summarize.", metadata={"article": story(number)[0]}) for number in (1, 2, 3)]

    def run(**how: object) -> object:
        # By its name: inspect_ai finds it through the entry point.
        scorer = registry_create("scorer", "negsample/summary_quality", model=str(align_model), **how)
        task = inspect_ai.Task(dataset=samples, scorer=scorer)
        model = get_model("mockllm/model", custom_outputs=given, memoize=False)
        return inspect_ai.eval(task, model=model, display="none", max_samples=1)[0]

    log = run(document="article")
    assert log.status == "success"
    scores = Estimator.load(align_model).score(*zip(story(1), story(2), strict=True))
    one, two, blank = (sample.scores["summary_quality"] for sample in log.samples)
    assert [one.value["score"], two.value["score"]] == pytest.approx(scores.tolist(), abs=1e-5)
    assert np.isnan(blank.value)
    assert (blank.reason, blank.explanation) == ("no_response", "the summary is blank")
    told = {score.name: score for score in log.results.scores}
    assert told.keys() == {"score", "coverage", "support", "coherence", "form"}
    assert (told["score"].scored_samples, told["score"].unscored_samples) == (2, 1)
    assert told["score"].metrics["mean"].value == pytest.approx(float(scores.mean()), abs=1e-5)
    told = run(document="url").error.message
    assert "metadata['url'] of sample 1 is no document; name its key with document=" in told


def test_the_shell_completes() -> None:
    asked = {"_NEGSAMPLE_COMPLETE": "complete_bash", "COMP_WORDS": "negsample score --fail", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "negsample"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["--fail-under"], "")


def test_completion_is_installed(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("negsample")
    # The shell is found among the parents of the process; with a second command bash stays one.
    done = subprocess.run(
        ["bash", "-c", f"'{command}' --install-completion; exit $?"],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "bash completion installed" in done.stdout
    # What a bash that reads its .bashrc then does with "negsample sel" and the tab.
    tab = 'COMP_WORDS=(negsample sel); COMP_CWORD=1; f=$(complete -p negsample); f=${f#*-F }; ${f% *} "$0"; echo ${COMPREPLY[@]}'
    script = f"source '{tmp_path}/.bashrc'; {tab}"
    done = subprocess.run(["bash", "-c", script, command], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("select\n", "")

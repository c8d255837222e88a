"""What other tools take of negsample: pytest its plugin, ``evaluate`` and ``inspect_ai`` what scores, a shell its words."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plugin_files import write_plugin
from tests_support import story

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models.encoders import ENCODERS
from negsample.models.heads import HEADS
from negsample.negatives.recipe import parse_recipe
from negsample.sentences import split_sentences
from negsample.train.config import make_config
from negsample.train.data import make_examples
from negsample.train.job import train

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


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The encoder's module; encoder and head are registered while the test runs, with a cache of their own."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    write_plugin(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    for registry in (ENCODERS, HEADS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    ENCODERS.register("letters", "letters_encoder:make")
    HEADS.register("means", "means_head:Means")
    module = importlib.import_module("letters_encoder")
    module.SEEN.clear()
    return module


def sentences_of(folder: Path) -> set[str]:
    return {
        sentence
        for split in ("train", "validation", "test")
        for example in read_examples(folder / f"{split}.jsonl.gz")
        for text in (example.document, example.summary)
        for sentence in split_sentences(text)
    }


def test_trained_and_loaded_again(plugin, pairs_file, tmp_path):
    config = make_config({"corpus": str(pairs_file), "encoder": "letters", "head": "means", "epochs": 1})
    found = train(config, tmp_path / "m")
    make_examples(config, parse_recipe("crosspair"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    scores = Estimator.load(tmp_path / "m").score([e.document for e in examples], [e.summary for e in examples])
    labels = np.array([example.label for example in examples])
    assert found["test"]["accuracy"]["value"] == pytest.approx(np.mean((scores >= 0.5) == (labels == 1)))
    about = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (about["head"], about["encoder"]["name"]) == ("means", "letters")
    # Without the plugin the model can't be read, and the message names what is missing.
    for registry, name in ((ENCODERS, "letters"), (HEADS, "means")):
        registry._entries.pop(name)
    with pytest.raises(InputError, match=r"'means'|'letters'"):
        Estimator.load(tmp_path / "m")


def test_each_sentence_is_encoded_once_over_negatives_epochs_and_runs(plugin, pairs_file, tmp_path):
    values = {"corpus": str(pairs_file), "encoder": "letters", "negatives": 2, "epochs": 2, "patience": 9}
    config = make_config({**values, "head": "fc", "recipe": "delete"})
    found = train(config, tmp_path / "a")
    assert len(found["epochs"]) == 2
    make_examples(config, parse_recipe("delete"), tmp_path / "examples")
    expected = sentences_of(tmp_path / "examples")
    assert dict(plugin.SEEN) == dict.fromkeys(expected, 1)
    # Cross pairing makes no new sentence: another run, recipe and head encode nothing.
    train(make_config({**values, "head": "means", "recipe": "crosspair"}), tmp_path / "b")
    Estimator.load(tmp_path / "b").score(["A cat sat."], [next(iter(expected))])
    assert dict(plugin.SEEN) == dict.fromkeys([*expected, "A cat sat."], 1)


def test_found_through_entry_points(tmp_path):
    write_plugin(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "from negsample.models.heads import HEADS; from negsample.models.encoders import make_encoder; "
    code += "print(make_encoder('letters').dim, HEADS.get('means').__name__)"
    # A process of its own: installed packages are looked through once a process.
    command, env = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[1:] == ["Means"], done.stderr

"""The search file: what is drawn, under which condition, and what is refused."""

import optuna
import pytest
from optuna.trial import FixedTrial

from negsample.errors import InputError
from negsample.train.config import make_config
from negsample.train.search.settings import read_search

HEADS, FC, ONE_EPOCH = "head: {choices: [fc, lstm]}", "space: {head: {choices: [fc]}}", "{low: 1, high: 2}"
RATES = "learning_rate: [{low: 1e-6, high: 1e-4, when: {head: cls}}, {low: 1e-4, high: 0.01, when: {head: [fc, lstm]}}]"
CROSSPAIR = "crosspair: {low: 0, high: 1}"


def search(tmp_path, text, more="objective: pearson"):
    path = tmp_path / "search.yaml"
    path.write_text(f"{text}\n{more}\n", encoding="utf-8")
    return read_search(path)


@pytest.mark.parametrize(
    ("space", "params", "drawn"),
    [
        ("learning_rate: {low: 1e-5, high: 0.01, log: true}", {"learning_rate": 2e-4}, {"learning_rate": 2e-4}),
        ("batch_size: {low: 8, high: 32, step: 8}", {"batch_size": 24}, {"batch_size": 24}),
        # The first range whose condition holds, each a parameter of its own.
        (
            f"head: {{choices: [fc, lstm, cls]}}, {RATES}",
            {"head": "cls", "learning_rate[head=cls]": 3e-5},
            {"head": "cls", "learning_rate": 3e-5},
        ),
        (
            f"head: {{choices: [fc, lstm, cls]}}, {RATES}",
            {"head": "fc", "learning_rate[head=fc|lstm]": 1e-3},
            {"head": "fc", "learning_rate": 1e-3},
        ),
        # Conditions on a default and on a fixed setting.
        ("max_length: {choices: [128], when: {head: fc}}, seed: {choices: [4]}", {"seed": 4}, {"seed": 4}),
        ("max_length: {choices: [128], when: {loss: bce}}", {"max_length": 128}, {"max_length": 128}),
        # A recipe of ranges, choices and fixed weights.
        (
            f"{HEADS}, recipe: {{{CROSSPAIR}, delete: 0.5, add: {{choices: [0, 1], when: {{head: lstm}}}}}}",
            {"head": "fc", "recipe.crosspair": 0.4},
            {"head": "fc", "recipe": {"crosspair": 0.4, "delete": 0.5}},
        ),
        # A choice that is no plain value has a label.
        (
            "recipe: {choices: [crosspair, {crosspair: 1, delete: 3}]}",
            {"recipe": '{"crosspair": 1, "delete": 3}'},
            {"recipe": {"crosspair": 1, "delete": 3}},
        ),
    ],
)
def test_what_is_drawn(tmp_path, space, params, drawn):
    found = search(tmp_path, f"train: {{loss: bce}}\nspace: {{{space}}}")
    values = found.searched.draw(FixedTrial(params), found.train)
    assert values == {"loss": "bce", **drawn}
    make_config(values)


@pytest.mark.parametrize(
    ("space", "place"),
    [
        ("", "space must map settings"),
        ("heads: {choices: [fc]}", "space: unknown key 'heads'; did you mean head?"),
        ("head: {choice: [fc]}", "head: unknown key 'choice'; did you mean choices?"),
        ("head: {choices: [fcc]}", "head: no head is called 'fcc'"),
        ("head: {choices: [fc, fc]}", "head: choices: 'fc' is given twice"),
        ("head: {low: 1, high: 2}", "head: is not a number"),
        ("epochs: {low: 3, high: 1}", "space: epochs: "),
        ("epochs: {low: 1, high: 2.5}", "space: epochs: high"),
        ("learning_rate: {low: fast, high: 1}", "learning_rate: low"),
        ("batch_size: {low: 0, high: 8}", "space: batch_size: batch_size must be at least 1"),
        ("mixed_precision: {choices: [bf16]}", "mixed_precision: can't differ between trials"),
        ("recipe: {crosspairs: {low: 0, high: 1}}", "no negative is called 'crosspairs'"),
        ("recipe: {crosspair: 1}", "recipe: no weight has a range"),
        ("epochs: {low: 1, high: 2, when: {haed: fc}}", "when: unknown key 'haed'; did you mean head"),
        (f"epochs: {{low: 1, high: 2, when: {{head: fc}}}}, {HEADS}", "epochs: when: head stands below"),
        (f"{HEADS}, epochs: {{low: 1, high: 2, when: {{head: cls}}}}", "epochs: when: head is never 'cls'"),
        (f"epochs: [{ONE_EPOCH}, {ONE_EPOCH}]", "epochs: one of several ranges needs a condition"),
    ],
)
def test_a_space_that_is_refused(tmp_path, space, place):
    refused(tmp_path, f"space: {{{space}}}", place)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("spaces: {}", "unknown key 'spaces'; did you mean space?"),
        (f"train: {{head: fc}}\n{FC}", "space: head"),
        (f"train: {{recipe: delet}}\n{FC}", "no recipe is called 'delet'"),
        (f"{FC}\nobjective: acuracy", "objective"),
        (f"{FC}\nobjective: {{agreement: {{judgments: [a, b, c], human: [x, y]}}}}", "agreement: human"),
        (f"{FC}\nobjective: {{agreement: {{judgments: a, human: x, level: summery}}}}", "agreement: level"),
        *((f"{FC}\nseed: {seed}", "seed") for seed in (-1, 2**63)),
        (f"{FC}\nsampler: tpee", "sampler: none is called 'tpee'; did you mean tpe?"),
        # What optuna finds when a method is made, and when it works.
        (f"{FC}\nsampler: {{name: tpe, n_startup: 3}}", "sampler tpe, options n_startup: 3: "),
        (f"{FC}\nsampler: {{name: tpe, n_ei_candidates: 0}}", "sampler tpe, options n_ei_candidates: 0: "),
        (f"{FC}\npruner: {{name: percentile}}", "pruner percentile"),
        (
            f"{FC}\npruner: {{name: hyperband, reduction_factor: 3.5}}",
            "pruner hyperband, options reduction_factor: 3.5: ",
        ),
        # Losses of different functions are not compared.
        ("space: {loss: {choices: [bce, mse]}}\nobjective: validation_loss", "objective: "),
        ("space: {loss: {choices: [bce, mse]}}\npruner: median", "pruner: "),
    ],
)
def test_a_file_that_is_refused(tmp_path, text, place):
    refused(tmp_path, text, place)


def refused(tmp_path, text, place):
    text = text if "objective" in text else f"{text}\nobjective: accuracy"
    with pytest.raises(InputError) as caught:
        search(tmp_path, text, "")
    assert "search.yaml: " in str(caught.value)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "graded"),
    [
        ("train: {recipe: delete}\nspace: {head: {choices: [fc]}}", {True}),
        ("space: {recipe: {choices: [crosspair, delete]}}", {True, False}),
        # Without the condition the recipe is the default, crosspair.
        (f"space: {{{HEADS}, recipe: {{choices: [add, delete], when: {{head: fc}}}}}}", {True, False}),
        (f"space: {{recipe: {{{CROSSPAIR}, delete: 0}}}}", {False}),
        # A weight of exactly 0 is never drawn from an unbroken range.
        (f"space: {{recipe: {{{CROSSPAIR}, delete: {{low: 0, high: 1, step: 0.5}}}}}}", {True, False}),
        # Where delete has no weight, there is no recipe at all.
        ("space: {recipe: {delete: {choices: [0, 1]}}}", {True}),
    ],
)
def test_accuracy_needs_a_recipe_that_is_not_graded(tmp_path, text, graded):
    text = text.replace("train: {", "train: {loss: bce, ") if "train" in text else f"train: {{loss: bce}}\n{text}"
    assert not any("accuracy" in note for note in search(tmp_path, text).notes())
    if graded == {True}:
        refused(tmp_path, f"{text}\nobjective: accuracy", "objective: accuracy is not defined for graded labels")
    else:
        notes = search(tmp_path, text, "objective: accuracy").notes()
        assert sum("have no accuracy, and fail" in note for note in notes) == (True in graded)


def test_what_can_be_compared_is_told(tmp_path):
    graded = search(tmp_path, "space: {recipe: {choices: [add, delete]}}", "objective: validation_loss")
    assert "measured on validation examples of its own" in graded.notes()[0]
    # The default pruner is one only where losses can be compared.
    assert graded.method("pruner")[0] == "none"
    assert search(tmp_path, "space: {loss: {choices: [bce, mse]}}").method("pruner")[0] == "none"
    assert search(tmp_path, f"space: {{epochs: {ONE_EPOCH}}}").method("pruner")[0] == "median"


def test_samplers_differ_from_trial_to_trial_and_are_the_same_again(tmp_path):
    space = "space: {epochs: {low: 1, high: 1000000}}"
    search(tmp_path, f"{space}\nsampler: qmc\nseed: {2**63 - 1}")  # numpy's seeds have 32 bits
    found = search(tmp_path, f"{space}\nsampler: random\nseed: 3")

    def draw(number):
        study = optuna.create_study(sampler=found.make_sampler(number))
        return found.searched.draw(study.ask(), found.train)["epochs"]

    values = [draw(number) for number in range(5)]
    assert len(set(values)) == 5
    assert values == [draw(number) for number in range(5)]

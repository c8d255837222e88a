"""The search file: what is drawn, under which condition, and what is refused."""

import pytest
from optuna.trial import FixedTrial

from negsample.errors import InputError
from negsample.train.config import make_config
from negsample.train.search.settings import read_search


def search(tmp_path, text):
    path = tmp_path / "search.yaml"
    path.write_text(text, encoding="utf-8")
    return read_search(path)


def drawn(tmp_path, space, params, train=""):
    found = search(tmp_path, f"train: {{loss: bce{train}}}\nobjective: pearson\nspace:\n{space}")
    values = found.searched.draw(FixedTrial(params), found.train)
    make_config(values)
    return values


def test_choices_ranges_and_types(tmp_path):
    space = """
  learning_rate: {low: 1e-5, high: 0.01, log: true}
  batch_size: {low: 8, high: 32, step: 8}
  encoder: {choices: [glove, hf]}
  freeze_encoder: {choices: [true, false]}
"""
    params = {"learning_rate": 2e-4, "batch_size": 24, "encoder": "hf", "freeze_encoder": True}
    assert drawn(tmp_path, space, params) == {"loss": "bce", **params}


def test_conditions_decide_what_is_drawn(tmp_path):
    space = """
  head: {choices: [fc, lstm, cls]}
  learning_rate:
    - {low: 1.0e-6, high: 1.0e-4, log: true, when: {head: cls}}
    - {low: 1.0e-4, high: 1.0e-2, log: true, when: {head: [fc, lstm]}}
  max_length: {choices: [128, 256], when: {head: cls}}
"""
    cls = {"head": "cls", "learning_rate[head=cls]": 3e-5, "max_length": 256}
    assert drawn(tmp_path, space, cls) == {"loss": "bce", "head": "cls", "learning_rate": 3e-5, "max_length": 256}
    fc = {"head": "fc", "learning_rate[head=fc|lstm]": 1e-3}
    assert drawn(tmp_path, space, fc) == {"loss": "bce", "head": "fc", "learning_rate": 1e-3}


def test_a_condition_on_a_fixed_setting_and_on_a_default(tmp_path):
    space = "  max_length: {choices: [128], when: {head: cls}}\n  max_summary: {choices: [4], when: {seed: 0}}\n"
    both = {"max_length": 128, "max_summary": 4}
    assert drawn(tmp_path, space, both) == {"loss": "bce", **both}
    assert drawn(tmp_path, space, both, ", head: fc") == {"loss": "bce", "head": "fc", "max_summary": 4}


def test_a_recipe_of_ranges_and_fixed_weights(tmp_path):
    space = """
  head: {choices: [fc, lstm]}
  recipe:
    crosspair: {low: 0.1, high: 2}
    delete: 0.5
    add: {choices: [0, 1], when: {head: lstm}}
"""
    values = drawn(tmp_path, space, {"head": "fc", "recipe.crosspair": 1.5})
    assert values["recipe"] == {"crosspair": 1.5, "delete": 0.5}


def test_choices_that_are_no_plain_values(tmp_path):
    space = "  recipe: {choices: [crosspair, {crosspair: 1, delete: 3}]}\n"
    values = drawn(tmp_path, space, {"recipe": '{"crosspair": 1, "delete": 3}'})
    assert values["recipe"] == {"crosspair": 1, "delete": 3}


HEAD = "objective: accuracy\nspace:\n"
FC = HEAD + "  head: {choices: [fc]}\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("spaces: {}\nobjective: accuracy\n", "unknown key 'spaces'; did you mean space?"),
        ("train: {head: fc}\n" + FC, "space: head"),
        ("train: {haed: fc}\n" + HEAD + "  seed: {choices: [1]}\n", "train: unknown key 'haed'"),
        ("train: {recipe: delet}\n" + FC, "no recipe is called 'delet'"),
        ("objective: acuracy\nspace: {head: {choices: [fc]}}\n", "objective"),
        ("objective: accuracy\n", "space"),
        ("objective: {agreement: {judgments: [a]}}\nspace: {head: {choices: [fc]}}\n", "agreement: human"),
        (
            "objective: {agreement: {judgments: [a, b, c], human: [x, y]}}\nspace: {head: {choices: [fc]}}\n",
            "agreement: human",
        ),
        ("objective: {agreement: {judgments: a, human: x, level: summery}}\nspace: {seed: {choices: [1]}}\n", "level"),
        ("sampler: tpee\n" + FC, "sampler: none is called 'tpee'; did you mean tpe?"),
        ("sampler: {name: [tpe]}\n" + FC, "sampler"),
        ("seed: -1\n" + FC, "seed"),
        (HEAD + "  heads: {choices: [fc]}\n", "space: unknown key 'heads'; did you mean head?"),
        (HEAD + "  head: {choice: [fc]}\n", "head: unknown key 'choice'; did you mean choices?"),
        (HEAD + "  head: {choices: [fcc]}\n", "head: no head is called 'fcc'"),
        (HEAD + "  head: {choices: []}\n", "head: choices"),
        (HEAD + "  head: {choices: [fc, fc]}\n", "head: choices: 'fc' is given twice"),
        (HEAD + "  head: {low: 1, high: 2}\n", "head: is not a number"),
        (HEAD + "  head: {choices: [fc], low: 1}\n", "space: head"),
        (HEAD + "  epochs: {low: 3}\n", "space: epochs: "),
        (HEAD + "  epochs: {low: 3, high: 1}\n", "space: epochs: "),
        (HEAD + "  epochs: {low: 1, high: 2.5}\n", "space: epochs: high"),
        (HEAD + "  learning_rate: {low: 0, high: 1, log: true}\n", "space: learning_rate: "),
        (HEAD + "  learning_rate: {low: fast, high: 1}\n", "learning_rate: low"),
        (HEAD + "  batch_size: {low: 0, high: 8}\n", "batch_size must be at least 1"),
        (HEAD + "  mixed_precision: {choices: [bf16]}\n", "mixed_precision: can't differ between trials"),
        (HEAD + "  recipe: {crosspairs: {low: 0, high: 1}}\n", "no negative is called 'crosspairs'"),
        (HEAD + "  recipe: {crosspair: {low: -1, high: 1}}\n", "recipe: crosspair"),
        (HEAD + "  recipe: {crosspair: 1}\n", "recipe: no weight has a range"),
        (HEAD + "  epochs: {low: 1, high: 2, when: {haed: fc}}\n", "when: unknown key 'haed'; did you mean head"),
        (
            HEAD + "  epochs: {low: 1, high: 2, when: {head: fc}}\n  head: {choices: [fc, cls]}\n",
            "epochs: when: head stands below",
        ),
        (
            HEAD + "  head: {choices: [fc, cls]}\n  epochs: {low: 1, high: 2, when: {head: lstm}}\n",
            "epochs: when: head is never 'lstm'",
        ),
        (
            HEAD + "  epochs: [{low: 1, high: 2}, {low: 3, high: 4}]\n",
            "epochs: one of several ranges needs a condition",
        ),
        # What optuna finds when a method is made, and when it works.
        ("sampler: {name: tpe, n_startup: 3}\n" + FC, "sampler tpe, options n_startup: 3: "),
        ("sampler: {name: tpe, n_startup_trials: x}\n" + FC, "sampler tpe, options n_startup_trials: 'x': "),
        ("sampler: {name: tpe, n_ei_candidates: 0}\n" + FC, "sampler tpe, options n_ei_candidates: 0: "),
        ("sampler: {name: qmc, qmc_type: 3}\n" + FC, "sampler qmc"),
        ("pruner: {name: percentile}\n" + FC, "pruner percentile"),
        ("pruner: {name: median, n_warmup_steps: soon}\n" + FC, "pruner median, options n_warmup_steps: 'soon': "),
        (
            "pruner: {name: hyperband, reduction_factor: 3.5}\n" + FC,
            "pruner hyperband, options reduction_factor: 3.5: ",
        ),
    ],
)
def test_what_is_refused_says_where(tmp_path, text, place):
    with pytest.raises(InputError) as caught:
        search(tmp_path, text)
    assert "search.yaml: " in str(caught.value)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "method",
    [
        "sampler: {name: tpe, n_startup_trials: 4, group: true, multivariate: true, prior_weight: 1, gamma: null}",
        "sampler: {name: qmc, scramble: true, qmc_type: halton}",
        "pruner: {name: percentile, percentile: 25}",
        "pruner: {name: percentile, percentile: 12.5}",
        "pruner: {name: successive-halving, min_resource: auto}",
        "pruner: {name: successive-halving, min_resource: 2}",
        "pruner: {name: hyperband, max_resource: 9}",
    ],
)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning", "ignore::FutureWarning")
def test_options_of_the_right_type_are_taken(tmp_path, method):
    found = search(tmp_path, f"{method}\n{FC}")
    found.make_sampler(0)
    found.make_pruner()


CROSSPAIR, CROSSPAIR_OR_NONE = "crosspair: {low: 0, high: 1}", "crosspair: {choices: [0, 1]}"
HEADS = "head: {choices: [fc, lstm]}"


@pytest.mark.parametrize(
    ("train", "space", "graded"),
    [
        ("recipe: delete", "head: {choices: [fc]}", {True}),
        ("recipe: {crosspair: 1, delete: 1}", "head: {choices: [fc]}", {True}),
        ("recipe: {crosspair: 1, delete: 0}", "head: {choices: [fc]}", {False}),
        ("", "head: {choices: [fc]}", {False}),
        ("", "recipe: {choices: [add, delete]}", {True}),
        ("", "recipe: {choices: [crosspair, delete]}", {True, False}),
        # Without the condition the recipe is the default, crosspair.
        ("", f"{HEADS}, recipe: {{choices: [add, delete], when: {{head: fc}}}}", {True, False}),
        ("", "recipe: {choices: [add, delete], when: {head: fc}}", {False}),
        ("", f"recipe: {{{CROSSPAIR}, delete: 0.5}}", {True}),
        ("", f"recipe: {{{CROSSPAIR}, delete: 0}}", {False}),
        # A weight of exactly 0 is never drawn from an unbroken range.
        ("", f"recipe: {{{CROSSPAIR}, delete: {{low: 0, high: 1}}}}", {True}),
        ("", f"recipe: {{{CROSSPAIR}, delete: {{low: 0, high: 1, step: 0.5}}}}", {True, False}),
        ("", f"recipe: {{{CROSSPAIR}, delete: {{choices: [0, 1]}}}}", {True, False}),
        ("", f"recipe: {{{CROSSPAIR}, delete: {{choices: [1, 2]}}}}", {True}),
        ("", f"{HEADS}, recipe: {{{CROSSPAIR}, delete: {{low: 1, high: 2, when: {{head: fc}}}}}}", {True, False}),
        # Where delete has no weight, there is no recipe at all.
        ("", "recipe: {delete: {choices: [0, 1]}}", {True}),
        ("", f"recipe: {{{CROSSPAIR_OR_NONE}}}", {False}),
    ],
)
def test_accuracy_needs_a_recipe_that_is_not_graded(tmp_path, train, space, graded):
    text = f"train: {{loss: bce, {train}}}\nspace: {{{space}}}\n"
    found = search(tmp_path, f"{text}objective: pearson\n")
    assert found._tried[1] == graded
    assert not any("accuracy" in note for note in found.notes())
    if graded == {True}:
        with pytest.raises(InputError, match=r"search\.yaml: objective: accuracy is not defined for graded labels"):
            search(tmp_path, f"{text}objective: accuracy\n")
    else:
        notes = search(tmp_path, f"{text}objective: accuracy\n").notes()
        assert sum("have no accuracy, and fail" in note for note in notes) == (True in graded)


LOSSES = "space: {loss: {choices: [bce, mse]}}\n"


def test_losses_of_different_functions_are_not_compared(tmp_path):
    with pytest.raises(InputError, match="can't be compared \\(bce, mse\\)"):
        search(tmp_path, "objective: validation_loss\n" + LOSSES)
    with pytest.raises(InputError, match=r"pruner: validation losses.*can't be compared \(bce, mse\)"):
        search(tmp_path, "objective: accuracy\npruner: median\n" + LOSSES)
    recipe = "space: {recipe: {choices: [crosspair, delete]}}\n"
    with pytest.raises(InputError, match="can't be compared \\(bce, mse\\)"):
        search(tmp_path, "objective: validation_loss\n" + recipe)
    # All of these are trained by the mean squared error.
    assert search(tmp_path, "objective: validation_loss\nspace: {recipe: {choices: [add, delete]}}\n").notes()
    found = search(tmp_path, "train: {loss: bce}\nobjective: validation_loss\n" + recipe)
    assert "measured on validation examples of its own" in found.notes()[0]


def test_the_default_pruner_is_one_only_where_losses_can_be_compared(tmp_path):
    assert search(tmp_path, "objective: accuracy\n" + LOSSES).method("pruner")[0] == "none"
    assert search(tmp_path, "objective: accuracy\nspace: {epochs: {low: 1, high: 3}}\n").method("pruner")[0] == "median"


def test_samplers_differ_from_trial_to_trial_and_are_the_same_again(tmp_path):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found = search(
        tmp_path, "sampler: random\nseed: 3\nobjective: accuracy\nspace: {epochs: {low: 1, high: 1000000}}\n"
    )

    def draw(number):
        study = optuna.create_study(sampler=found.make_sampler(number))
        return found.searched.draw(study.ask(), found.train)["epochs"]

    values = [draw(number) for number in range(5)]
    assert len(set(values)) == 5
    assert values == [draw(number) for number in range(5)]

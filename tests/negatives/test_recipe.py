import math
from collections import Counter

import pytest

from negsample.errors import InputError
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.seeds import generator


@pytest.mark.parametrize("kind", ["crosspair", "add", "sentence-delete"])
def test_a_name_is_a_recipe(kind):
    recipe = parse_recipe(kind)
    assert recipe.kinds == (kind,)
    assert str(recipe) == kind
    assert recipe.graded == (kind != "crosspair")
    assert recipe.order(generator(0)) == [kind]


def test_a_mixture_from_a_file(tmp_path):
    file = tmp_path / "mix.yaml"
    file.write_text("delete: 2\nadd: 0.5\nreplace: 0\n# a comment\n", "utf-8")
    recipe = parse_recipe(f"mix:{file}")
    assert recipe == Recipe({"add": 0.5, "delete": 2.0})
    assert str(recipe) == "mix(add=0.5,delete=2)"
    assert parse_recipe(str(recipe)) == recipe
    assert parse_recipe({"delete": 2, "add": "5e-1"}) == recipe
    assert str(parse_recipe({"crosspair": 3, "delete": 0})) == "crosspair"
    assert parse_recipe({"crosspair": 3, "delete": 1}).graded
    with pytest.raises(InputError, match=r"none\.yaml: no such file"):
        parse_recipe(f"mix:{tmp_path / 'none.yaml'}")


def test_kinds_are_drawn_by_weight_and_all_others_follow():
    recipe = Recipe({"add": 1, "delete": 2, "crosspair": 5})
    rng = generator("weights")
    orders = [recipe.order(rng) for _ in range(4000)]
    assert all(sorted(order) == ["add", "crosspair", "delete"] for order in orders)
    first = Counter(order[0] for order in orders)
    # Binomial sd at most 31.6.
    assert abs(first["add"] - 500) < 130
    assert abs(first["delete"] - 1000) < 150
    assert abs(first["crosspair"] - 2500) < 160


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("delet", "did you mean delete"),
        ("", "has no name"),
        ({"delete": 1, "replce": 1}, "did you mean replace"),
        ({"delete": -1}, "the weight of 'delete' is -1"),
        *(
            ({"delete": weight}, f"the weight of 'delete' must be a number, not {weight!r}")
            for weight in (math.nan, math.inf, 10**400, "x", True, None)
        ),
        *((weights, "the weights add up to") for weights in ({"delete": 0}, {}, {"add": 1.7e308, "delete": 1.7e308})),
        ({3: 1}, "no negative is called 3"),
        ("mix(add=x)", "the weight of 'add' must be a number, not 'x'"),
        ("mix()", "no recipe is called 'mix()'"),
        (None, "give the name of a kind"),
        (b"delete: [1", "line 1: not valid YAML"),
        (b"- delete\n- add\n", "write a line 'kind: weight'"),
        (b"", "write a line 'kind: weight'"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"delet: 1", "mix.yaml: no negative is called 'delet'; did you mean delete?"),
    ],
)
def test_wrong_recipes_are_refused(tmp_path, spec, message):
    if isinstance(spec, bytes):
        (tmp_path / "mix.yaml").write_bytes(spec)
        spec = f"mix:{tmp_path / 'mix.yaml'}"
    with pytest.raises(InputError) as caught:
        parse_recipe(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

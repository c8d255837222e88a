from collections.abc import Collection

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.align.aspects import ASPECTS, MATCH_CENTRES, SOURCES, feature_set
from negsample.models.heads.align import Align, Monotone, untrained

N = 5


def arguments(seed: int, sources: Collection[str] = tuple(SOURCES), batch: int = 3) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = feature_set(sources)
    spread = torch.randn(batch, len(features), generator=generator)
    mask = torch.ones(batch, N, dtype=torch.bool)
    mask[0, 3:] = False
    return {
        "features": torch.tensor([f.centre for f in features]) + spread * torch.tensor([f.scale for f in features]),
        "salience": torch.rand(batch, N, 6, generator=generator),
        "matches": torch.rand(batch, N, 3, generator=generator),
        "mask": mask,
        "present": torch.ones(batch, len(ASPECTS), dtype=torch.bool),
    }


def shaken(seed: int) -> Align:
    """A head with random weights, as training might leave it."""
    network = untrained(tuple(SOURCES), seed)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.randn_like(parameter) * 2
    return network.eval()


@given(st.integers(0, 10_000), st.floats(0, 3))
@torch.no_grad()
def test_no_output_falls_when_evidence_gets_better(seed: int, more: float) -> None:
    network, given_ = shaken(seed % 7), arguments(seed)
    before = network(**given_)
    for place, feature in enumerate(feature_set(tuple(SOURCES))):
        better = dict(given_, features=given_["features"].clone())
        better["features"][:, place] += more * feature.scale * feature.direction
        after = network(**better)
        assert (after >= before - 1e-4).all(), feature.name
        for number, aspect in enumerate(ASPECTS, start=1):
            if aspect not in feature.aspects:
                assert torch.equal(after[:, number], before[:, number])
    matches = given_["matches"].clone()
    matches[:, seed % N, seed % 3] += more
    assert (network(**dict(given_, matches=matches)) >= before - 1e-4).all()


@pytest.mark.parametrize("sources", [(), ("evidence",), ("support",)])
@torch.no_grad()
def test_untrained_is_the_weighted_mean_of_the_bounded_features(sources: tuple[str, ...]) -> None:
    network, given_ = untrained(sources), arguments(1, sources)
    given_["matches"][:] = torch.from_numpy(MATCH_CENTRES)
    features = feature_set(sources)
    weights = {"lm_lowest": 1.5, "lm_facts": 0.5, "lm_explained": 0.5, "least_support": 0.2}
    x = np.array(
        [(given_["features"][:, i].numpy() - f.centre) / f.scale * f.direction for i, f in enumerate(features)]
    ).T
    x = 4 * np.tanh(x / 4)
    aspects = []
    for aspect in ASPECTS:
        chosen = [i for i, f in enumerate(features) if aspect in f.aspects]
        own = np.array([weights.get(features[i].name, 1.0) for i in chosen])
        # The three matches stand at their centres and add nothing to coverage but their number.
        aspects.append(x[:, chosen] @ own / (own.sum() + 3 * (aspect == "coverage")))
    # In the overall score each aspect counts by its spread and its weight, and the weakest once more.
    alike = np.array([aspect / spread for aspect, spread in zip(aspects, (0.75, 0.96, 0.44, 0.60), strict=True)])
    expected = np.stack([(np.array([4, 1, 0.5, 1]) @ alike + alike.min(axis=0) / 2) / 7, *aspects], axis=1)
    np.testing.assert_allclose(network(**given_).numpy(), expected, atol=0.03)


@torch.no_grad()
def test_padding_and_absence() -> None:
    network, given_ = shaken(3), arguments(3)
    before = network(**given_)
    given_["matches"][0, 3:] = 99.0
    given_["salience"][0, 3:] = -99.0
    torch.testing.assert_close(network(**given_), before)
    given_["present"][1, 2] = False
    after = network(**given_)
    assert torch.isnan(after[1, 3])
    assert int(torch.isnan(after).sum()) == 1
    torch.testing.assert_close(after[:, 0], before[:, 0])


@torch.no_grad()
def test_salience_adds_up_to_one() -> None:
    given_ = arguments(5)
    weights = shaken(5).sentence_weights(given_["salience"], given_["mask"])
    torch.testing.assert_close(weights.sum(1), torch.ones(3, 3))
    assert (weights[0, 3:] == 0).all()


def test_monotone_as_made_is_the_mean() -> None:
    torch.manual_seed(0)
    x = torch.randn(8, 6)
    torch.testing.assert_close(Monotone(6)(x), x.mean(1), atol=0.02, rtol=0)
    # Four hidden units of weight softplus(−6) each.
    assert float(Monotone(6).drift().detach()) == pytest.approx(4 * 0.0024757**2, rel=1e-3)

"""The extractor: its probabilities, its budget, its folder."""

from pathlib import Path

import pytest
import torch
from hashed import Hashed
from tests_support import unlike_new

from negsample.errors import InputError
from negsample.models.encoders import make_encoder
from negsample.models.summarizers import Budget
from negsample.models.summarizers.extractor import Extractor
from negsample.models.summarizers.language_model import load_summarizer
from negsample.records import Source

DOCUMENTS = [
    "Rain fell. The river rose by two metres on Sunday. Boats sank in the old port. Nobody was hurt.",
    "A short one.",
    "Prices rose again last month, the office said. Bread costs more. So does milk. Wages did not follow.",
]


@pytest.fixture
def extractor() -> Extractor:
    return Extractor.new(Hashed(), Budget(words=12), seed=1)


def sources(documents: list[str]) -> list[Source]:
    return [Source(document, document) for document in documents]


def sampled(extractor: Extractor, documents: list[str], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = extractor.inputs(sources(documents))
    rng = torch.Generator().manual_seed(seed)

    def choose(logits: torch.Tensor, _: int) -> torch.Tensor:
        return torch.multinomial(torch.softmax(logits, 1), 1, generator=rng)[:, 0]

    return extractor.network.walk(inputs, choose, inputs["mask"].shape[1])


def test_the_probability_of_a_sample_is_that_of_teacher_forcing_alone_or_in_a_batch(extractor: Extractor) -> None:
    for seed in range(5):
        sequences, log_probs = sampled(extractor, DOCUMENTS, seed)
        forced = extractor.network(extractor.inputs(sources(DOCUMENTS)), sequences)
        assert forced.tolist() == pytest.approx(log_probs.tolist(), abs=1e-5)
        for row, one in enumerate(sources(DOCUMENTS)):
            alone = extractor.network(extractor.inputs([one]), sequences[row : row + 1])
            assert float(alone) == pytest.approx(float(log_probs[row]), abs=1e-5)


def test_all_ways_to_fill_the_budget_have_probabilities_that_sum_to_one(extractor: Extractor) -> None:
    # Words: 2, 8, 6, 3 of 12, so the sequences are those in which nothing more fits.
    read = extractor.read(DOCUMENTS[:1])
    assert read[0].counts == [2, 8, 6, 3]
    room = extractor.budget.room(read[0].counts)

    def endings(chosen: list[int]) -> list[list[int]]:
        further = room(chosen).nonzero()[0].tolist()
        return [end for s in further for end in endings([*chosen, s])] if further else [chosen]

    every = endings([])
    inputs = extractor.inputs(sources(DOCUMENTS[:1]))
    total = sum(float(extractor.network(inputs, torch.tensor([one])).exp()) for one in every)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_greedy_summaries_keep_to_the_budget_and_to_the_documents_order(extractor: Extractor) -> None:
    for document, summary in zip(DOCUMENTS, extractor.summarize(DOCUMENTS), strict=True):
        assert 0 < len(summary.split()) <= 12
        places = [document.index(sentence.strip()) for sentence in summary.replace(". ", ".|").split("|")]
        assert places == sorted(places)
    three = Extractor.new(Hashed(), Budget(sentences=3), seed=1)
    assert [summary.count(".") for summary in three.summarize(DOCUMENTS)] == [3, 1, 3]


def test_a_document_without_a_sentence_is_refused(extractor: Extractor) -> None:
    with pytest.raises(InputError, match="no sentence"):
        extractor.read(["  "])


def test_a_folder_gives_the_same_summaries_and_damage_is_told(tmp_path: Path) -> None:
    made = Extractor.new(make_encoder("glove(unit=sentence)"), Budget(words=10), seed=4)
    made.save(tmp_path / "model", {"training": {}})
    assert unlike_new(tmp_path / "model") == []
    again = load_summarizer(str(tmp_path / "model"))
    assert again.summarize(DOCUMENTS) == made.summarize(DOCUMENTS)
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="damaged or changed"):
        load_summarizer(str(tmp_path / "model"))

"""Language models as summarizers: probabilities of what they write, of both kinds."""

from pathlib import Path

import numpy as np
import pytest
import tiny_lm
import torch
from tests_support import unlike_new

from negsample.errors import InputError
from negsample.models.summarizers.language_model import ABOUT, END, LanguageSummarizer, Limits, load_summarizer
from negsample.records import Source

DOCUMENTS = ["the cat sat on a mat .", "a very long mat"]
SOURCES = [Source(document, document) for document in DOCUMENTS]


@pytest.fixture(params=["gpt", "bart"])
def summarizer(request: pytest.FixtureRequest, tmp_path: Path) -> LanguageSummarizer:
    folder = tiny_lm.build(tmp_path / "model", request.param)
    return LanguageSummarizer.load(str(folder), Limits(9, 6, " .", 3))


def test_the_probability_of_a_sample_is_that_of_teacher_forcing_alone_or_in_a_batch(
    summarizer: LanguageSummarizer,
) -> None:
    summarizer.network.eval()
    inputs = summarizer.inputs(SOURCES)
    sequences = summarizer.decode(inputs, SOURCES, ("a",))
    assert sequences.shape[1] <= 6
    with torch.no_grad():
        together = summarizer.network(inputs, sequences)
        assert (together < 0).all()
        for row, source in enumerate(SOURCES):
            own = sequences[row][sequences[row] >= 0]
            alone = summarizer.inputs([source])
            # What is drawn for a document does not depend on the others.
            assert summarizer.decode(alone, [source], ("a",))[0][: len(own)].tolist() == own.tolist()
            # One token after the other, each by the model's own last logits.
            total = 0.0
            for t, token in enumerate(own.tolist()):
                total += step_log_prob(summarizer, alone, own[:t], token)
            assert float(together[row]) == pytest.approx(total, abs=1e-4)
            assert float(summarizer.network(alone, own.unsqueeze(0))) == pytest.approx(total, abs=1e-4)


def step_log_prob(summarizer: LanguageSummarizer, inputs: dict, before: torch.Tensor, token: int) -> float:
    model = summarizer.network.model
    if summarizer.causal:
        ids = torch.cat([inputs["input_ids"], before.unsqueeze(0)], 1)
        logits = model(input_ids=ids).logits[0, -1]
    else:
        start = torch.tensor([[model.config.decoder_start_token_id]])
        made = model(**inputs, decoder_input_ids=torch.cat([start, before.unsqueeze(0)], 1))
        logits = made.logits[0, -1]
    return float(torch.log_softmax(logits, -1)[token])


def test_targets_end_with_the_end_token_and_are_cut(summarizer: LanguageSummarizer) -> None:
    end = summarizer.tokenizer.eos_token_id
    found = summarizer.targets(
        [Source("a", "", ("the cat", "a mat")), Source("b", ""), Source("c", "", ("the cat sat on a mat . very long",))]
    )
    rows = [[token for token in row if token != END] for row in found.tolist()]
    assert rows[1] == []
    assert rows[0][-1] == rows[2][-1] == end
    assert len(rows[2]) == 6
    assert summarizer.texts([], found)[:2] == ["the cat", ""]


def test_samples_have_the_models_probabilities_among_the_most_probable_tokens(summarizer: LanguageSummarizer) -> None:
    summarizer.network.eval()
    alone = summarizer.inputs(SOURCES[:1])
    probs = np.exp(
        [step_log_prob(summarizer, alone, torch.tensor([], dtype=torch.int64), token) for token in range(14)]
    )
    many = {name: tensor.repeat(2000, 1) for name, tensor in alone.items()}
    sources = [Source(str(number), "") for number in range(2000)]
    for top_k in (0, 3):
        kept = np.where(probs >= np.sort(probs)[-top_k], probs, 0.0)
        made = summarizer.decode(many, sources, ("a",), top_k=top_k)[:, 0]
        found = np.bincount(made.numpy(), minlength=14) / 2000
        # Four standard errors of a share.
        assert np.abs(found - kept / kept.sum()).max() < 4 * 0.5 / 2000**0.5
        assert (found > 0).sum() <= (top_k or 14)


def test_a_saved_folder_writes_the_same(summarizer: LanguageSummarizer, tmp_path: Path) -> None:
    summarizer.save(tmp_path / "out", {"reward": "words"})
    assert unlike_new(tmp_path / "out") == []
    again = LanguageSummarizer.load(str(tmp_path / "out"))
    assert again.limits == summarizer.limits
    assert again.summarize(DOCUMENTS) == summarizer.summarize(DOCUMENTS)


def test_what_is_no_model_or_too_small_is_told(summarizer: LanguageSummarizer, tmp_path: Path) -> None:
    summarizer.save(tmp_path / "out", {})
    with pytest.raises(InputError, match="room for 16 tokens"):
        LanguageSummarizer.load(str(tmp_path / "out"), Limits(512, 100))
    if summarizer.causal:
        with pytest.raises(InputError, match=r"prompt has 9 tokens, which leave none of document_tokens=9"):
            LanguageSummarizer.load(str(tmp_path / "out"), Limits(9, 6, "the cat sat on a mat . very long"))
    (tmp_path / "out" / ABOUT).write_text('{"tokens": 9}')
    with pytest.raises(InputError, match=rf"{ABOUT}: damaged"):
        load_summarizer(str(tmp_path / "out"))
    (tmp_path / "out" / "config.json").write_text("[1]")
    with pytest.raises(InputError, match=r"config\.json: damaged"):
        load_summarizer(str(tmp_path / "out"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        LanguageSummarizer.load(str(tmp_path / "empty"))

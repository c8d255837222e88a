"""Small things that many tests need: a tiny BERT in a folder, pairs, a way to run the command line."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

# One thread each for the two processes of the suite: more would wait for one another. Set before torch is loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest
from tests_support import command_line, save_untrained, story, write_pairs

# A busy machine is no failure, and a failure must come back when the test is run again.
hypothesis.settings.register_profile("here", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("here")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with two layers of width 32 and a vocabulary of whole words and letters, in a folder; random weights."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    text = " ".join(part for number in range(60) for part in story(number)).lower()
    words = sorted({word.strip(".,") for word in text.split()})
    letters = [chr(code) for code in range(97, 123)] + [str(digit) for digit in range(10)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
    vocabulary += [
        *words,
        *(letter for letter in letters if letter not in words),
        *("##" + letter for letter in letters),
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=128)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def cls_model(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained estimator of head ``cls``."""
    return save_untrained(tmp_path_factory.mktemp("model") / "cls", "cls", str(tiny_bert))


@pytest.fixture(scope="session")
def align_model(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: head ``align`` as it is made, over the tiny BERT."""
    return save_untrained(tmp_path_factory.mktemp("align") / "model", "align", f"sentence-transformer:{tiny_bert}")


@pytest.fixture(scope="session")
def fitted_model(align_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That model with the target ``relevance``: 1 to 5 by coverage and the number of words."""
    from negsample.models import load
    from negsample.models.fitted import Fitted, FittedTarget, FurtherMetric, save_fitted
    from negsample.scoring.scorer import make_metric

    folder = tmp_path_factory.mktemp("fitted") / "model"
    folder.mkdir()
    target = FittedTarget("relevance", {"coverage": 1.0, "words": 0.5}, 3.1, (1.0, 5.0), 0.5, 0.9)
    words = (FurtherMetric("words", "words", make_metric("words").signature, 1, 10.0, 5.0),)
    fitted = Fitted({"score": 0.8, "words": 0.2}, 0.0, {"relevance": target}, words, False, (), {})
    save_fitted(load(align_model), fitted, folder, "A card.")
    return folder


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pairs as JSON lines."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_pairs(path, 60)
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or fills the user's embedding cache."""
    if "NEGSAMPLE_TEST_CACHE" not in os.environ:
        os.environ["NEGSAMPLE_TEST_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("NEGSAMPLE_CACHE", os.environ["NEGSAMPLE_TEST_CACHE"])


@pytest.fixture
def negsample() -> Callable[..., subprocess.CompletedProcess]:
    """Run the command line in this process; exits and kills are tested with real ones."""
    return command_line

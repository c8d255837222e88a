"""What a language model says of fluency: against plain calls of tiny models, its scale, saving, and in training."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_lm import WORDS, build

from negsample.errors import InputError
from negsample.models.align.fluency import Fluency, load_fluency, new_fluency
from negsample.models.language.language_models import lm_kind

TEXTS = ["The cat sat on a mat.", "mat a on.", "A very long cat sat."]


@pytest.fixture(scope="module", params=["gpt", "bert"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp(request.param), request.param)


def plain_mean(folder: Path, text: str) -> float:
    """Mean log probability of the words after the first, from one plain call of the causal model."""
    import transformers

    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    ids = [WORDS.index("<s>"), *(WORDS.index(word) for word in text.lower().replace(".", " .").split())]
    with torch.no_grad():
        logs = torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].double(), dim=-1)
    return float(np.mean([logs[place, word] for place, word in enumerate(ids[1:])]))


def test_causal_means_by_a_plain_call(tmp_path: Path) -> None:
    folder = build(tmp_path / "gpt", "gpt")
    assert lm_kind(str(folder)) == "causal"
    expected = [plain_mean(folder, text) for text in TEXTS]
    fluency = new_fluency(str(folder))
    np.testing.assert_allclose(fluency.means(TEXTS), expected, atol=1e-5)
    fluency.calibrate(TEXTS)
    np.testing.assert_allclose(
        fluency.marks(TEXTS), (np.array(expected) - np.mean(expected)) / np.std(expected), atol=1e-4
    )


def test_marks_do_not_depend_on_company_and_survive_saving(folder: Path, tmp_path: Path) -> None:
    fluency = new_fluency(str(folder))
    fluency.calibrate(TEXTS)
    marks = fluency.marks(TEXTS)
    assert abs(float(marks.mean())) < 1e-5
    assert float(marks.std()) == pytest.approx(1.0, abs=1e-4)
    again = load_fluency(tmp_path / "lm", fluency.save(tmp_path / "lm"))
    alone = np.concatenate([again.marks([text]) for text in TEXTS[::-1]])[::-1]
    np.testing.assert_allclose(alone, marks, atol=1e-5)
    # A model that was loaded can be saved once more.
    third = load_fluency(tmp_path / "third", again.save(tmp_path / "third"))
    np.testing.assert_allclose(third.marks(TEXTS), marks, atol=1e-5)


def test_a_text_without_a_token_is_ordinary_and_one_text_gives_a_finite_scale(folder: Path) -> None:
    fluency = new_fluency(str(folder))
    fluency.calibrate([TEXTS[0]])
    assert fluency.marks(["", TEXTS[0]]).tolist() == [0.0, 0.0]
    # The scale is a nat still.
    assert fluency.marks(TEXTS)[1] == pytest.approx(float(np.subtract(*fluency.means(TEXTS)[[1, 0]])), abs=1e-5)


def test_layout_changes_nothing_and_answers_that_are_no_numbers_are_refused(folder: Path) -> None:
    fluency = new_fluency(str(folder))
    one, other = fluency.marks(["The cat sat. A cat sat.", " The cat\nsat.\n\nA cat sat. "])
    assert one == other
    with torch.no_grad():
        next(fluency.lm.head.network.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="are no numbers"):
        fluency.marks(["The mat sat."])


def test_files_that_changed_are_refused(folder: Path, tmp_path: Path) -> None:
    fluency: Fluency = new_fluency(str(folder))
    saved = fluency.save(tmp_path / "lm")
    with pytest.raises(InputError, match="damaged or changed"):
        load_fluency(tmp_path / "lm", {**saved, "fingerprint": "0" * 64})
    (tmp_path / "lm" / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json is missing"):
        load_fluency(tmp_path / "lm", saved)


def test_a_configuration_that_names_nothing(tmp_path: Path) -> None:
    for text in ('{"architectures": {"a": "b"}}', "[]", '{"architectures": []}'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(InputError, match="no masked or causal language model"):
            lm_kind(str(tmp_path))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        lm_kind(str(tmp_path))


def test_a_model_that_is_no_language_model(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="no masked or causal language model"):
        new_fluency(str(tiny_bert))

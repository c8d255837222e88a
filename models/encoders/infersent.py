"""InferSent (Conneau et al., 2017, §3.2.2): a bidirectional LSTM over word vectors, and the maximum over its states.

The weights (``infersent1.pkl``, ``infersent2.pkl``) and word vectors (GloVe 840B for version 1, fastText crawl-300d-2M
for version 2) are the user's: both have licences of their own.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import replacing
from negsample.models.batching import like_lengths, pad
from negsample.models.encoders import as_texts
from negsample.models.encoders.vectors import WordVectors, read_vectors, save_vectors
from negsample.models.language.model_files import fingerprint, read_tensors, telling
from negsample.models.language.networks import pick_device
from negsample.text import straight

# What the published versions put around a sentence.
BOUNDS = {1: ("<s>", "</s>"), 2: ("<p>", "</p>")}
_MOST_TOKENS = 8192
_MOST_ROWS = 128


def tokenize(text: str, version: int) -> list[str]:
    """Words and punctuation marks of a sentence, case kept, by NLTK's Treebank tokenizer, as the published code does.

    "She doesn't." → She, does, n't, "." in version 1; version 2's vectors know the Moses split: doesn, 't.
    """
    from nltk.tokenize import NLTKWordTokenizer

    tokens = NLTKWordTokenizer().tokenize(straight(text))
    return tokens if version == 1 else " ".join(tokens).replace(" n't", "n 't").split()


@dataclass(frozen=True, eq=False)
class InferSent:
    """BiLSTM-max: [forward; backward] states, so ``dim`` is twice the LSTM's width (4096 for the published weights).

    A sentence is its tokens between the version's bounds; what has no vector is left out.
    Padding never enters the maximum (the published code of version 1 lets it in). A sentence without a known word is
    its bounds alone, and a zero row where those have no vectors either.
    """

    lstm: Any
    vectors: WordVectors
    version: int
    fingerprint: str
    device: str
    name: str = "infersent"
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def dim(self) -> int:
        return 2 * int(self.lstm.hidden_size)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        texts = as_texts(texts)
        result = np.zeros((len(texts), self.dim), dtype=np.float32)
        index, (opening, closing) = self.vectors.index, BOUNDS[self.version]
        split = ((opening, *tokenize(text, self.version), closing) for text in texts)
        sentences = [[index[token] for token in tokens if token in index] for tokens in split]
        for batch in like_lengths([len(rows) for rows in sentences], "cpu", _MOST_TOKENS, _MOST_ROWS):
            result[batch] = self._pooled([sentences[number] for number in batch])
        return result

    def _pooled(self, sentences: list[list[int]]) -> np.ndarray:
        """float32 [n, dim] of sentences given as rows of the word vectors, none of them empty."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        lengths = torch.tensor([len(rows) for rows in sentences])
        words = torch.from_numpy(pad([self.vectors.matrix[rows] for rows in sentences])[0])
        # TF32, cuDNN's default for LSTMs, would move vectors by 1e-3.
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            packed = pack_padded_sequence(words.to(self.device), lengths, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        return states.amax(dim=1).cpu().numpy()

    def save(self, folder: Path) -> dict[str, Any]:
        from safetensors.torch import save_file

        weights = {f"enc_lstm.{key}": value.contiguous().cpu() for key, value in self.lstm.state_dict().items()}
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "infersent.safetensors") as stream:
            save_file(weights, stream.name)
        save_vectors(self.vectors, folder / "vectors")
        options = {"weights": "infersent.safetensors", "vectors": "vectors", "version": self.version}
        files = ["weights", "vectors"]
        return {"name": self.name, "options": options, "files": files, "fingerprint": self.fingerprint}


def make(weights: str, vectors: str, version: int = 2, limit: int = 0, device: str = "auto") -> InferSent:
    """InferSent from the published state dict ``weights`` and the word-vector file ``vectors``.

    ``version``: 1 (GloVe, <s> </s>) or 2 (fastText, <p> </p>, Moses contractions); ``limit``: read only the first words
    of ``vectors`` (mind that the bounds must be among them).
    The LSTM's width and the words' dimension are those of the weights. Weights are read without unpickling code.
    Raises InputError for files that are missing, damaged, of another kind, or do not fit each other.
    """
    import torch

    if version not in BOUNDS:
        raise InputError(f"version={version} is not known; InferSent has versions 1 and 2")
    path, prefix = Path(weights).expanduser(), "enc_lstm."
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of infersent1.pkl or infersent2.pkl")
    state = {
        str(key).removeprefix(prefix): value.detach().to(torch.float32).contiguous()
        for key, value in read_tensors(path, "use the published infersent1.pkl or infersent2.pkl").items()
        if str(key).startswith(prefix) and isinstance(value, torch.Tensor)
    }
    if "weight_ih_l0" not in state or "weight_hh_l0" not in state:
        raise InputError(f"{path}: has no enc_lstm.weight_ih_l0; use the published infersent1.pkl or infersent2.pkl")
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise InputError(f"{path}: has weights that are not finite; download it again")
    table = read_vectors(Path(vectors), limit)
    width = state["weight_hh_l0"].shape[1]
    dim = state["weight_ih_l0"].shape[1]
    if table.dim != dim:
        raise InputError(f"{vectors}: vectors have {table.dim} dimensions, the weights {weights} take {dim}")
    if BOUNDS[3 - version][0] in table.index and BOUNDS[version][0] not in table.index:
        told = f"{vectors}: has the bounds of version {3 - version}, not of {version}; give version={3 - version}"
        warnings.warn(told, stacklevel=2)
    lstm = torch.nn.LSTM(dim, width, batch_first=True, bidirectional=True)
    with telling(weights, "no BiLSTM of one layer", "use the published infersent1.pkl or infersent2.pkl"):
        lstm.load_state_dict(state)
    place = pick_device(device)
    parts: list[tuple[str, Any]] = [(key, value.numpy()) for key, value in sorted(state.items())]
    parts.append(("vectors", bytes.fromhex(table.digest)))
    digest = fingerprint("infersent", {"version": version}, parts)
    return InferSent(lstm.eval().requires_grad_(False).to(place), table, version, digest, place)

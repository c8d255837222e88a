"""A small encoder that reads each sentence of a summary beside what the document says of it, and whether that bears it out.

It is the sentence encoder's own network with a low-rank change of its linear layers (Hu et al. 2022, "LoRA", §4.1), read as a
cross-encoder: passages of the document, then the sentence. Each token of the sentence gets a mark, how much it looks like
what the passages do not say; the sentence's doubt is made of them, so that one wrong word is enough.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from negsample.errors import InputError
from negsample.io.files import file_digest
from negsample.models.encoders import as_texts
from negsample.models.language.model_files import read_tensors
from negsample.models.language.networks import load_pretrained, padded, token_batches
from negsample.recent import Recent

if TYPE_CHECKING:
    from negsample.models.align.reader import Text
    from negsample.models.features.align import PairView

RANK = 8
FILE = "support.safetensors"
# Tokens of passages and sentence together; words of the passages in all, and of one of their sentences.
_MAX_TOKENS = 224
_ROOM, _LONGEST, _LEAST_ROOM = 100, 40, 8
# Sentences beside their passages.
_REMEMBERED = 32768
# Words are alike in what they begin with: "closed" and "closing".
_WORD, _STEM = re.compile(r"[^\W_]+"), 6
# As words begin, of those that say nothing of what a sentence is about.
_IDLE = frozenset(
    "the a an of to in and is are was were be been being it its this that these those for on with as by at from or not "
    "he she they we you i his her their our your my them him have has had will would can could do does did there who "
    "which what".split()
)


class LowRank(nn.Module):
    """A linear layer with a change of rank ``RANK`` at most: y = Wx + b + up(down x). As made, ``up`` is 0."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """[.., in] → [.., out]."""
        # The factor lets the change learn as fast as a new layer does.
        return self.linear(x) + 2 * (x @ self.down.T) @ self.up.T  # type: ignore[no-any-return]

    def merged(self) -> nn.Linear:
        """One plain layer that answers the same."""
        with torch.no_grad():
            self.linear.weight += 2 * self.up @ self.down
        return self.linear


class SupportNetwork(nn.Module):
    """Marks of tokens and doubts of sentences, not bounded; higher is less borne out.

    ``centre`` and ``scale`` (buffers) bring the doubts of real summaries' sentences to mean 0 and spread 1; ``copied`` is the
    doubt of a sentence that stands in the document.
    """

    centre: Tensor
    scale: Tensor
    copied: Tensor

    def __init__(self, encoder: nn.Module, rank: int = RANK) -> None:
        super().__init__()
        encoder.requires_grad_(False)
        for name, module in list(encoder.named_modules()):
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            if isinstance(module, nn.Linear):
                parent, _, own = name.rpartition(".")
                setattr(encoder.get_submodule(parent), own, LowRank(module, rank))
        self.encoder = encoder
        width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.token = nn.Linear(width, 1)
        nn.init.constant_(self.token.bias, -2.0)
        self.sentence = nn.Linear(2 * width, 1)
        for name, made in (("centre", 0.0), ("scale", 1.0), ("copied", 0.0)):
            self.register_buffer(name, torch.tensor(made))

    def forward(self, own: Tensor, **encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Token ids and what goes with them, [B, L]; ``own`` bool [B, L], tokens of the sentence → marks [B, L], doubts [B]."""
        states = self.encoder(**encoded).last_hidden_state.float()
        marks = self.token(states).squeeze(-1)
        mask = own.unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        # Nearly the highest, however many there are.
        among = marks.masked_fill(~own, -1e4)
        worst = (among.softmax(1) * among).sum(1)
        return marks, self.sentence(torch.cat([mean, states[:, 0]], 1)).squeeze(-1) + worst

    def learnt(self) -> dict[str, Tensor]:
        """What a file keeps: all but the encoder's own weights, the low-rank changes at half precision."""
        return {
            name: tensor.half() if name.endswith((".down", ".up")) else tensor
            for name, tensor in self.state_dict().items()
            if not name.startswith("encoder.") or name.endswith((".down", ".up"))
        }

    def take(self, learnt: dict[str, Tensor]) -> None:
        """Load what ``learnt`` gave. Raises KeyError or RuntimeError where it is of another network."""
        if learnt.keys() != self.learnt().keys():
            raise KeyError("other layers")
        self.load_state_dict(learnt, strict=False)

    def merge(self) -> None:
        """Make plain layers of the changed ones, for reading."""
        for name, module in list(self.encoder.named_modules()):
            if isinstance(module, LowRank):
                parent, _, own = name.rpartition(".")
                setattr(self.encoder.get_submodule(parent), own, module.merged())


class Verdict(NamedTuple):
    """What is said of a sentence: its ``doubt`` on the scale of real ones; the ``probability`` that it is untrue, if half of
    all were; and ``marks`` (start, stop, logit) of its tokens, none where it stands in the document."""

    doubt: float
    probability: float
    marks: tuple[tuple[int, int, float], ...] = ()


class SupportJudge:
    """The trained network, its changes merged, and its tokenizer; what it has read is remembered: systems share sentences."""

    def __init__(self, network: SupportNetwork, tokenizer: Any, encoder: str, fingerprint: str = "") -> None:
        """``encoder``: the fingerprint of the one whose network this changes."""
        self.network, self.tokenizer, self.encoder = network.eval(), tokenizer, encoder
        self.fingerprint = fingerprint
        self._learnt = {name: tensor.detach().clone() for name, tensor in network.learnt().items()}
        network.merge()
        self._known: Recent[tuple[str, str], Verdict] = Recent(_REMEMBERED)

    def readings(self, pairs: Sequence["PairView"]) -> np.ndarray:
        """``SOURCES["support"]`` of each pair: how far its sentences are borne out, in the mean and the least; float32 [n, 2],
        0 is a real summary's ordinary sentence, more is better; 0 for a pair without an alignment."""
        found = np.zeros((len(pairs), 2), np.float32)
        worded = [place for place, pair in enumerate(pairs) if pair.alignment is not None]
        every = self.verdicts(
            [(sentences_of(pairs[place].document.text), pairs[place].summary.pieces) for place in worded]
        )
        for place, verdicts in zip(worded, every, strict=True):
            support = -np.array([verdict.doubt for verdict in verdicts])
            found[place] = support.mean(), support.min()
        return found

    def verdicts(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[list[Verdict]]:
        """What is said of each sentence, of pairs (sentences of the document, sentences of the summary)."""
        asked = [list(zip(passages(source, summary), summary, strict=True)) for source, summary in pairs]
        found = iter(self._known.values([question for own in asked for question in own], self._run))
        return [[next(found) for _ in own] for own in asked]

    @torch.inference_mode()
    def _run(self, questions: Sequence[tuple[str, str]]) -> list[Verdict]:
        network = self.network
        device, centre, scale = network.centre.device, float(network.centre), float(network.scale)

        def verdict(doubt: float, marks: tuple[tuple[int, int, float], ...] = ()) -> Verdict:
            return Verdict((doubt - centre) / scale, 1 / (1 + math.exp(-max(-30.0, doubt))), marks)

        found = [verdict(float(network.copied))] * len(questions)
        asked = [place for place, (read, _) in enumerate(questions) if read]
        if not asked:
            return found
        read = _tokens(self.tokenizer, [questions[place] for place in asked])
        for rows, inputs in token_batches(read, self.tokenizer, str(device)):
            own = padded([[part == 1 for part in read.sequence_ids(row)] for row in rows], 0, str(device))[0].bool()
            marks, doubts = network(own, **inputs)
            for row, inside, its, doubt in zip(rows, own, marks, doubts.tolist(), strict=True):
                if not inside.any():  # signs that the tokenizer leaves out say nothing
                    continue
                stood = [read["offset_mapping"][row][token] for token in inside.nonzero()[:, 0].tolist()]
                told = zip(stood, its[inside].tolist(), strict=True)
                found[asked[row]] = verdict(doubt, tuple((begin, stop, mark) for (begin, stop), mark in told))
        return found

    def save(self, folder: Path) -> dict[str, Any]:
        """Write what was learned into ``folder``; returns what ``load_support`` checks. The encoder is not written."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.contiguous() for name, tensor in self._learnt.items()}
        save_file(tensors, str(folder / FILE), {"encoder": self.encoder})
        self.fingerprint = file_digest(folder / FILE).hex()
        return {"fingerprint": self.fingerprint}


def sentences_of(document: "Text") -> tuple[str, ...]:
    """The sentences of a document; of a dialogue, each with the name of who says it."""
    return tuple(map(named, document.pieces, document.speakers))


def named(sentence: str, speaker: str) -> str:
    """A ``sentence`` of a turn with its ``speaker``'s name before it, as the first of a turn has it; "" is nobody."""
    return f"{speaker}: {sentence}" if speaker and not sentence.startswith(speaker) else sentence


def passages(document: Sequence[str], summary: Sequence[str], copied: bool = False) -> list[str]:
    """For each sentence of ``summary`` the sentences of ``document`` to read beside it, joined in order.

    All of a short document; else those that share its rarest words, as many as there is room for. ``""`` where the sentence
    itself stands in the document, unless ``copied``.
    """
    there, stems, sizes, frequency = _read(tuple(document))
    found = []
    for sentence in summary:
        if not copied and _plain(sentence) in there:
            found.append("")
            continue
        order = list(range(len(document)))
        if sum(sizes) > _ROOM:
            own = _stems(sentence)
            shared = [sum(1 / (1 + frequency[stem]) for stem in own & other) for other in stems]
            order, room = [], _ROOM
            for place in np.argsort(-np.array(shared), kind="stable").tolist():
                if room < _LEAST_ROOM:
                    break
                if sizes[place] <= room:
                    order.append(place)
                    room -= sizes[place]
            order.sort()
        found.append(" ".join(" ".join(document[place].split()[:_LONGEST]) for place in order))
    return found


# The systems of a document come one after another.
@lru_cache(maxsize=64)
def _read(document: tuple[str, ...]) -> tuple[frozenset[str], list[frozenset[str]], list[int], Counter[str]]:
    """Its sentences by their words alone; of each its stems and its words, at most as many as are read; sentences of a stem."""
    stems = [_stems(sentence) for sentence in document]
    sizes = [min(_LONGEST, len(sentence.split())) for sentence in document]
    return frozenset(map(_plain, document)), stems, sizes, Counter(stem for own in stems for stem in own)


def _stems(sentence: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(sentence.lower()) if word not in _IDLE)


def _plain(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.lower()))


def tokenize(tokenizer: Any, questions: Sequence[tuple[str, str]]) -> tuple[dict[str, Tensor], Tensor, np.ndarray]:
    """The network's arguments for (passages, sentence), padded; which tokens are the sentence's, bool [B, L]; and where in it
    each stands, int [B, L, 2]. Passages give way where both are too long."""
    encoded = _tokens(tokenizer, questions, padding=True, return_tensors="pt")
    offsets = encoded.pop("offset_mapping").numpy()
    own = np.array([[part == 1 for part in encoded.sequence_ids(row)] for row in range(len(questions))])
    return dict(encoded), torch.from_numpy(own), offsets


def _tokens(tokenizer: Any, questions: Sequence[tuple[str, str]], **more: Any) -> Any:
    return tokenizer(
        as_texts([read for read, _ in questions]),
        as_texts([sentence for _, sentence in questions]),
        truncation=True,
        max_length=min(_MAX_TOKENS, int(tokenizer.model_max_length)),
        return_offsets_mapping=True,
        **more,
    )


def new_network(encoder: Any, attention: str, seed: int, like: Path | None = None) -> tuple[SupportNetwork, Any]:
    """(network as it is made from the weights of the sentence-transformer ``encoder``, tokenizer); it has already learned what
    the file ``like`` keeps, where that is of the same encoder. Raises InputError."""
    model, tokenizer, _ = load_pretrained(str(encoder.folder), attention)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SupportNetwork(model)
    if like is not None and like.is_file() and made_for(like) == encoder.fingerprint:
        network.take(read_tensors(like, "install the package again"))
    return network, tokenizer


def made_for(file: Path) -> str:
    """The fingerprint of the encoder that the judge in ``file`` changes; "" where it can't be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), "pt") as opened:
            return str((opened.metadata() or {}).get("encoder", ""))
    except (OSError, SafetensorError):
        return ""


def load_support(file: Path, encoder: Any, fingerprint: str | None = None, attention: str = "sdpa") -> SupportJudge:
    """The judge whose changes of ``encoder``'s network ``SupportJudge.save`` wrote into ``file``.

    Raises InputError where the file is missing, damaged, changed, or of another encoder.
    """
    if not file.is_file():
        raise InputError(f"{file}: is missing; copy the model again")
    found = file_digest(file).hex()
    if fingerprint is not None and found != fingerprint:
        raise InputError(f"{file}: damaged or changed (its hash is not the one in config.json); copy the model again")
    learnt = read_tensors(file, "copy the model again")
    network, tokenizer = new_network(encoder, attention, 0)
    try:
        network.take(learnt)
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{file}: of another encoder ({error!s:.200}); copy the model again") from None
    return SupportJudge(network, tokenizer, made_for(file), found)

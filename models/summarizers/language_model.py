"""A sequence-to-sequence or causal language model of ``transformers`` as a summarizer."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from negsample.errors import InputError
from negsample.io.files import atomic_json, share_weights
from negsample.io.read import SAMPLE_PATH
from negsample.models.language.language_model import lm_folder, load_lm
from negsample.models.language.model_files import DAMAGED, quiet, telling
from negsample.models.language.networks import padded
from negsample.models.summarizers import summaries_of
from negsample.models.summarizers.extractor import KIND, Extractor
from negsample.records import Source
from negsample.seeds import generator
from negsample.text import word_tokens

# What a folder says beside the model's own files.
ABOUT = "negsample-summarizer.json"
_BATCH = 8
# Where a sequence has ended; what the loss of transformers passes over, too.
END = -100
# Tiny ones with random weights, which ``--smoke`` trains in place of pretrained ones; they write nonsense.
CAUSAL, SEQ2SEQ = STAND_INS = ("random-causal", "random-seq2seq")
_STAND_IN_WORDS = 1000


@dataclass(frozen=True)
class Limits:
    """``document_tokens`` read and ``summary_tokens`` written at most; ``prompt`` between document and summary of a causal
    model; ``beams`` of the search (Clark et al. 2019, A.3: 5), or ``top_k``, where above 0: summaries are drawn from so many
    tokens at each step instead (Moeed et al. 2020 §3.2: 40)."""

    document_tokens: int = 512
    summary_tokens: int = 100
    prompt: str = "\nTL;DR:"
    beams: int = 5
    top_k: int = 0


class LanguageNetwork(nn.Module):
    """The model, as a function from documents and summaries to log probabilities."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Mapping[str, Tensor], sequences: Tensor) -> Tensor:
        """Log probability float32 [B] of ``sequences`` int64 [B, T] (−100 after their end) given the documents."""
        real = sequences >= 0
        tokens = sequences.clamp(min=0)
        if self.model.config.is_encoder_decoder:
            logits = self.model(**inputs, labels=sequences).logits
        else:
            ids = torch.cat([inputs["input_ids"], tokens], 1)
            mask = torch.cat([inputs["attention_mask"], real.long()], 1)
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            every = self.model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
            # A token is foretold by the one before it.
            logits = every[:, inputs["input_ids"].shape[1] - 1 : -1]
        log_probs = torch.log_softmax(logits.float(), -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        return (log_probs * real).sum(1)


class _Drawn:
    """Leaves each row one token, the one that its number falls on: samples that depend on nothing but their own row."""

    def __init__(self, numbers: np.ndarray, top_k: int) -> None:
        self._numbers, self._top_k, self._step = torch.from_numpy(numbers), top_k, 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores [B, V] that are −∞ but for the drawn token."""
        own = scores.double()
        if 0 < self._top_k < own.shape[1]:
            own = own.masked_fill(own < own.topk(self._top_k).values[:, -1:], -torch.inf)
        sums = own.softmax(-1).cumsum(-1)
        # Below the last sum, so that rounding can't lead past a token with a probability.
        wanted = self._numbers[:, self._step : self._step + 1].to(sums.device) * sums[:, -1:]
        picked = torch.searchsorted(sums, wanted, right=True).clamp(max=own.shape[1] - 1)
        self._step += 1
        return torch.full_like(scores, -torch.inf).scatter(1, picked, 0.0)


class LanguageSummarizer:
    """The network with its tokenizer; ``summarize(documents)`` by beam search.

    A policy as it is (``negsample.train.reinforce``); maximum likelihood learns the first reference of each source.
    """

    def __init__(self, network: LanguageNetwork, tokenizer: Any, limits: Limits) -> None:
        self.network, self.tokenizer, self.limits = network, tokenizer, limits
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self.causal = not network.model.config.is_encoder_decoder
        self._end = tokenizer(limits.prompt, add_special_tokens=False)["input_ids"] if self.causal else []
        if len(self._end) >= limits.document_tokens:
            told = f"prompt has {len(self._end)} tokens, which leave none of document_tokens={limits.document_tokens}"
            raise InputError(f"{told} for a document; shorten it, or raise these")

    @classmethod
    def load(cls, model: str, limits: Limits | None = None) -> "LanguageSummarizer":
        """The model that ``load_lm`` finds, in float32; its own limits where ``save`` has written them.

        Raises InputError where there is none, it can't be read, has no end-of-text token, reads fewer tokens than ``limits``
        ask for, or their prompt leaves no room for a document.
        """
        found = load_lm(model, device="cpu", shared=False, only_reads=False)
        if found.kind == "masked":
            advice = "give a causal one or an encoder–decoder"
            raise InputError(f"{model}: a masked language model writes nothing; {advice}")
        if found.tokenizer.eos_token_id is None:
            raise InputError(f"{model}: its tokenizer has no end-of-text token, so a summary could not end")
        about = lm_folder(model) / ABOUT
        if limits is None and about.is_file():
            with telling(about, *DAMAGED):
                limits = Limits(**json.loads(about.read_text("utf-8")))
        limits = limits or Limits()
        needed = limits.document_tokens + (limits.summary_tokens if found.kind == "causal" else 0)
        if needed > found.limit:
            raise InputError(f"{model} has room for {found.limit} tokens, not {needed}; lower document_tokens")
        return cls(LanguageNetwork(found.network), found.tokenizer, limits)

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """Token ids and mask of the documents, cut at the limit; a causal model's with the prompt, padded on the left."""
        documents = [source.document for source in sources]
        if not self.causal:
            how = {"truncation": True, "max_length": self.limits.document_tokens, "padding_side": "right"}
            found = self.tokenizer(documents, padding=True, return_tensors="pt", **how)
            return {name: found[name] for name in ("input_ids", "attention_mask")}
        room = self.limits.document_tokens - len(self._end)
        ids = [
            self.tokenizer(document, add_special_tokens=False, truncation=True, max_length=room)["input_ids"]
            + self._end
            for document in documents
        ]
        width = max(1, *map(len, ids))
        pad = self.tokenizer.pad_token_id
        return {
            "input_ids": torch.tensor([[pad] * (width - len(own)) + own for own in ids]),
            "attention_mask": torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in ids]),
        }

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """Token ids int64 [B, T] of first references with the end token, cut at the limit; −100 after it, and for none."""
        end = self.tokenizer.eos_token_id
        rows: list[list[int]] = []
        for reference in (source.references[:1] for source in sources):
            # A sequence-to-sequence model learns its tokenizer's own marks; a causal one goes on from the prompt.
            text = "".join(f" {one.strip()}" if self.causal else one for one in reference)
            ids = self.tokenizer(text, add_special_tokens=not self.causal)["input_ids"]
            ids = ids[:-1] if ids[-1:] == [end] else ids
            rows.append([*ids[: self.limits.summary_tokens - 1], end] if reference else [])
        return cast("Tensor", padded(rows, END, "cpu")[0])

    def decode(
        self,
        inputs: Mapping[str, Tensor],
        sources: Sequence[Source],
        draw: tuple[object, ...] | None = None,
        *,
        top_k: int = 0,
        beams: int = 1,
    ) -> Tensor:
        """Sequences int64 [B, T] of the model's own distribution, −100 after the end; greedy, sampled, or beam search.

        Sampled, where ``draw`` is given, by random numbers that it and a source's id decide, among the ``top_k`` most
        probable tokens (0: all). Beam search goes by the model's own generation settings as well (no repeated runs, length
        penalty), the others by nothing but its probabilities.
        """
        from transformers import GenerationConfig, LogitsProcessorList

        model, pad, end = self.network.model, self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        own, drawn = model.generation_config, LogitsProcessorList()
        if draw is not None:
            rngs = [generator(*draw, source.id) for source in sources]
            drawn.append(_Drawn(np.stack([rng.random(self.limits.summary_tokens) for rng in rngs]), top_k))
        settings: dict[str, Any] = {"max_new_tokens": self.limits.summary_tokens, "pad_token_id": pad}
        if beams > 1:
            settings |= {"num_beams": beams, "do_sample": False}
        else:
            start = getattr(model.config, "decoder_start_token_id", None)
            settings |= {
                "num_beams": 1, "do_sample": False, "eos_token_id": end,
                "bos_token_id": own.bos_token_id,
                "decoder_start_token_id": own.decoder_start_token_id if start is None else start,
            }  # fmt: skip
        try:
            if beams == 1:
                # What is not set here would be taken from the model's own settings.
                model.generation_config = GenerationConfig()
            with torch.no_grad(), quiet():
                asked = GenerationConfig(**settings)
                made = model.generate(**inputs, generation_config=asked, logits_processor=drawn)
        finally:
            model.generation_config = own
        made = made[:, 1 if not self.causal else inputs["input_ids"].shape[1] :]
        ended = (made == end).cumsum(1)
        # The end token itself is chosen, what follows is padding.
        return torch.where((ended - (made == end).long()) > 0, END, made)

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """The texts of token ids [B, T]."""
        rows = [[token for token in row if token >= 0] for row in sequences.tolist()]
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def summarize(self, documents: Sequence[str], draw: int = 0) -> list[str]:
        """A summary of each document, by beam search, or drawn (``draw`` tells one from another) where ``top_k`` is set."""
        if self.limits.top_k:
            return summaries_of(self, documents, _BATCH, draw=("summary", draw), top_k=self.limits.top_k)
        return summaries_of(self, documents, _BATCH, beams=self.limits.beams)

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Write a folder in the layout of ``transformers``, with ``facts`` in ``negsample.json``."""
        with quiet():
            self.tokenizer.save_pretrained(folder)
            atomic_json(folder / ABOUT, asdict(self.limits))
            atomic_json(folder / "negsample.json", facts)
            self.network.model.save_pretrained(folder)
        share_weights(folder)


def load_summarizer(model: str) -> Extractor | LanguageSummarizer:
    """The summarizer in a folder (``negsample reinforce`` writes them), or a language model by folder or hub id.

    Raises InputError where there is none, or it can't be read.
    """
    path = Path(model).expanduser() / "config.json"
    if path.is_file():
        with telling(path, *DAMAGED):
            kind = dict(json.loads(path.read_text(encoding="utf-8")))
        if kind.get("model_type") == KIND:
            return Extractor.load(path.parent)
        if "head" in kind:
            raise InputError(f"{model}: is an estimator, which scores summaries and writes none")
    return LanguageSummarizer.load(model)


def stand_in(kind: str, limits: Limits) -> LanguageSummarizer:
    """One of ``STAND_INS``: a GPT-2 or a BART of width 32, over the words of the embedded sample."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    counts: Counter[str] = Counter()
    for line in SAMPLE_PATH.read_text("utf-8").splitlines():
        counts.update(word_tokens(json.loads(line)["document"]))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:_STAND_IN_WORDS]
    marks = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    vocabulary = {word: place for place, word in enumerate([*marks.values(), ".", *frequent])}
    own = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    own.normalizer = normalizers.Lowercase()
    own.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if kind == SEQ2SEQ:
        ends = [(mark, vocabulary[mark]) for mark in ("<s>", "</s>")]
        own.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=own, **marks)
    room = limits.document_tokens + limits.summary_tokens
    ids: dict[str, Any] = {"vocab_size": len(vocabulary), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any
        if kind == CAUSAL:
            gpt = transformers.GPT2Config(**ids, n_embd=32, n_layer=2, n_head=2, n_positions=room)
            model = transformers.GPT2LMHeadModel(gpt)
        else:
            bart = transformers.BartConfig(
                **ids, d_model=32, max_position_embeddings=room, decoder_start_token_id=3,
                encoder_layers=1, encoder_ffn_dim=32, encoder_attention_heads=2,
                decoder_layers=1, decoder_ffn_dim=32, decoder_attention_heads=2,
            )  # fmt: skip
            model = transformers.BartForConditionalGeneration(bart)
    return LanguageSummarizer(LanguageNetwork(model), tokenizer, limits)

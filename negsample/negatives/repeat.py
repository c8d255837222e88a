"""Sentences replaced by copies of others of the same summary: what they said is lost, and something is said twice."""

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.layout import put_together
from negsample.negatives.pieces import in_place_of, letters, of_like_length, pick, same_texts, text_of
from negsample.negatives.words import lay_out_summary
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """1 … S − 1 of the S sentences (at most ``most``), as likely each, replaced by copies of sentences that stay.

    A copy is of like length where there is one (within a quarter), else of the nearest, so that the summary keeps about
    its length.

    Label: share of the summary's words in sentences that stay. A copy adds nothing, so that what is left is what the
    summary would be worth without it.

    Raises CannotDamage for a summary of one sentence, or of one sentence over and over.
    """
    sentences, total = lay_out_summary(pair)
    if len(sentences) < 2:
        raise CannotDamage("one-sentence summary")
    texts = same_texts(sentences)
    if len(set(texts)) == 1:
        raise CannotDamage("all sentences are the same")
    limit = min(len(sentences) - 1, most or len(sentences))
    count = int(rng.integers(1, limit + 1))
    chosen = rng.choice(len(sentences), size=count, replace=False).tolist()
    kept = [place for place in range(len(sentences)) if place not in chosen]
    result, repeated = list(sentences), []
    for place in sorted(chosen):
        others = [other for other in kept if texts[other] != texts[place]]
        if not others:
            # It says the same as all that stay, so that some other one of the chosen does not.
            kept.append(place)
            continue
        near = of_like_length([texts[other] for other in others], texts[place])
        source = others[pick(near, rng)] if near else min(others, key=lambda other: _gap(texts[other], texts[place]))
        result[place] = in_place_of(sentences[source], sentences[place])
        repeated.append({"at": place, "was": text_of(sentences[place]), "copy_of": source})
    words = sum(len(sentences[place].words) for place in kept)
    change = {"sentences": len(sentences), "words": total, "kept_words": words, "repeated": repeated}
    return Damaged(put_together(result, [sentence.words for sentence in result]), words / total, change)


def _gap(one: str, other: str) -> int:
    return abs(letters(one) - letters(other))

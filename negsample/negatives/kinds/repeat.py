"""Sentences replaced by copies of others of the same summary: what they said is lost, and something is said twice."""

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.rebuild import (
    count_words,
    different_texts,
    draw_places,
    letter_count,
    moved,
    of_like_length,
    pick,
    put_together,
    sentence_change,
    summary_of,
)
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """1 … S − 1 of the S sentences (at most ``most``), as likely each, replaced by copies of sentences that stay.

    A copy is of like length where there is one (within a quarter), else of the nearest, so that the summary keeps about
    its length.

    Label: share of the summary's words in sentences that stay. A copy adds nothing, so that what is left is what the
    summary would be worth without it.

    Raises CannotDamage for a summary of one sentence, or of one sentence over and over.
    """
    sentences, total = summary_of(pair)
    texts = different_texts(sentences)
    chosen = draw_places(len(sentences), min(len(sentences) - 1, most or len(sentences)), rng)
    kept = [place for place in range(len(sentences)) if place not in chosen]
    result, repeated = list(sentences), []
    for place in sorted(chosen):
        others = [other for other in kept if texts[other] != texts[place]]
        if not others:
            # It says the same as all that stay, so that some other one of the chosen does not.
            kept.append(place)
            continue
        near = of_like_length([texts[other] for other in others], texts[place])
        length = letter_count(texts[place])
        nearest = min(others, key=lambda other: abs(letter_count(texts[other]) - length))
        source = others[pick(near, rng)] if near else nearest
        result[place] = moved(sentences[source], sentences[place])
        repeated.append({"at": place, "was": sentences[place].text, "copy_of": source})
    words = count_words(sentences[place] for place in kept)
    return Damaged(put_together(result), words / total, sentence_change(sentences, words, repeated=repeated))

"""The summary cut off in mid-sentence, as a generator stops at its limit."""

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.rebuild import Sentence, pick, put_together, sentence_change, summary_of, without_end
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """A sentence loses its end and the marks that close it, and with it all that follows.

    It is the last sentence as often as not, else any, so that cuts near the end are not rare in long summaries; where
    it is cut is drawn uniformly, between two words.

    Label: share of the summary's words that are kept.

    Raises CannotDamage where no sentence has two words (marks aside), so for a one-word summary too.
    """
    sentences, total = summary_of(pair, least=2)
    bodies = [without_end(sentence.words) for sentence in sentences]
    able = [place for place, body in enumerate(bodies) if len(body) > 1]
    if not able:
        raise CannotDamage("no sentence of two words")
    place = able[-1] if rng.random() < 0.5 else pick(able, rng)
    left = int(rng.integers(1, len(bodies[place])))
    cut = sentences[place]
    kept = [*sentences[:place], Sentence(cut.words, "", cut.new_line)]
    words = [*(sentence.words for sentence in sentences[:place]), tuple(cut.words[:left])]
    count = sum(map(len, words))
    change = sentence_change(sentences, count, cut={"at": place, "was": cut.text, "is": " ".join(words[-1])})
    return Damaged(put_together(kept, words), count / total, change)

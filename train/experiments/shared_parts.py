"""Parts for one training after another, with one encoder loaded and one embedding cache for all of them."""

from collections.abc import Callable

from negsample.models.build import Parts, takes
from negsample.models.encoders import make_encoder
from negsample.models.features.rows import RowFeatures
from negsample.models.store.embedding_cache import EmbeddingCache
from negsample.train.config import TrainConfig
from negsample.train.job import parts_of


def parts_maker(config: TrainConfig) -> Callable[[TrainConfig], Parts]:
    """Makes new parts for configurations that have the encoder, the language model, and a head of the kind of the resolved
    ``config``.

    A frozen encoder is loaded here and shared; one that is fine-tuned is loaded anew for each. Raises InputError for an
    unknown head, or an encoder that can't be loaded.
    """
    kind = takes(config.head)
    if kind not in ("rows", "align"):
        return parts_of
    encoder = make_encoder(str(config.encoder))
    cache = EmbeddingCache(encoder)
    about = {"name": str(config.encoder), "fingerprint": encoder.fingerprint}
    if kind == "rows":
        return lambda own: Parts(
            own.head, {}, RowFeatures(encoder, own.max_document, own.max_summary, cache), None, dict(about)
        )
    from negsample.models.align.fluency import Fluency, new_fluency
    from negsample.models.features.align import AlignFeatures

    # What the encoder makes of words is kept in memory alone, by the reader: one reads for all.
    reader = AlignFeatures(encoder).reader
    lm = new_fluency(config.lm) if config.lm is not None else None

    def make(own: TrainConfig) -> Parts:
        # Each training has its own idea of what is ordinary for the language model.
        features = AlignFeatures(encoder, lm=Fluency(lm.lm, lm.source) if lm is not None else None)
        features.reader = reader
        return Parts(own.head, {}, features, None, dict(about))

    return make

"""The packaged MiniLM, loaded once for all tests of the alignment."""

import pytest

from negsample.models.features.align import AlignFeatures


@pytest.fixture(scope="session")
def features() -> AlignFeatures:
    """Alignment features over the packaged MiniLM, with a reader of their own."""
    from negsample.models.align.reader import Reader
    from negsample.models.encoders import make_encoder

    made = AlignFeatures(make_encoder("sentence-transformer"))
    made.reader = Reader(made.encoder, on_disk=False)
    return made

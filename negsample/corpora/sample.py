"""The corpus inside the package: 80 pairs in four domains, written by the project, read with no network."""

from collections import Counter
from collections.abc import Iterator

from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError
from negsample.io.read import SAMPLE_PATH, read_rows
from negsample.records import Pair
from negsample.registry import suggestion

DOMAINS = ["legislation", "news", "patents", "science"]


def load(domain: str, options: CorpusOptions, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of one domain, or of all where ``domain`` is ``""``.

    Raises InputError for a domain that the sample does not have, or an option that it has no use for.
    """
    if domain and domain not in DOMAINS:
        raise InputError(f"sample has no domain {domain!r}; {suggestion(domain, DOMAINS)}")
    options.refuse("sample", "config", "split")
    rows = (row for row in read_rows(SAMPLE_PATH) if not domain or row.fields.get("domain") == domain)
    return pairs_from(rows, "sample", "document", "summary", options, skipped)

"""The service in a thread of this process, over a stand-in that reads in no time."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from negsample.scoring.scorer import Columns
from negsample.sentences import split_sentences
from negsample.serve import Limits
from negsample.serve.app import make_app
from negsample.serve.batcher import Batcher
from negsample.serve.door import Door, Server, listen
from negsample.serve.page import service_page

SIGNATURE = "model:stand-in"


class Reader:
    """Scores the share of a summary's words that the document has; waits for ``go``, and fails at the word "fail"."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.summaries: list[str] = []
        self.go = threading.Event()
        self.go.set()

    def score_pairs(
        self, documents: Sequence[str], summaries: Sequence[str], references: Any = (), domains: Sequence[str] = ()
    ) -> Columns:
        """Shares, float64 [n]; of "news" all real summaries are better."""
        self.batches.append(len(documents))
        self.summaries.extend(summaries)
        self.go.wait()
        if "fail" in summaries:
            raise RuntimeError("/home/somebody/secret.py failed")
        found = np.array([share(d, s) for d, s in zip(documents, summaries, strict=True)])
        none = [None] * len(found)
        half = {"score": found / 2 * (np.array(domains) != "news")}
        return Columns(found, none, np.zeros(len(found), bool), {"support": found}, percentiles=half)

    def explain_pairs(
        self, documents: Sequence[str], summaries: Sequence[str], references: Any = (), domains: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Explanations as an estimator's, by the words in common."""
        scores = self.score_pairs(documents, summaries, references, domains).scores
        return [explain(*texts) for *texts, _ in zip(documents, summaries, scores, strict=True)]


def explain(document: str, summary: str) -> dict[str, Any]:
    """A document sentence is said where half of its words are; a summary's word is unsupported where it is no document's."""
    sources, own = split_sentences(document), split_sentences(summary)
    score = share(document, summary)
    return {
        "score": score,
        "aspects": {"support": score, "form": None},
        "percentile": {"score": score / 2},
        "document": [
            {
                "sentence": text,
                "covered": share(summary, text),
                "said": share(summary, text) >= 0.5,
                "by": 0,
                "weight": 1.0,
            }
            for text in sources
        ],
        "missing": [place for place, text in enumerate(sources) if share(summary, text) < 0.5][:3],
        "summary": [_sentence(document, sources, text) for text in own],
        "lowers": None,
        "repetitions": {"sentences": [[0, 1]] if own[1:2] == own[:1] else [], "phrases": []},
    }


def _sentence(document: str, sources: list[str], text: str) -> dict[str, Any]:
    unknown = [found.span() for found in re.finditer(r"\S+", text) if found[0] not in document.split()]
    return {
        "sentence": text,
        "support": share(document, text),
        "rests_on": max(range(len(sources)), key=lambda place: share(sources[place], text)),
        "unsupported": [text[begin:stop] for begin, stop in unknown],
        "unsupported_at": [list(span) for span in unknown],
        "own_words": [],
        "own_words_at": [],
        "doubt": None,
        "repeated_at": [],
        "faults": [] if text.endswith(".") else ["no end mark"],
    }


def share(document: str, summary: str) -> float:
    """The share of the words of ``summary`` that ``document`` has."""
    words = summary.split()
    return sum(word in document.split() for word in words) / len(words)


class Service:
    """A service that runs; ``ask`` sends one request."""

    def __init__(self, limits: Limits, token: str | None = None, aspects: tuple[str, ...] = ("support",)) -> None:
        self.reader, self.slow = Reader(), Reader()
        self.batcher = Batcher(self.reader, self.slow, limits.waiting)
        page = service_page(SIGNATURE, limits, aspects, token is not None)
        self.bound = listen("127.0.0.1", 0)
        self.port = self.bound.getsockname()[1]
        self.server = Server(Door(make_app(self.batcher, SIGNATURE, limits, page, bool(aspects)), limits, token, True))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.bound]})
        self.thread.start()

    def ask(
        self, path: str, body: Any = None, method: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers (in lower case) and body, which is JSON where the headers say so."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = body if body is None or isinstance(body, bytes) or hasattr(body, "__next__") else json.dumps(body)
            headers = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
            line.request(method or ("GET" if body is None else "POST"), path, given, headers)
            answer = line.getresponse()
            data = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, json.loads(data) if "json" in told["content-type"] and data else data.decode()
        finally:
            line.close()

    def wait(self, condition: Callable[[], object]) -> None:
        """Until ``condition`` holds."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        """As a signal does."""
        self.reader.go.set()
        self.slow.go.set()
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()

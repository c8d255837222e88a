"""One thread computes; what has arrived while it was busy is computed together."""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from negsample.scoring.scorer import Columns, values_at

if TYPE_CHECKING:
    pass

logger = logging.getLogger(__name__)

# Pairs that are computed together at most, so that no request waits long behind others.
_TOGETHER = 64
# What a pair takes, until it is known.
_SECONDS = 0.05


class PairReader(Protocol):
    """What scores pairs and explains their scores: an estimator."""

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32) -> Columns:
        """Score n pairs."""
        ...

    def explain_pairs(self, documents: Sequence[str], summaries: Sequence[str]) -> list[dict[str, Any]]:
        """Explain n pairs."""
        ...


class Full(Exception):
    """So many pairs are waiting that no more are taken; try again after ``seconds``."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(eq=False)
class _Job:
    pairs: Sequence[tuple[str, str]]
    explain: bool
    answer: "Future[list[dict[str, Any]]]" = field(default_factory=Future)


class Batcher:
    """A queue of at most ``most`` pairs before one thread, which reads them by ``reader`` in the order of their arrival.

    A job that fails alone gets its exception; one that fails beside others is tried again without them.
    """

    def __init__(self, reader: PairReader, most: int) -> None:
        self._reader = reader
        self._most = most
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._waiting = 0
        self._pace = _SECONDS
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="negsample-serve", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many pairs have no answer yet."""
        return self._waiting

    def submit(self, pairs: Sequence[tuple[str, str]], explain: bool = False) -> "Future[list[dict[str, Any]]]":
        """Queue ``pairs`` (document, summary); the answer has a dictionary for each, in order.

        Raises Full where they do not fit into the queue.
        """
        job = _Job(pairs, explain)
        with self._changed:
            if self._closed or self._waiting + len(pairs) > self._most:
                raise Full(min(60, max(1, math.ceil(self._waiting * self._pace))))
            self._waiting += len(pairs)
            self._jobs.append(job)
            self._changed.notify()
        return job.answer

    def close(self) -> None:
        """Answer what was taken, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _take(self) -> list[_Job]:
        """Wait for jobs, and return the first of them; none where it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            taken: list[_Job] = []
            count = 0
            while self._jobs and (not taken or count + len(self._jobs[0].pairs) <= _TOGETHER):
                taken.append(self._jobs.popleft())
                count += len(taken[-1].pairs)
            return taken

    def _work(self) -> None:
        while jobs := self._take():
            begin = time.monotonic()
            # From here on a job can't be cancelled.
            wanted = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
            for explain in (False, True):
                self._answer([job for job in wanted if job.explain is explain], explain)
            done = sum(len(job.pairs) for job in jobs)
            self._pace += 0.2 * ((time.monotonic() - begin) / done - self._pace)
            with self._changed:
                self._waiting -= done

    def _answer(self, jobs: list[_Job], explain: bool) -> None:
        if not jobs:
            return
        try:
            answers = iter(self._read([pair for job in jobs for pair in job.pairs], explain))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].answer.set_exception(error)
                return
            logger.warning("%d requests failed together and are tried one by one: %r", len(jobs), error)
            for job in jobs:
                self._answer([job], explain)
            return
        for job in jobs:
            job.answer.set_result([next(answers) for _ in job.pairs])

    def _read(self, pairs: Sequence[tuple[str, str]], explain: bool) -> list[dict[str, Any]]:
        documents, summaries = zip(*pairs, strict=True)
        if explain:
            return self._reader.explain_pairs(documents, summaries)
        scored = self._reader.score_pairs(documents, summaries)
        return [
            {
                "score": round(float(score), 7),
                "aspects": values_at(scored.aspects, place) if scored.aspects else None,
                "percentile": values_at(scored.percentiles, place) if scored.percentiles else None,
                "reason": scored.reasons[place],
            }
            for place, score in enumerate(scored.scores)
        ]

"""One thread computes; what has arrived while it was busy is computed together."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from negsample.scoring.scorer import Item

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

logger = logging.getLogger(__name__)

Answers = list[dict[str, Any]]
# Pairs that are computed together at most, so that no request waits long behind others.
_TOGETHER = 64
# What a pair takes, until it is known.
_SECONDS = 0.05


@dataclass(eq=False)
class _Job:
    items: Sequence[Item]
    explain: bool
    answer: "asyncio.Future[Answers]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Batcher:
    """A queue of at most ``most`` pairs before one thread, which reads them by ``estimator`` in the order of their arrival.

    A job that fails alone gets its exception; one that fails beside others is tried again without them. ``waiting``: how
    many pairs have no answer yet. To be used from one event loop.
    """

    def __init__(self, estimator: "Estimator", most: int) -> None:
        self.waiting = 0
        self._estimator = estimator
        self._most = most
        self._jobs: deque[_Job] = deque()
        self._pace = _SECONDS
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "negsample-serve")

    async def answer(self, items: Sequence[Item], explain: bool = False) -> Answers:
        """A dictionary for each of ``items``, in order. Raises HTTPException where they do not fit into the queue."""
        if self.waiting + len(items) > self._most:
            seconds = min(60, max(1, math.ceil(self.waiting * self._pace)))
            told = f"the queue is full; try again in {seconds} second{'s' * (seconds > 1)}"
            raise HTTPException(429, told, {"Retry-After": str(seconds)})
        job = _Job(items, explain)
        self.waiting += len(items)
        self._jobs.append(job)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await job.answer

    async def _work(self) -> None:
        while self._jobs:
            jobs = [self._jobs.popleft()]
            done = len(jobs[0].items)
            while self._jobs and done + len(self._jobs[0].items) <= _TOGETHER:
                jobs.append(self._jobs.popleft())
                done += len(jobs[-1].items)
            begin = time.monotonic()
            for explain in (False, True):
                await self._read([job for job in jobs if job.explain is explain], explain)
            self._pace += 0.2 * ((time.monotonic() - begin) / done - self._pace)
            self.waiting -= done

    async def _read(self, jobs: Sequence[_Job], explain: bool) -> None:
        items = [item for job in jobs for item in job.items]
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._compute, items, explain)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].answer.set_exception(error)
                return
            logger.warning("%d requests failed together and are tried one by one: %r", len(jobs), error)
            for job in jobs:
                await self._read([job], explain)
            return
        answers = iter(found)
        for job in jobs:
            job.answer.set_result([next(answers) for _ in job.items])

    def _compute(self, items: Sequence[Item], explain: bool) -> Answers:
        if not items:
            return []
        texts = [item.document for item in items], [item.summary for item in items]
        return self._estimator.explain_pairs(*texts) if explain else self._estimator.score_pairs(*texts).nested()

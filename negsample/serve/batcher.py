"""Two threads compute, one for small requests and one for large; what has arrived while one was busy is computed together."""

import asyncio
import heapq
import json
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.exceptions import HTTPException

from negsample.scoring.scorer import Item
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

logger = logging.getLogger(__name__)

# Bytes of a request that is small, and pairs and bytes that are computed together, so that none waits long behind others.
_SMALL, _TOGETHER, _BYTES = 24_000, 64, 48_000
# What a pair takes, until it is known.
_SECONDS = 0.05


class _Job(NamedTuple):
    """A pair that waits; those with the lowest ``turn`` come first, and of these the lowest ``number``."""

    turn: int
    number: int
    size: int
    item: Item
    explain: bool
    answer: "asyncio.Future[str]"


class Batcher:
    """Small requests before one thread, which reads them by ``quick``, others before another, which reads by ``slow``: two
    copies of one estimator, since threads share none. ``most``: pairs that may wait before each."""

    def __init__(self, quick: "Estimator", slow: "Estimator", most: int) -> None:
        self._lanes = _Lane(quick, most), _Lane(slow, most)

    @property
    def waiting(self) -> int:
        """How many pairs have no answer yet."""
        return sum(lane.waiting for lane in self._lanes)

    async def answer(self, items: Sequence[Item], explain: bool = False) -> list[str]:
        """JSON for each of ``items``, in order. Raises HTTPException where they do not fit into the queue."""
        sizes = [_size(item.document) + _size(item.summary) for item in items]
        return await self._lanes[sum(sizes) > _SMALL].answer(items, sizes, explain)


def _size(text: str) -> int:
    """Bytes of ``text`` as it is read (one letter may stand for eighteen); of a long one, which is not small, its letters."""
    return len(text) if text.isascii() or len(text) > _SMALL else len(readable(text).encode())


class _Lane:
    """A queue of at most ``most`` pairs before one thread; to be used from one event loop.

    A pair's turn comes after as many bytes as it and those before it in its request have: a request of many or long pairs
    does not stand before short ones (self-clocked fair queueing: Golestani 1994). A pair that fails alone gets its
    exception; one that fails beside others is tried again without them.
    """

    def __init__(self, estimator: "Estimator", most: int) -> None:
        self.waiting = 0
        self._estimator, self._most = estimator, most
        self._jobs: list[_Job] = []
        self._turn, self._numbers = 0, count()
        self._pace = _SECONDS
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "negsample-serve")

    async def answer(self, items: Sequence[Item], sizes: Sequence[int], explain: bool) -> list[str]:
        """As ``Batcher.answer``; ``sizes``: bytes of the items. What nobody waits for any more is not computed."""
        if self.waiting + len(items) > self._most:
            seconds = min(60, max(1, math.ceil(self.waiting * self._pace)))
            told = f"the queue is full; try again in {seconds} second{'s' * (seconds > 1)}"
            raise HTTPException(429, told, {"Retry-After": str(seconds)})
        turns, future = accumulate(sizes, initial=self._turn), asyncio.get_running_loop().create_future
        jobs = [
            _Job(turn + size, next(self._numbers), size, item, explain, future())
            for turn, size, item in zip(turns, sizes, items, strict=False)
        ]
        for job in jobs:
            heapq.heappush(self._jobs, job)
        self.waiting += len(jobs)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            return await asyncio.gather(*(job.answer for job in jobs))
        except BaseException:
            for job in jobs:
                job.answer.cancel()
            self._jobs = [job for job in self._jobs if not job.answer.done()]
            heapq.heapify(self._jobs)
            raise
        finally:
            self.waiting -= len(jobs)

    async def _work(self) -> None:
        while self._jobs:
            jobs = [heapq.heappop(self._jobs)]
            room = _BYTES - jobs[0].size
            while self._jobs and len(jobs) < _TOGETHER and self._jobs[0].size <= room:
                jobs.append(heapq.heappop(self._jobs))
                room -= jobs[-1].size
            self._turn = jobs[-1].turn
            begin = time.monotonic()
            for explain in (False, True):
                if alike := [job for job in jobs if job.explain is explain]:
                    await self._read(alike)
            self._pace += 0.2 * ((time.monotonic() - begin) / len(jobs) - self._pace)

    async def _read(self, jobs: Sequence[_Job]) -> None:
        try:
            told = await asyncio.get_running_loop().run_in_executor(self._thread, self._compute, jobs)
        except Exception as error:
            if len(jobs) > 1:
                logger.warning("%d pairs failed together and are tried one by one: %r", len(jobs), error)
                for job in jobs:
                    await self._read([job])
            elif not jobs[0].answer.done():
                jobs[0].answer.set_exception(error)
            return
        for job, answer in zip(jobs, told, strict=True):
            if not job.answer.done():
                job.answer.set_result(answer)

    def _compute(self, jobs: Sequence[_Job]) -> list[str]:
        items, estimator = [job.item for job in jobs], self._estimator
        texts = [item.document for item in items], [item.summary for item in items], (), [item.domain for item in items]
        found: list[Any] = (
            estimator.explain_pairs(*texts) if jobs[0].explain else estimator.score_pairs(*texts).nested()
        )
        return [json.dumps(one, ensure_ascii=False, allow_nan=False, separators=(",", ":")) for one in found]

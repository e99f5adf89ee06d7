"""Work in shares: in this process, on all cores of this machine, or by another executor; sweeps of configurations.

One code path over `concurrent.futures.Executor`: the configurations are cut into chunks whose size depends on their
number alone, and each is a call of its own, on one thread of linear algebra. So results are the same, bit by bit,
wherever they are computed on machines of one kind, and the share of a worker that dies is done again.
"""

from __future__ import annotations

import importlib
import math
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from threadpoolctl import threadpool_limits

from nori_dyn.errors import InputError, SweepError, WorkerDiedError
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    from nori_dyn.tables.progress import Progress  # workers start the sooner without it

T = TypeVar("T")
Task = Callable[[Any], T]
Submit = Callable[[Any], "Future[Any]"]
Tell = Callable[[Mapping[int, Any]], None]

Workers: TypeAlias = int | Executor | None
"""Processes on this machine, all cores when None; or what runs a function elsewhere, such as Dask's executor."""

VERSION: str = importlib.import_module("nori_dyn").__version__

CHUNK = 8
"""Configurations in a chunk, where there are few."""

MOST_CHUNKS = 1000
"""Chunks that larger sweeps are cut into."""

PATIENCE = 2.0
"""Seconds of work from which on processes are worth starting."""

ATTEMPTS = 3
"""Times that processes of this machine may die over a sweep before it is given up."""


def silent(stage: str, done: float | None = None) -> None:
    """Show nothing."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold linear algebra to one thread, also as a decorator.

    Results then do not depend on the number of cores; and of matrices of some hundred rows threads mostly wait for each
    other, at the price of all cores.
    """
    with threadpool_limits(1, "blas"):
        yield


def chunks(Q: Floats) -> list[Floats]:
    """Configurations (N, nq) in chunks whose size depends on N alone."""
    size = max(CHUNK, -(-len(Q) // MOST_CHUNKS))
    return [Q[k : k + size] for k in range(0, len(Q), size)]


def sweep(task: Task[T], Q: Floats, workers: Workers = None, progress: Progress = silent) -> list[T]:
    """Results of a task for each chunk of configurations, in their order.

    Args:
        task: a picklable function of some configurations (n, nq), whose result for one does not depend on the others.
        Q: the configurations (N, nq).
        workers: see `Workers`. With 1, and where the first chunk shows that little is to be done, everything runs in
            this process.
        progress: receives each chunk that is done.

    Raises:
        InputError: fewer than one worker.
        SweepError: workers that lack something.
        WorkerDiedError: processes of this machine that die again and again.
    """
    if isinstance(workers, int) and workers < 1:
        raise InputError(f"workers is {workers}: there must be at least 1.")
    parts = chunks(Q)
    return spread(task, parts, workers, lambda found: progress("configurations", len(found) / len(parts)), PATIENCE)


def spread(
    task: Task[T],
    parts: Sequence[Any],
    workers: Workers = None,
    tell: Tell = lambda found: None,
    patience: float = 0.0,
    lost: Callable[[Any], T] | None = None,
) -> list[T]:
    """Results of a task for each part of some work, in their order.

    Args:
        task: a picklable function of a part.
        parts: the parts, picklable, too.
        workers: see `Workers`.
        tell: receives what was found, by the numbers of parts, as it comes.
        patience: seconds of work from which on processes are worth starting; with 0 all is done by them.
        lost: what a part gives whose processes die again and again; None raises.

    Raises:
        SweepError: as `sweep`.
    """
    found: dict[int, T] = {}
    if isinstance(workers, Executor):
        executor, content = workers, _pickle_task(task)
        _gather(lambda part: executor.submit(run_chunk, content, VERSION, part), parts, found, tell)
        return [found[k] for k in range(len(parts))]
    n_workers = min(workers or _cores(), len(parts))
    with one_thread():
        start = time.monotonic()
        for k, part in enumerate(parts):
            tell(found)
            passed = time.monotonic() - start
            if n_workers > 1 and (not patience or (k and passed / k * (len(parts) - k) > patience)):
                break
            found[k] = task(part)
    tell(found)
    deaths = 0
    while len(found) < len(parts):
        try:
            if lost is not None and deaths == ATTEMPTS - 1:
                _gather_alone(task, parts, found, tell, lost)
            else:
                with _processes(n_workers, task) as submit:
                    _gather(submit, parts, found, tell)
        except BrokenExecutor:
            deaths += 1
            if deaths == ATTEMPTS:
                raise WorkerDiedError(
                    f"worker processes died {ATTEMPTS} times over the same sweep. Is there enough memory? With "
                    "workers=1 everything runs in this process."
                ) from None
    return [found[k] for k in range(len(parts))]


def _gather(submit: Submit, parts: Sequence[Any], found: dict[int, T], tell: Tell) -> None:
    """Find the results of all parts.

    Args:
        submit: starts the work on a part.
        parts: all of them.
        found: the results by the number of the part; those that are missing are put there as they come.
        tell: see `spread`.
    """
    numbers = {submit(part): k for k, part in enumerate(parts) if k not in found}
    for future in as_completed(numbers):
        found[numbers[future]] = future.result()
        tell(found)


def _gather_alone(
    task: Task[T], parts: Sequence[Any], found: dict[int, T], tell: Tell, lost: Callable[[Any], T]
) -> None:
    """Find the results of the parts that are missing, each in a process of its own: so it shows which one kills it."""
    for k, part in enumerate(parts):
        if k not in found:
            try:
                with _processes(1, task) as submit:
                    found[k] = submit(part).result()
            except BrokenExecutor:
                found[k] = lost(part)
            tell(found)


@contextmanager
def _processes(n: int, task: Task[Any]) -> Iterator[Submit]:
    """Yield what submits chunks to n processes of this machine; they end with it, also in the middle of their work."""
    content = _pickle_task(task)
    executor = ProcessPoolExecutor(n, get_context("spawn"), _begin_worker)

    def submit(part: Any) -> Future[Any]:
        with _uninterrupted(), _without_main():  # starts a process, as long as there are fewer than n
            return executor.submit(run_chunk, content, VERSION, part)

    try:
        yield submit
    except BaseException:
        for process in list((executor._processes or {}).values()):
            process.kill()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C, so that a process which starts is known, and ends with the others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    put_off: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: put_off.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if put_off and callable(before):
        before(*put_off[-1])


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the user's script, so that a process that starts does not import it: it may have no guard."""
    with _MAIN:
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


_MAIN = threading.Lock()


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None  # of a process that another one started

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _cores() -> int:
    """The number of cores that this process may use: by its affinity, and by the quota of its container."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # there is no such file, or no quota in it
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        n = min(n, math.ceil(quota / period))
    return max(n, 1)


def run_chunk(content: bytes, version: str, part: Any) -> Any:
    """Result of a pickled task for a part of the work; for workers, which keep the last tasks.

    Raises:
        SweepError: this worker has another version, or lacks what the task is made of.
    """
    if version != VERSION:
        raise SweepError(f"a worker has nori_dyn {VERSION}, and the sweep comes from {version}: install the same.")
    try:
        task = _task(content)
    except (ImportError, AttributeError) as error:
        raise SweepError(
            f"a worker lacks what the sweep is made of: {error}. Sensors of your own must be in a module that all "
            "workers can import, in the same version; with workers=1 everything runs in this process."
        ) from None
    return task(part)


@lru_cache(maxsize=2)
def _task(content: bytes) -> Task[Any]:
    task: Task[Any] = pickle.loads(content)
    threadpool_limits(1, "blas")  # of all that is loaded by now, and for good: this is a worker's process
    return task


def _pickle_task(task: Task[Any]) -> bytes:
    try:
        return pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SweepError(
            f"the sweep cannot be sent to other processes: {error}. With workers=1 everything runs in this one."
        ) from None

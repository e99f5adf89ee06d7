"""Work in shares: in this process, on all cores of this machine, or on a Dask cluster; sweeps over configurations.

One code path over `concurrent.futures.Executor`: the configurations are cut into chunks whose size depends on their
number alone, and each is a call of its own, on one thread of linear algebra. So results are the same, bit by bit,
wherever they are computed on machines of one kind, and the share of a worker that dies is done again.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import threadpool_limits

from nori_dyn.errors import (
    InputError,
    SweepError,
    UnreachableSchedulerError,
    WorkerDiedError,
)
from nori_dyn.io.extras import needed
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    from nori_dyn.tables.progress import Progress  # workers start the sooner without it

T = TypeVar("T")
Task = Callable[[Any], T]
Submit = Callable[[Any], "Future[Any]"]
Tell = Callable[[Mapping[int, Any]], None]

VERSION: str = importlib.import_module("nori_dyn").__version__

CHUNK = 8
"""Configurations in a chunk, where there are few."""

MOST_CHUNKS = 1000
"""Chunks that larger sweeps are cut into."""

PATIENCE = 2.0
"""Seconds of work from which on processes are worth starting."""

CONNECT = 5.0
"""Seconds to wait for a scheduler."""

IDLE = 60.0
"""Seconds to wait for a cluster without workers."""

ATTEMPTS = 3
"""Times that processes of this machine may die over a sweep before it is given up."""

POLL = 0.5
"""Seconds between looks at a cluster."""

KILLED = "KilledWorker"
"""What Dask's error is called where workers die over the same share of the work."""


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


def sweep(
    task: Task[T],
    Q: Floats,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Progress = silent,
    stage: str = "configurations",
) -> list[T]:
    """Results of a task for each chunk of configurations, in their order.

    Args:
        task: a picklable function of some configurations (n, nq), whose result for one does not depend on the others.
        Q: the configurations (N, nq).
        scheduler: address of a running Dask scheduler, "tcp://host:8786"; None is this machine.
        workers: number of processes on this machine; all cores when None. With 1, and where the first chunk shows that
            little is to be done, everything runs in this process.
        progress: is told of each chunk that is done.
        stage: what it is told that this is.

    Raises:
        InputError: both a scheduler and workers, or fewer than one worker.
        MissingExtraError: a scheduler is named, and `distributed` is not installed.
        UnreachableSchedulerError: it does not answer.
        SweepError: workers of a cluster that lack something, fail or vanish.
        WorkerDiedError: processes of this machine that die again and again.
    """
    if workers is not None and (scheduler is not None or workers < 1):
        why = "they are those of the scheduler's cluster" if scheduler is not None else "there must be at least 1"
        raise InputError(f"workers is {workers}: {why}.")
    parts = chunks(Q)
    return spread(task, parts, scheduler, workers, lambda found: progress(stage, len(found) / len(parts)), PATIENCE)


def spread(
    task: Task[T],
    parts: Sequence[Any],
    scheduler: str | None = None,
    workers: int | None = None,
    tell: Tell = lambda found: None,
    patience: float = 0.0,
    lost: Callable[[Any], T] | None = None,
) -> list[T]:
    """Results of a task for each part of some work, in their order.

    Args:
        task: a picklable function of a part.
        parts: the parts, picklable, too.
        scheduler: see `sweep`.
        workers: likewise.
        tell: is told of what was found, by the numbers of parts, as it comes.
        patience: seconds of work from which on processes are worth starting; with 0 all is done by them.
        lost: what a part gives whose processes die again and again; None raises.

    Raises:
        SweepError: as `sweep`.
    """
    found: dict[int, T] = {}
    if scheduler is not None:
        with _cluster(scheduler, task) as (submit, check):
            _gather(submit, parts, found, tell, check, lost)
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


def _gather(
    submit: Submit,
    parts: Sequence[Any],
    found: dict[int, T],
    tell: Tell,
    check: Callable[[int], None] = lambda done: None,
    lost: Callable[[Any], T] | None = None,
) -> None:
    """Find the results of all parts.

    Args:
        submit: starts the work on a part.
        parts: all of them.
        found: the results by the number of the part; those that are missing are put there as they come.
        tell: see `spread`.
        check: is called now and then with how many are done; raises where there is no hope.
        lost: see `spread`.
    """
    numbers = {submit(part): k for k, part in enumerate(parts) if k not in found}
    pending = set(numbers)
    while pending:
        done, pending = wait(pending, timeout=POLL, return_when="FIRST_COMPLETED")
        for future in done:
            k = numbers[future]
            try:
                found[k] = future.result()
            except Exception as error:
                if lost is None or type(error).__name__ != KILLED:
                    raise
                found[k] = lost(parts[k])
        tell(found)
        check(len(found))


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
    """Return the number of cores that this process may use: by its affinity, and by the quota of its container."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # there is no such file, or no quota in it
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        n = min(n, math.ceil(quota / period))
    return max(n, 1)


@contextmanager
def _cluster(address: str, task: Task[Any]) -> Iterator[tuple[Submit, Callable[[int], None]]]:
    """Yield what submits chunks to a Dask cluster, and what looks after it.

    Raises:
        MissingExtraError, UnreachableSchedulerError, SweepError: see `sweep`.
    """
    distributed = needed("a scheduler", "cluster", "distributed")
    try:
        with _quiet():
            client = distributed.Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise UnreachableSchedulerError(address, str(error).partition("\n")[0] or "it timed out") from None
    start = time.monotonic()

    def check(done: int) -> None:
        if client.status != "running":
            raise SweepError(f"the Dask scheduler at '{address}' has stopped.")
        if done == 0 and time.monotonic() - start > IDLE and not client.ncores():
            raise SweepError(f"the Dask scheduler at '{address}' has no workers. Start some: `dask worker {address}`.")

    try:
        for found in client.run(_same, b"", on_error="return").values():
            if isinstance(found, BaseException):  # given a task, such a worker would end, and the task wait for ever
                raise SweepError(f"a worker of the Dask cluster at '{address}' cannot load nori_dyn {VERSION}: {found}")
        # held by the cluster as the result of a task, so that it is sent once, and made again where it is lost
        content = client.submit(_same, _pickle_task(task), pure=False)
        executor: Executor = client.get_executor(pure=False)
        try:
            yield lambda part: executor.submit(run_chunk, content, VERSION, part), check
        finally:
            executor.shutdown(wait=False)  # cancels what is not done
    except (distributed.KilledWorker, CancelledError, ImportError, pickle.PicklingError, RuntimeError) as error:
        raise SweepError(_describe_error(address, error)) from error
    finally:
        with _quiet():
            client.close(timeout=CONNECT)


def _describe_error(address: str, error: BaseException) -> str:
    """In words what went wrong on a cluster."""
    where = f"the Dask cluster at '{address}'"
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, ImportError):
        return f"{where} lacks something that is here: {cause}. Its scheduler and its workers need nori_dyn {VERSION}."
    if type(error).__name__ == KILLED:
        return f"workers of {where} died over the same share of the work several times. Do they have enough memory?"
    if isinstance(error, CancelledError):
        return f"{where} dropped the work: its scheduler stopped or was restarted."
    return f"{where} failed: {type(cause).__name__}: {cause}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Dask logs to itself: its errors are raised as well."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _same(content: bytes) -> bytes:
    return content


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

"""A deadline for work that has none of its own, as a request that drips has none."""

import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")
Tasks = queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]]]
IDLE: list[tuple[int, Tasks]] = []  # threads that wait for work, and the process they live in


def within(seconds: float, work: Callable[[], Made], give_up: Callable[[], None]) -> Made:
    """What `work` returns, or raises. After `seconds`, `give_up` is called: TimeoutError.

    A thread cannot be stopped: late work is left to end alone, and what it makes is dropped.
    """
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    try:
        pid, tasks = IDLE.pop()
    except IndexError:
        pid, tasks = 0, Tasks()
    if pid != os.getpid():  # none is free, or it stayed behind when this process was forked
        tasks = Tasks()
        threading.Thread(target=serve, args=(tasks,), daemon=True).start()
    tasks.put((work, done))
    try:
        made, error = done.get(timeout=max(seconds, 0))
    except queue.Empty:
        give_up()
        raise TimeoutError from None
    if error is not None:
        raise error
    return made


def serve(tasks: Tasks) -> None:
    """What a thread does: one piece of work after the other."""
    while True:
        work, done = tasks.get()
        result: tuple[Any, BaseException | None]
        try:
            result = work(), None
        except BaseException as error:
            result = None, error
        IDLE.append((os.getpid(), tasks))
        done.put(result)
        del work, done, result  # it may wait long, and must not hold on to them

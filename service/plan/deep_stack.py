"""A deep stack for recursive functions: queries, plans and expressions are trees, as deep as they were written.

A hundred subqueries reach Python's own limit of a thousand calls. Here a function runs in a thread whose stack holds as
many calls as the raised limit allows; both are restored afterwards.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

STACK = 1 << 29
"""Bytes of the stack; memory is used only as the stack grows."""

CALLS = 100_000
"""The limit of nested calls: 5 KiB of stack for each, where a call through C needs less than one."""

_deep = threading.local()
_changing = threading.Lock()


def on_a_deep_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Return `function`, run on a deep stack; nested functions of this kind share its stack."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_deep, "here", False):
            return function(*args, **kwargs)
        answers: list[T] = []
        failures: list[BaseException] = []

        def body() -> None:
            _deep.here = True
            try:
                answers.append(function(*args, **kwargs))
            except BaseException as error:
                failures.append(error)

        with _changing:
            calls, stack = sys.getrecursionlimit(), threading.stack_size(STACK)
            # The limit is one for all threads; nothing else in the process comes near the usual one.
            sys.setrecursionlimit(max(calls, CALLS))
            try:
                thread = threading.Thread(target=body, name="deep-stack")
                thread.start()
                threading.stack_size(stack)
                thread.join()
            finally:
                threading.stack_size(stack)
                sys.setrecursionlimit(calls)
        if failures:
            raise failures[0]
        return answers[0]

    return run

"""Options with which the JVMs of driver and executors are tuned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

TUNED: Sequence[str] = (
    # Each batch leaves much garbage and keeps little: processor time counts, not the length of a pause.
    # The young generation fits a processor's cache and a container: a larger one uses that much more memory, all of it
    # garbage, and saves nothing. It begins small and grows under load.
    *("-XX:+UseParallelGC", "-XX:NewSize=64m", "-XX:MaxNewSize=128m"),
    # A full collection that is asked for returns what the heap no longer needs: an idle service asks for one
    # (`java/tailrace/memory`), and Spark does every ten minutes.
    *("-XX:+UseAdaptiveSizePolicyWithSystemGC", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=30"),
    # The size of Spark's classes: with less, each step up to it is a full collection.
    "-XX:MetaspaceSize=192m",
    # The archive of classes is used at the address it was made for: at any other address all of its pages are changed
    # first, which makes 110 MiB of them private to this process.
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"),
    # What the JVM has allocated beside its heap and freed goes back to the system; older JVMs do not know the option.
    *("-XX:+IgnoreUnrecognizedVMOptions", "-XX:TrimNativeHeapInterval=30000"),
    # Planning a batch runs half of Spark once. Only code that runs for every row is worth the second compiler's time.
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
)
"""Measured on two cores: a third less processor time until the first batch, and in the first minute."""

_COLLECTOR = re.compile(r"-XX:\+Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon)GC")
"""The options that choose a garbage collector."""


def tuned(given: Sequence[str]) -> list[str]:
    """Return the options with which we tune a JVM beside those that its user has `given`: a JVM with options for two
    collectors does not start, so ours is left out if they name one."""
    chosen = any(_COLLECTOR.fullmatch(option) for option in given)
    return [option for option in TUNED if not (chosen and _COLLECTOR.fullmatch(option))]


def words_of(options: str) -> list[str]:
    """Return the options in a setting of Spark, which are quoted as in a shell."""
    return shlex.split(options)

"""Garbage among the old objects of an idle JVM is collected once, and its memory goes back to the system."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from service.spark.driver.class_path import spark_home
from service.spark.driver.java_classes import SOURCES
from service.spark.driver.jvm import options
from service.spark.internals.compiler import compile_java

PROGRAM = """
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import tailrace.memory.OldObjects;

/** Fills the heap with objects until many are old, drops them, and collects twice. */
public class Backlog {
    public static void main(String[] given) {
        List kept = new ArrayList();
        for (int i = 0; i < 250; i++) {
            kept.add(new byte[1 << 20]);
        }
        print();
        kept.clear();
        OldObjects.collect();
        print();
        OldObjects.collect();
        print();
    }

    private static void print() {
        long committed = 0;
        long collections = 0;
        for (Iterator each = ManagementFactory.getMemoryPoolMXBeans().iterator(); each.hasNext(); ) {
            MemoryPoolMXBean pool = (MemoryPoolMXBean) each.next();
            committed += pool.getName().equals("PS Old Gen") ? pool.getUsage().getCommitted() : 0;
        }
        for (Iterator each = ManagementFactory.getGarbageCollectorMXBeans().iterator(); each.hasNext(); ) {
            GarbageCollectorMXBean collector = (GarbageCollectorMXBean) each.next();
            collections += collector.getName().equals("PS MarkSweep") ? collector.getCollectionCount() : 0;
        }
        System.out.println((committed >> 20) + " " + collections);
    }
}
"""


@pytest.mark.e2e
def test_memory_of_old_objects_that_are_garbage_is_returned_and_where_there_are_none_nothing_is_collected(
    tmp_path: Path,
) -> None:
    program = tmp_path / "Backlog.java"
    program.write_text(PROGRAM)
    sources = [SOURCES / "tailrace" / "memory" / "OldObjects.java", program]
    compile_java("java", sources, sorted((spark_home() / "jars").glob("*.jar")), tmp_path)
    command = ["java", *options({}), "-cp", str(tmp_path), "Backlog"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (full, before), (emptied, once), (still, twice) = ([int(word) for word in line.split()] for line in printed)
    assert full > 150
    assert emptied < full / 4
    assert once == before + 1
    assert (still, twice) == (emptied, once)

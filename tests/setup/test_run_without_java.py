"""On a machine without Java this is reported in one line, also where a pipeline is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PIPELINE = """
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');
CREATE TABLE shown (n BIGINT) WITH ('connector' = 'print');
INSERT INTO shown SELECT n FROM numbers;
"""


def test_a_run_without_java_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "pipeline.sql").write_text(PIPELINE)
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "basename", "ps"):
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("TAILRACE_", "JAVA_", "SPARK_"))},
        **{k: v for k, v in os.environ.items() if k == "TAILRACE_ARCHIVES"},
        "PATH": str(tmp_path / "bin"),
        "TAILRACE_CHECKPOINT": str(tmp_path / "checkpoint"),
        "TAILRACE_HTTP__PORT": "0",
        "TAILRACE_LOG_FORMAT": "json",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "service", "run", str(tmp_path / "pipeline.sql")],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("no Java found; install a Java"), ended.stderr
    assert "Traceback" not in ended.stderr

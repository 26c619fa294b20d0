"""How the JVM is started, and what is forked beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.archives.class_archive import CREATE
from service.host.machine import find_java
from service.spark.driver.class_path import class_path
from service.spark.driver.jvm import Jvm, options, quoted
from service.spark.driver.jvm_options import tuned, words_of


def test_the_users_own_options_come_last_so_that_they_win():
    settings = {"spark.driver.memory": "3g", "spark.driver.extraJavaOptions": '-XX:+UseG1GC -Dname="two words"'}
    assert options(settings)[0] == "-Xmx3g"
    assert options(settings)[-2:] == ["-XX:+UseG1GC", "-Dname=two words"]


@pytest.mark.parametrize(
    "given", ["", "-XX:+UseG1GC", "-XX:+UseSerialGC -Xmn64m", "-XX:NewSize=16m -XX:MaxNewSize=32m"]
)
def test_a_jvm_starts_with_our_options_and_the_users(given):
    ours = [*tuned(words_of(given)), *words_of(given)]
    shown = subprocess.run([find_java(), *ours, "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    flags = {words[1]: words[3] for line in shown.stdout.splitlines() if len(words := line.split()) > 3}
    assert flags["UseParallelGC"] == str("GC" not in given).lower()
    assert flags["MaxNewSize"] == str(next((n for n in (32, 64) if f"{n}m" in given), 128) << 20)


def test_our_archives_and_what_is_needed_of_sparks_own_come_first_unless_the_user_puts_others_before(tmp_path):
    for name in ("b.jar", "a.jar", "spark-mllib_2.13-4.2.0.jar"):
        (tmp_path / "jars").mkdir(exist_ok=True)
        (tmp_path / "jars" / name).touch()
    begin, clients = ["/ours.jar", f"{tmp_path}/jars/a.jar", f"{tmp_path}/jars/b.jar"], [Path("/s.jar"), Path("/t.jar")]

    def path(**settings: str) -> list[str]:
        given = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
        return class_path(tmp_path, [Path("/ours.jar")], given, clients).split(os.pathsep)

    assert path() == [*begin, "/s.jar", "/t.jar"]
    assert path(jars="/ours.jar,/s.jar,/t.jar,file:///y.jar,s3://far/z.jar") == [*begin, "/s.jar", "/t.jar", "/y.jar"]
    assert path(driver_extraClassPath="/ours.jar:/x.jar")[:2] == ["/ours.jar", "/x.jar"]


def test_java_reads_the_arguments_as_they_were(tmp_path):
    given = [r"-Dmy.place=C:\new dir", '-Dmy.word="yes"', "-Dmy.name=two words", "-XshowSettings:properties"]
    (tmp_path / "arguments").write_text("\n".join(quoted([*given, "-version"])))
    printed = subprocess.run(["java", f"@{tmp_path}/arguments"], capture_output=True, text=True, check=True).stderr
    ours = dict(line.strip().split(" = ", 1) for line in printed.splitlines() if line.strip().startswith("my."))
    assert ours == {"my.place": r"C:\new dir", "my.word": '"yes"', "my.name": "two words"}


def test_a_helper_is_forked_from_the_fork_server_with_its_own_streams_and_environment(tmp_path):
    socket_path = tmp_path / "fork_server"
    startup = Path(__file__).parents[2] / "service" / "spark" / "driver" / "startup"
    paths = os.pathsep.join([str(startup), str(Path(__file__).parents[2])])
    fork_server = subprocess.Popen(
        [sys.executable, "-m", "service.spark.driver.fork_server", str(socket_path)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        while not socket_path.exists():
            assert fork_server.poll() is None
        helper = subprocess.Popen(
            [sys.executable, "-m", "pyspark.daemon", "pyspark.sql.worker.lookup_data_sources"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, "TAILRACE_FORK_SERVER": str(socket_path)},
        )
        assert helper.stdin is not None
        assert helper.stdout is not None
        port = int.from_bytes(helper.stdout.read(4), "big")  # where PySpark's daemon listens
        assert 0 < port < 65536
        forked = Path(f"/proc/{fork_server.pid}/task/{fork_server.pid}/children").read_text().split()
        assert len(forked) == 1
        helper.stdin.close()  # the JVM is gone
        assert helper.wait(30) == 0
        assert helper.stdout.read() == b""
        helper.stdout.close()
    finally:
        assert fork_server.stdin is not None
        fork_server.stdin.close()
        fork_server.wait(30)


def test_the_jvm_makes_no_use_of_an_archive_while_it_makes_one():
    jar = Path("/nowhere/a.jar")
    assert not any("SharedArchiveFile" in each for each in options({"spark.driver.extraJavaOptions": CREATE}, [jar]))


def test_nobody_else_may_read_the_arguments_of_the_jvm_and_they_go_with_it(tmp_path: Path, monkeypatch):
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    seen = tmp_path / "seen"
    java.write_text(f'#!/bin/sh\nfile="${{1#@}}"\nstat -c "%a %n" "$file" "$(dirname "$file")" >{seen}.part\n')
    java.write_text(java.read_text() + f'cat "$file" >>{seen}.part\nmv {seen}.part {seen}\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    old = os.umask(0)
    try:
        (tmp_path / "scratch").mkdir()
        settings = {"spark.driver.extraJavaOptions": "-Dmy.password=hush"}
        jvm = Jvm(settings, [], tmp_path / "scratch", lambda line: None)
    finally:
        os.umask(old)
    try:
        assert jvm.process.wait(30) == 0
        assert "hush" not in str(jvm.process.args)
        (mode, _), (of_folder, folder), *others = [line.split(" ", 1) for line in seen.read_text().splitlines()]
        assert (mode, of_folder) == ("600", "700")
        assert ['"-Dmy.password=hush"'] in others
    finally:
        jvm.close()
    assert not Path(folder).exists()

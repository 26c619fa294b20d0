"""TLS to a schema registry: whom the client trusts, and how it shows who it is."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from service.schema_registry import client
from service.schema_registry.client import SchemaRegistry
from service.schema_registry.errors import RegistryConfigError, RegistryUnreachable
from service.schema_registry.registry_settings import registry_settings
from tests.schema_registry.server import served


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost, its own authority, with its key behind it."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key", folder / "certificate"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    return both


def context(pem: Path, *, mutual: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem)
    if mutual:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(pem)
    return made


def test_a_registry_is_trusted_by_its_authority(pem: Path):
    with served(tls=context(pem)) as small:
        number = small.add('"long"')
        trusting = {"url": small.url, "ssl.truststore.location": str(pem)}
        assert SchemaRegistry(registry_settings(trusting)).schema(number).text == '"long"'
        with pytest.raises(RegistryConfigError, match=r"(?s)is not trusted: .*set ssl.truststore.location"):
            SchemaRegistry(registry_settings({"url": small.url})).schema(number)


def test_a_client_shows_its_certificate(pem: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served(tls=context(pem, mutual=True)) as small:
        number = small.add('"long"')
        trusting = {"url": small.url, "ssl.truststore.location": str(pem)}
        with_key = {**trusting, "ssl.keystore.location": str(pem)}
        assert SchemaRegistry(registry_settings(with_key)).schema(number).text == '"long"'
        with pytest.raises(RegistryUnreachable):
            SchemaRegistry(registry_settings(trusting)).schema(number)


def test_a_file_that_is_no_certificate_is_reported(pem: Path, tmp_path: Path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    settings = {"url": "https://localhost:1", "ssl.truststore.location": str(wrong)}
    with pytest.raises(RegistryConfigError, match="certificates for the schema registry cannot be read"):
        SchemaRegistry(registry_settings(settings)).schema(1)

"""Settings of the service, from environment variables with the prefix TAILRACE_ (two underscores join nested names) and
from files of the folder TAILRACE_SECRETS_DIR."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from service import durations

PREFIX = "TAILRACE_"

_DURATION = BeforeValidator(durations.milliseconds)
Milliseconds = Annotated[int, _DURATION]


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


LONGEST_BACKOFF = 60.0
"""Seconds between two tries at most: what comes back, Kafka for example, is noticed within a minute."""

MOST_TASKS = 4096
"""The most tasks of a level: the number of slots in `operators.slots`."""


class ConfigError(Exception):
    """Invalid settings; `mistakes` lists all of them, a sentence each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SaslSettings(_Group):
    """SASL for every Kafka connection that does not set its own in the pipeline."""

    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "", description="`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`; empty for none."
    )
    username: str = Field("", description="User name; the client's id for OAUTHBEARER.")
    password: SecretStr = Field(SecretStr(""), description="Password; the client's secret for OAUTHBEARER.")
    token_url: str = Field("", description="URL of the token endpoint for OAUTHBEARER.")
    scope: str = Field("", description="Scope requested by OAUTHBEARER; empty for none.")


class TlsSettings(_Group):
    """TLS for every Kafka connection that does not set its own in the pipeline."""

    enabled: bool = Field(False, description="Whether to use TLS.")
    ca_file: str = Field("", description="PEM file of the authorities to trust; empty = the system's.")
    certificate_file: str = Field("", description="PEM file of the client's certificate chain.")
    key_file: str = Field("", description="PEM file of the client's private key.")
    key_password: SecretStr = Field(SecretStr(""), description="Password of the private key.")
    verify_hostname: bool = Field(True, description="Whether the broker's certificate must match its host name.")


class Kafka(_Group):
    """The connection to Kafka, for tables whose WITH options do not set it."""

    bootstrap_servers: str = Field("", description="Brokers for tables without `properties.bootstrap.servers`.")
    sasl: SaslSettings = Field(SaslSettings(), description="SASL.")
    tls: TlsSettings = Field(TlsSettings(), description="TLS.")
    transaction_timeout: Milliseconds = Field(60_000, description="How long a transaction of the sink may stay open.")


class Executor(_Group):
    """Executors; a local master has none."""

    instances: int = Field(2, ge=1, description="Number of executors.")
    cores: int = Field(1, ge=1, description="Concurrent tasks in an executor.")
    memory: str = Field("1g", description="Heap of an executor's JVM.")
    memory_overhead: str = Field("1g", description="Memory of an executor beside its heap, for Python and DuckDB.")


class Kubernetes(_Group):
    """The driver's instructions to Kubernetes for its executors, if the master is `k8s://URL`. The driver runs in a
    pod."""

    namespace: str = Field("default", description="Namespace of the driver and its executors.")
    driver_pod: str = Field("", description="Name of the driver's pod, which owns the executors' pods.")
    driver_address: str = Field("", description="Address at which executors reach the driver: its pod's.")
    image: str = Field("", description="Image of executors, the same as the driver's.")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When to pull the image of executors."
    )
    service_account: str = Field("default", description="Service account of executors; they get no token.")
    pod_template: str = Field("", description="File with the pod template of executors.")


class Spark(_Group):
    """The Spark session."""

    master: str = Field(
        "local[*,16]",
        description="Spark master; `local[cores,attempts]`: cores to use (`*` = all), maximum attempts per task.",
    )
    partitions: int = Field(
        0,
        ge=0,
        le=MOST_TASKS,
        description="Most tasks of a level (shuffle partitions), limited by the number of cores; may change at any"
        " start. 0 = as many as cores.",
    )
    driver_memory: str = Field("1g", description="Heap of the JVM.")
    secret_file: str = Field(
        "", description="File with a secret that driver and executors share. Required unless the master is local."
    )
    executor: Executor = Field(Executor(), description="Executors.")
    kubernetes: Kubernetes = Field(Kubernetes(), description="Kubernetes.")
    conf: Annotated[dict[str, str], BeforeValidator(_from_json)] = Field(
        {}, description="Additional Spark settings, as a JSON object. Tailrace overrides those that results depend on."
    )

    @model_validator(mode="after")
    def _known_to_kubernetes(self) -> Self:
        """With executors in Kubernetes, the driver's pod and the executors' image must be set."""
        needed = ("driver_pod", "driver_address", "image") if self.master.startswith("k8s://") else ()
        missing = [f"{PREFIX}SPARK__KUBERNETES__{n.upper()}" for n in needed if not getattr(self.kubernetes, n)]
        if missing:
            raise ValueError(f"the master is Kubernetes, which needs {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _known_to_each_other(self) -> Self:
        """Executors started by others receive the pipeline and its passwords, so they must know a secret. Those that
        Spark starts on this machine are given one."""
        if not self.master.startswith("local") and not self.secret_file:
            raise ValueError(
                "executors must authenticate themselves:"
                f" {PREFIX}SPARK__SECRET_FILE must name a file with a secret that they share with the driver"
            )
        return self


class BatchSettings(_Group):
    """The size and the frequency of batches."""

    rows: int = Field(4_000_000, ge=1, description="Most records that one batch reads from one table.")
    bytes: int = Field(
        0,
        ge=0,
        description="Most bytes of records that one batch reads; 0 = 1/32 of the memory of the machines that run"
        " tasks.",
    )
    duration: Milliseconds = Field(
        3_000, ge=1, description="Target duration of a batch in a backlog; it determines the number of records."
    )
    block_rows: int = Field(
        200_000,
        ge=1,
        description="Records of a Kafka partition that are processed at a time, up to 32 MiB.",
    )
    trigger: Milliseconds = Field(
        0, description="Shortest time between the starts of two batches; 0 = as soon as there is data."
    )
    tick: Milliseconds = Field(1_000, description="How often a batch runs when no data arrives: 30 minutes at most.")


class Topics(_Group):
    """Topics that the service itself writes to."""

    create: bool = Field(
        False, description="Whether to create missing topics; otherwise the start is refused with a list of them."
    )
    partitions: int = Field(2, ge=1, description="Partitions of created topics.")
    replication: int = Field(1, ge=1, description="Replication factor of created topics.")
    dead_letter: str = Field(
        "tailrace.dead-letter",
        description="Topic of records that cannot be decoded and rows that cannot be computed; empty = only count.",
    )
    late: str = Field("", description="Topic of late rows; empty = only count.")
    markers: str = Field("tailrace.markers", min_length=1, description="Compacted topic of the commit markers.")


class Http(_Group):
    """The service's own HTTP server: the status page, /status.json, /livez, /readyz, /metrics."""

    host: str = Field("0.0.0.0", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 = none.")
    samples: int = Field(
        0, ge=0, description="Dead letters and late rows of each batch that the status page shows; 0 = none."
    )


class Retry(_Group):
    """The retries after a failed batch."""

    attempts: int = Field(5, ge=0, description="Restarts of a failed query in a row before the service gives up.")
    backoff: Milliseconds = Field(1_000, description="Wait before the first restart; it doubles up to one minute.")
    stall_timeout: Milliseconds = Field(
        600_000, description="Report the service as not alive if no task of a batch ends for this long."
    )
    changed_source: Literal["fail", "accept"] = Field(
        "fail",
        description="What to do if Kafka has removed records of a committed batch that must be read again.",
    )
    grace: Milliseconds = Field(25_000, description="How long a running batch may take to finish after SIGTERM.")


class Settings(BaseSettings):
    """All settings; `TAILRACE_SPARK__MASTER` sets `spark.master`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, case_sensitive=False
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the values that `load` passes: it reads the environment itself, and lists all mistakes."""
        return (init_settings,)

    checkpoint: str = Field(
        "tailrace-checkpoint",
        description="Folder, or s3a:// or gs:// URL, of checkpoints; in it a folder for each job.",
    )
    scratch: str = Field("", description="Local folder for copies of the state; empty = the system's temporary one.")
    state_cache: int = Field(
        2048,
        ge=64,
        description="MiB for copies of the state in scratch, if the checkpoint is in an object store.",
    )
    archives: str = Field("", description="Folder of the Java archives; empty = `.cache/archives` of a checkout.")
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="`json` lines, `text`, or `auto`: text on a terminal, JSON elsewhere."
    )
    secrets_dir: str = Field(
        "", description="Folder of files named after settings, such as `TAILRACE_KAFKA__SASL__PASSWORD`."
    )
    kafka: Kafka = Field(Kafka(), description="Kafka.")
    spark: Spark = Field(Spark(), description="Spark.")
    batch: BatchSettings = Field(BatchSettings(), description="Batches.")
    topics: Topics = Field(Topics(), description="Topics.")
    http: Http = Field(Http(), description="HTTP.")
    retry: Retry = Field(Retry(), description="Failures.")


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the environment (None = that of the process).

    Raises ConfigError, which lists every mistake: wrong values, unknown TAILRACE_ names, unreadable secrets.
    """
    given = dict(os.environ if environment is None else environment)
    mistakes = _unknown(given)
    secrets = given.get(PREFIX + "SECRETS_DIR", "")
    values = {k: v for k, v in given.items() if k.upper().startswith(PREFIX)}
    if secrets:
        values = _from_files(Path(secrets), mistakes) | values
    try:
        settings = _parse(values)
    except ValidationError as error:
        mistakes += [_sentence(e["loc"], e["msg"]) for e in error.errors()]
    if mistakes:
        raise ConfigError(mistakes)
    return settings


def variables() -> dict[str, tuple[str, str]]:
    """Return each variable with its default, as it would be written, and its description."""
    found: dict[str, tuple[str, str]] = {}

    def walk(model: type[BaseModel], prefix: str) -> None:
        for name, field in model.model_fields.items():
            variable = prefix + name.upper()
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                walk(field.annotation, variable + "__")
            else:
                found[variable] = (written(field, field.default), field.description or "")

    walk(Settings, PREFIX)
    return found


def written(field: FieldInfo, value: object) -> str:
    """Return `value` as the text of the variable of `field`."""
    match value:
        case bool():
            return str(value).lower()
        case int() if _DURATION in field.metadata:
            return durations.text(value)
        case dict():
            return json.dumps(value)
        case _:
            return str(value)


ELSEWHERE: Mapping[str, str] = {
    PREFIX + "MAVEN_MIRROR": "URL of a repository for the Java archives, in place of the public one.",
    PREFIX + "IVY_SETTINGS": "Ivy settings file that says where to fetch the Java archives.",
    PREFIX + "TEST_KAFKA": "`local` (the default) or `testcontainers`: the broker of the tests.",
    PREFIX + "TEST_KILLS": "Number of kills in the kill test; 10 by default.",
    PREFIX + "TEST_SCREENSHOTS": "Keep pictures of the status page's tests in `.cache/screenshots`.",
    PREFIX + "TEST_SEED": "Seed of the times of these kills.",
    PREFIX + "TEST_BATCHES": "Number of batches in the test of a worker's memory; 200 by default.",
}
"""Variables that are not settings of the service: set-up and tests read them directly."""


def _unknown(given: Mapping[str, str]) -> list[str]:
    known = set(variables()) | set(ELSEWHERE)
    mistakes = []
    for name in sorted(n.upper() for n in given if n.upper().startswith(PREFIX)):
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        mistakes.append(f"{name} is not a setting{hint}")
    return mistakes


def _from_files(folder: Path, mistakes: list[str]) -> dict[str, str]:
    if not folder.is_dir():
        mistakes.append(f"{PREFIX}SECRETS_DIR: there is no folder {folder}")
        return {}
    files = [f for f in sorted(folder.iterdir()) if f.is_file() and f.name.upper().startswith(PREFIX)]
    return {f.name.upper(): f.read_text().rstrip("\n") for f in files}


def _parse(values: Mapping[str, str]) -> Settings:
    known = set(variables())
    nested: dict[str, object] = {}
    for name, value in values.items():
        if name.upper() not in known:
            continue
        *groups, leaf = name.upper().removeprefix(PREFIX).lower().split("__")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})  # type: ignore[assignment]
        place[leaf] = value
    return Settings(**nested)  # type: ignore[arg-type]


def _sentence(location: tuple[int | str, ...], message: str) -> str:
    name = PREFIX + "__".join(str(part).upper() for part in location)
    return f"{name}: {message.removeprefix('Value error, ')}"

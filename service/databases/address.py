"""Translation of a database URL, in the form of JDBC or SQLAlchemy, to SQLAlchemy's form."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

EXPECTED = "'jdbc:postgresql://host:5432/database', 'jdbc:sqlite:/path/to/file', or a URL of SQLAlchemy"

_POSTGRESQL = "postgresql+psycopg"
_DRIVERLESS = {"postgresql": _POSTGRESQL, "postgres": _POSTGRESQL, "sqlite": "sqlite"}
_PROPERTIES = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "targetServerType": "target_session_attrs",
}
"""Properties of PostgreSQL's JDBC driver, and the names that libpq has for them."""

_SESSIONS = {"any": "any", "primary": "primary", "master": "primary", "secondary": "standby", "preferSecondary": "any"}


def sqlalchemy_url(text: str) -> str:
    """Return the URL as SQLAlchemy takes it. Raises ValueError, which says what is expected and shows no secret."""
    text = text.strip()
    if not text.startswith("jdbc:"):
        return _plain(text)
    kind = text.split(":", 2)[1]
    if kind == "sqlite":
        return _sqlite(text.removeprefix("jdbc:sqlite:"))
    if kind == "postgresql":
        return _postgresql(text.removeprefix("jdbc:"))
    raise ValueError(f"{EXPECTED} (of JDBC, only PostgreSQL and SQLite are known)")


def secrets_of_url(text: str) -> Iterator[str]:
    """Yield the passwords that a URL holds, as written and as meant."""
    parts = urlsplit(text.removeprefix("jdbc:"))
    found = [parts.password or ""]
    found += [value for name, value in parse_qsl(parts.query) if "password" in name.lower()]
    for each in filter(None, found):
        yield each
        yield unquote(each)


def _plain(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme:
        raise ValueError(EXPECTED)
    if scheme == "sqlite":
        return _sqlite(rest.removeprefix("/"))
    return f"{_DRIVERLESS.get(scheme, scheme)}://{rest}"


def _sqlite(path: str) -> str:
    """Opened for reading only: a file that is not there is an error, and no new database."""
    path = path.partition("?")[0].removeprefix("file:")
    if not path or path == ":memory:":
        raise ValueError("'jdbc:sqlite:/path/to/file': a database in memory has no rows")
    return f"sqlite:///file:{quote(path)}?mode=ro&uri=true"


def _postgresql(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or not parts.path.strip("/") or "," in parts.netloc:
        raise ValueError("'jdbc:postgresql://host:5432/database', with one host")
    user, password = parts.username or "", parts.password or ""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        match name:
            case "user":
                user = quote(value, safe="")
            case "password":
                password = quote(value, safe="")
            case "ssl":
                parameters.setdefault("sslmode", "verify-full" if value.lower() in ("true", "") else "prefer")
            case "currentSchema":
                parameters["options"] = f"-csearch_path={value}"
            case "targetServerType" if value not in _SESSIONS:
                raise ValueError(f"'targetServerType' as one of {', '.join(_SESSIONS)}")
            case "targetServerType":
                parameters[_PROPERTIES[name]] = _SESSIONS[value]
            case _ if name in _PROPERTIES:
                parameters[_PROPERTIES[name]] = value
            case _:
                known = ", ".join(sorted(["user", "password", "ssl", "currentSchema", *_PROPERTIES]))
                raise ValueError(f"a URL without the property '{name}' (known are {known})")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    query = f"?{urlencode(parameters)}" if parameters else ""
    return f"{_POSTGRESQL}://{login}{host}{port}{parts.path}{query}"

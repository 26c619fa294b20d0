"""URLs of databases, as JDBC and as SQLAlchemy write them."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from service.databases.address import secrets_of_url, sqlalchemy_url

URLS = [
    ("jdbc:postgresql://db:5433/shop", "postgresql+psycopg://db:5433/shop"),
    ("jdbc:postgresql://db/shop?user=ann&password=a%2Fb", "postgresql+psycopg://ann:a%2Fb@db/shop"),
    ("jdbc:postgresql://db/shop?ssl=true", "postgresql+psycopg://db/shop?sslmode=verify-full"),
    ("jdbc:postgresql://db/shop?sslmode=require&ssl=true", "postgresql+psycopg://db/shop?sslmode=require"),
    ("jdbc:postgresql://db/shop?currentSchema=s", "postgresql+psycopg://db/shop?options=-csearch_path%3Ds"),
    (
        "jdbc:postgresql://db/shop?targetServerType=secondary",
        "postgresql+psycopg://db/shop?target_session_attrs=standby",
    ),
    ("jdbc:postgresql://[::1]:5432/shop", "postgresql+psycopg://[::1]:5432/shop"),
    ("postgresql://db/shop", "postgresql+psycopg://db/shop"),
    ("postgresql+psycopg://db/shop", "postgresql+psycopg://db/shop"),
    ("mysql+pymysql://db/shop", "mysql+pymysql://db/shop"),
    ("jdbc:sqlite:/data/a b.db", "sqlite:///file:/data/a%20b.db?mode=ro&uri=true"),
    ("sqlite:////data/a.db", "sqlite:///file:/data/a.db?mode=ro&uri=true"),
]


@pytest.mark.parametrize(("given", "expected"), URLS)
def test_a_url_is_that_of_sqlalchemy(given: str, expected: str):
    assert sqlalchemy_url(given) == expected
    make_url(expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("jdbc:mysql://db/shop", "only PostgreSQL and SQLite"),
        ("db:5432/shop", "jdbc:postgresql://host"),
        ("jdbc:postgresql:shop", "with one host"),
        ("jdbc:postgresql://a,b/shop", "with one host"),
        ("jdbc:postgresql://db/shop?loggerLevel=OFF", "'loggerLevel'"),
        ("jdbc:postgresql://db/shop?targetServerType=x", "'targetServerType' as one of any"),
        ("jdbc:sqlite::memory:", "in memory"),
    ],
)
def test_other_urls_are_refused_without_being_shown(given: str, expected: str):
    with pytest.raises(ValueError, match=expected) as error:
        sqlalchemy_url(given)
    assert given not in str(error.value)


def test_passwords_of_a_url_are_known_as_secrets():
    assert {"a%2Fb", "a/b"} <= set(secrets_of_url("jdbc:postgresql://ann:a%2Fb@db/shop"))
    assert "hidden" in set(secrets_of_url("jdbc:postgresql://db/shop?user=ann&password=hidden"))
    assert not set(secrets_of_url("jdbc:sqlite:/data/a.db"))

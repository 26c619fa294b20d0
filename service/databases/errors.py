"""Errors of databases, one class per reaction of the caller."""

from __future__ import annotations


class DatabaseFailure(Exception):
    """Something is wrong with a database; the text says what and, in further lines, what to do."""


class DatabaseUnreachable(DatabaseFailure):
    """The database does not answer, or not now: wait and try again for as long as it takes."""


class DatabaseConfigError(DatabaseFailure):
    """Only a change of the table, of rights or of the database helps."""

"""Errors of schema registries, one class per reaction of the caller."""

from __future__ import annotations


class RegistryFailure(Exception):
    """Something is wrong with a schema registry; the text says what and, in further lines, what to do."""


class RegistryUnreachable(RegistryFailure):
    """The registry does not answer, or not now: wait and try again for as long as it takes."""


class RegistryConfigError(RegistryFailure):
    """Only a change of settings, rights or schemas helps."""


class UnknownSchema(RegistryFailure):
    """The registry has no schema of this id."""

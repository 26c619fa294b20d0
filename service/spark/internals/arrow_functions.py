"""Functions over Arrow rows without pandas, which PySpark wants to be there when one is declared, and does not use.

Whatever has pandas pays for it: pyarrow imports it when it is first given a Python list, which takes half a second of a
core and 50 MiB in each process.
"""

from __future__ import annotations

from pyspark.sql.pandas import functions

CHECK = "require_minimum_pandas_version"
"""The function of PySpark that raises an error if there is no pandas."""


def allow_without_pandas() -> None:
    """Let `mapInArrow` declare functions where there is no pandas; a second call does nothing."""
    if not hasattr(functions, CHECK):
        raise AttributeError(f"pyspark.sql.pandas.functions has no {CHECK}: is pandas still asked for?")
    setattr(functions, CHECK, _nothing)


def _nothing() -> None:
    """Ask for nothing."""

"""The exit codes of every command: done, a failure, or wrong configuration or SQL."""

from __future__ import annotations

OK, FAILED, WRONG = 0, 1, 2

"""How every command ends: done, a failure on the way, or wrong configuration or SQL."""

from __future__ import annotations

OK, FAILED, WRONG = 0, 1, 2

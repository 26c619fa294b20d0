"""The TLS alert with which a broker ends a connection, by its number.

librdkafka has one code for every connection that broke, and no field for the reason. Behind its own words it prints
OpenSSL's number of the error, as in `error:0A000418:SSL routines::tlsv1 alert unknown ca`: the library in the upper
bits, the reason in the lower ones. The reason of an alert is the number that TLS gives it, plus 1000.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\berror:([0-9A-F]{8}):")
_REASON_BITS = 23
_LIBRARY_OF_TLS = 20
_ALERTS = 1000
"""The numbers of OpenSSL 3: the bits of the reason, the library of TLS, and the base of an alert's number."""

OF_A_CERTIFICATE = frozenset({42, 43, 44, 45, 46, 48, 116})
"""bad_certificate, unsupported_certificate, certificate_revoked, certificate_expired, certificate_unknown, unknown_ca
and certificate_required (RFC 8446, section 6)."""


def alert_in(text: str) -> int | None:
    """Return the number of the alert that librdkafka's explanation is about, None where it is about none.

    >>> alert_in("Receive failed: error:0A000418:SSL routines::tlsv1 alert unknown ca: SSL alert number 48")
    48
    """
    found = _NUMBER.search(text)
    if found is None:
        return None
    library, reason = divmod(int(found[1], 16), 1 << _REASON_BITS)
    return reason - _ALERTS if library == _LIBRARY_OF_TLS and reason >= _ALERTS else None

"""The status page's part of the HTTP server: the page, its style, script and icon, and the document as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.resources import files

from service.observability.health import Health
from service.observability.http_server import Answers, HttpAnswer
from service.observability.metrics import Metrics
from service.observability.page.assemble import Assembler
from service.observability.page.recorder import Recorder
from service.observability.page.settings_shown import shown
from service.observability.page.view.whole import page
from service.observability.redaction import Redaction
from service.plan.explain import Explained
from service.plan.program import Program
from service.settings import Settings

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing comes from elsewhere, nothing inline runs, and no other page may look in."""

ASSETS: Mapping[str, str] = {
    "page.css": "text/css; charset=utf-8",
    "figures.css": "text/css; charset=utf-8",
    "graph.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.svg": "image/svg+xml",
}


def answers(
    recorder: Recorder,
    metrics: Metrics,
    health: Health,
    settings: Settings,
    programs: Sequence[Program],
    plans: Sequence[Explained],
    redaction: Redaction,
) -> Answers:
    """Return the answers by path. `plans` and `programs` are of the same jobs in the same order. `redaction` hides
    secrets."""
    assembler = Assembler(
        recorder=recorder,
        metrics=metrics,
        health=health,
        settings=settings,
        shown=shown(settings, redaction),
        programs=programs,
        plans=redaction.all(tuple(plans)),
        redaction=redaction,
    )
    assets = files("service.observability.page")
    return {
        "/": lambda: HttpAnswer(page(assembler.status()).encode(), "text/html; charset=utf-8", HEADERS),
        "/status.json": lambda: HttpAnswer(_json(assembler), "application/json", HEADERS),
        **{
            f"/{name}": partial(HttpAnswer, assets.joinpath(name).read_bytes(), kind, HEADERS)
            for name, kind in ASSETS.items()
        },
    }


def _json(assembler: Assembler) -> bytes:
    return json.dumps(asdict(assembler.status()), ensure_ascii=False).encode() + b"\n"

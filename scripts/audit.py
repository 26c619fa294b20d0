"""Known vulnerabilities of what others have written, asked of the OSV database: `python -m scripts.audit`.

OSV gathers the advisories of PyPI, GitHub and others for Python and Java alike; pip-audit and osv-scanner ask it, too.
Exit code 0: none is known but those that scripts/audit.toml accepts, with a reason; 1: some are; 3: OSV could not be
asked, so that nothing is known.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from scripts.components import Component, Found, components

OSV = "https://api.osv.dev"
ACCEPTED = Path(__file__).with_name("audit.toml")
AT_ONCE = 500
"""Packages of a request: half of what the service takes."""

SECONDS = 30
"""How long an answer is waited for."""

CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3


class CannotAsk(Exception):
    """The database gives no answer; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.audit", description=main.__doc__)
    parser.add_argument("--list", action="store_true", help="only list the components, which needs no network")
    parser.add_argument("--url", default=OSV, help="another address of an OSV database (default: %(default)s)")
    options = parser.parse_args(arguments)
    found, unnamed = components()
    for archive in unnamed:
        print(f"not audited, since it does not say what it is: {archive}", file=sys.stderr)
    if options.list:
        for component, where in found.items():
            print(f"{component.ecosystem}\t{component.name}\t{component.version}\t{', '.join(where)}")
        return CLEAN
    try:
        known = vulnerabilities(options.url, list(found))
        return report(options.url, found, known, accepted())
    except CannotAsk as error:
        print(f"error: {options.url} cannot be asked ({error}): nothing was audited", file=sys.stderr)
        return UNKNOWN


def accepted(path: Path = ACCEPTED) -> Mapping[str, str]:
    """The advisories that do not concern us, by id, and why."""
    return dict(tomllib.loads(path.read_text())["accepted"])


def vulnerabilities(url: str, asked: Sequence[Component]) -> dict[Component, list[str]]:
    """The ids of the advisories for each component that has any."""
    known: dict[Component, list[str]] = {}
    waiting = [(component, "") for component in asked]
    while waiting:
        now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        answers = _ask(f"{url}/v1/querybatch", {"queries": [_query(*each) for each in now]})["results"]
        if len(answers) != len(now):
            raise CannotAsk(f"{len(answers)} answers to {len(now)} questions")
        for (component, _), answer in zip(now, answers, strict=True):
            ids = [each["id"] for each in answer.get("vulns", ())]
            if ids:
                known.setdefault(component, []).extend(ids)
            if answer.get("next_page_token"):
                waiting.append((component, answer["next_page_token"]))
    return known


def report(url: str, found: Found, known: Mapping[Component, Sequence[str]], fine: Mapping[str, str]) -> int:
    """Say what was found."""
    open_ones = 0
    met: set[str] = set()
    for component, ids in sorted(known.items()):
        for identifier in sorted(set(ids)):
            details = _ask(f"{url}/v1/vulns/{identifier}")
            names = {identifier, *details.get("aliases", ())}
            excuse = next((fine[name] for name in sorted(names) if name in fine), None)
            met |= names
            open_ones += excuse is None
            print(f"{component.name} {component.version}: {', '.join(sorted(names))}")
            repairs = ", ".join(_repairs(details, component)) or "no version"
            print(f"  {details.get('summary') or 'no summary'}; repaired in {repairs}")
            print(f"  in {', '.join(found[component])}" + (f"\n  accepted: {excuse}" if excuse else ""))
    for name in sorted(fine.keys() - met):
        print(f"{ACCEPTED.name} accepts {name}, which concerns nothing any more: take it out", file=sys.stderr)
    print(f"{len(found)} components, {open_ones} known vulnerabilities that are not accepted")
    return VULNERABLE if open_ones else CLEAN


def _repairs(details: Mapping[str, Any], component: Component) -> Iterator[str]:
    for affected in details.get("affected", ()):
        if affected.get("package", {}).get("name") == component.name:
            for span in affected.get("ranges", ()):
                yield from (event["fixed"] for event in span.get("events", ()) if "fixed" in event)


def _query(component: Component, page: str) -> dict[str, Any]:
    package = {"name": component.name, "ecosystem": component.ecosystem}
    return {"package": package, "version": component.version, **({"page_token": page} if page else {})}


def _ask(url: str, question: object = None) -> Any:
    body = None if question is None else json.dumps(question).encode()
    try:
        with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=SECONDS) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise CannotAsk(f"it answered {error.code}") from error
    except (URLError, OSError) as error:
        raise CannotAsk(str(getattr(error, "reason", error))) from error
    except ValueError as error:
        raise CannotAsk("it answered something else than JSON") from error


if __name__ == "__main__":
    sys.exit(main())

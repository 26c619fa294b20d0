"""`make compare`: the golden pipelines, the small streams and generated ones, on Flink and on Tailrace."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from bench.compare import questions, streams
from bench.compare.generated import generated
from bench.compare.golden import golden
from bench.compare.known import Verdict, rows_difference, verdict
from bench.compare.nexmark import nexmark
from bench.compare.play import Stream, canonical, play
from bench.compare.recorded import recorded, stream_of
from service.host.machine import MachineError
from service.sql.errors import PipelineErrors


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases of this name alone, * being any text")
    asked = parser.parse_args(given)
    wanted = asked.parts or list(PARTS)
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(PARTS)}")
    found = verdict()
    try:
        for part in wanted:
            print(f"comparing {part}", flush=True)
            PARTS[part](found, asked.only)
    except MachineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not found.count:
        print(f"error: no case that can be compared is called {asked.only}", file=sys.stderr)
        return 1
    print(found.text())
    return 1 if found.unknown or found.stale else 0


def small_streams(found: Verdict, only: str) -> None:
    """The hand-written streams; what Flink says now must also be what was recorded."""
    before = {case["name"]: case.get("rows", []) for case in recorded()}
    for case in streams.ask_flink(_named(only, streams.cases())):
        if canonical(before.get(case["name"], [])) != canonical(case.get("rows", [])):
            found.take(f"{case['name']}, as recorded", "  Flink answers otherwise now than when it was recorded")
        _compare(found, case)


def generated_streams(found: Verdict, only: str) -> None:
    """Queries over random rows."""
    for case in streams.ask_flink(_named(only, generated())):
        _compare(found, case)


def nexmark_queries(found: Verdict, only: str) -> None:
    """Nexmark's queries about sessions and the first rows of a key, over few bids."""
    for case in streams.ask_flink(_named(only, nexmark())):
        _compare(found, case)


def golden_pipelines(found: Verdict, only: str) -> None:
    """The pipelines of tests/pipelines: each INSERT's query on Flink, against what its table holds here."""
    asked, ours = [], {}
    for case in golden():
        for sink, query in case.queries.items():
            name = f"{case.stream.name}/{sink}"
            ours[name] = (case.stream, sink)
            settings = case.settings
            arrivals = [list(arrival) for arrival in case.stream.arrivals]
            asked.append(
                {
                    "name": name,
                    "statements": case.statements,
                    "settings": settings,
                    "query": query,
                    "arrivals": arrivals,
                }
            )
    for answer in streams.ask_flink(_named(only, asked)):
        stream, sink = ours[answer["name"]]
        found.take(answer["name"], _difference(answer, stream, sink))


def expressions(found: Verdict, only: str) -> None:
    """Flink's answers to the expressions are still the recorded ones, which the unit tests hold Tailrace to."""
    before = {_name(group, entry): entry for group in questions.recorded() for entry in group["expressions"]}
    for group in questions.ask_flink():
        for entry in group["expressions"]:
            name = _name(group, entry)
            if not fnmatchcase(name, only):
                continue
            found.take(name, "" if before.get(name) == entry else f"  recorded {before.get(name)}, now {entry}")


PARTS: dict[str, Callable[[Verdict, str], None]] = {
    "golden": golden_pipelines,
    "streams": small_streams,
    "generated": generated_streams,
    "nexmark": nexmark_queries,
    "expressions": expressions,
}


def _named(only: str, cases: Iterable[streams.Case]) -> list[streams.Case]:
    return [case for case in cases if fnmatchcase(case["name"], only)]


def _name(group: dict[str, Any], entry: dict[str, Any]) -> str:
    return f"{group['name']}: {entry['sql']}"


def _compare(found: Verdict, case: streams.Case) -> None:
    found.take(case["name"], _difference(case, stream_of(case) if "columns" in case else None, "results"))


def _difference(answer: streams.Case, stream: Stream | None, sink: str) -> str:
    if stream is None:
        return f"  Flink refuses it: {answer['refused']}"
    try:
        ours = play(stream)[sink]
    except PipelineErrors as errors:
        return f"  Tailrace refuses it: {errors.mistakes[0]}"
    if "refused" in answer:
        return f"  Flink refuses it: {answer['refused']}"
    return rows_difference(canonical(answer["rows"]), ours)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The files of unit and of e2e tests are spread over the whole time of a run."""

from __future__ import annotations

from pathlib import Path

from tests.order import OTHERS, SECONDS, turns

ROOT = Path(__file__).resolve().parents[2]
KINDS = {file: "e2e" if {"spark", "chaos", "monitoring"} & set(file.split("/")) else "unit" for file in SECONDS}
KINDS |= {f"tests/u{number}.py": "unit" for number in range(100)}
KINDS |= {f"tests/e{number}.py": "e2e" for number in range(40)}


def test_every_long_file_exists():
    assert [file for file in SECONDS if not (ROOT / file).is_file()] == []


def test_each_kind_is_as_far_as_the_other_all_the_time():
    whole = {kind: sum(seconds(file) for file in KINDS if KINDS[file] == kind) for kind in OTHERS}
    passed = dict.fromkeys(OTHERS, 0.0)
    for file in ordered():
        passed[KINDS[file]] += seconds(file) / whole[KINDS[file]]
        assert abs(passed["unit"] - passed["e2e"]) < max(SECONDS.values()) / min(whole.values()), file


def test_no_file_starts_after_a_shorter_one_of_its_kind():
    for kind in OTHERS:
        taken = [seconds(file) for file in ordered() if KINDS[file] == kind]
        assert taken == sorted(taken, reverse=True)


def ordered() -> list[str]:
    found = turns(KINDS)
    return sorted(KINDS, key=lambda file: found[file])


def seconds(file: str) -> int:
    return SECONDS.get(file, OTHERS[KINDS[file]])

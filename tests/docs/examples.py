"""The examples of the pages, as the commands print them: `tailrace test`, `explain` and `check`, in this process."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from operators.sql import Sql
from service.cli import main
from service.formats.contract import RECORD
from service.formats.dead_letters import dead_records, row_records
from service.formats.registry import decoder
from service.sql.pipeline import read
from tests.docs.pages import ROOT, text_of

EXAMPLE = Path("examples/spending_by_city")

# Line 14 asks for a column that is not there.
_WRONG = """CREATE TABLE payments (
  who STRING,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'payments', 'format' = 'json');

CREATE TABLE totals (
  who STRING,
  total DECIMAL(38, 2),
  PRIMARY KEY (who) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 'totals', 'format' = 'debezium-json');

INSERT INTO totals
SELECT who, SUM(amout)
FROM payments GROUP BY who;
"""

_BAD = """CREATE TABLE orders (id BIGINT, amount BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');"""


def printed(*command: str, code: int = 0, folder: Path = ROOT) -> str:
    """What a command prints, run in `folder`; it must end with this exit code."""
    with io.StringIO() as output, redirect_stdout(output), redirect_stderr(output), chdir(folder):
        ended = main(command)
        text = output.getvalue()
    if ended != code:
        raise AssertionError(f"tailrace {' '.join(command)} ended with {ended}:\n{text}")
    return text


def fenced(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def pipeline() -> str:
    """The pipeline of the worked example."""
    return fenced(text_of(ROOT / EXAMPLE / "pipeline.sql"), "sql")


def query() -> str:
    """The INSERT of the worked example; in capitals, since its tables stand elsewhere: blocks of `sql` are run."""
    text = text_of(ROOT / EXAMPLE / "pipeline.sql")
    return fenced(text[text.index("INSERT INTO") :], "SQL")


def tested() -> str:
    """The golden test of the worked example, which compares `changes` and `wire` with what comes."""
    output = printed("test", str(EXAMPLE))
    return fenced("$ tailrace test examples/spending_by_city\n" + re.sub(r"[\d.]+ s$", "0.3 s", output.rstrip()))


def changes() -> str:
    """The changelog that it answers with."""
    return fenced(text_of(ROOT / EXAMPLE / "cities.changes"))


def wire() -> str:
    """Its last batch as records."""
    return fenced(text_of(ROOT / EXAMPLE / "cities.records").split("---\n")[-1], "json")


def explained() -> str:
    """What `explain` says of it."""
    return fenced(printed("explain", f"{EXAMPLE}/pipeline.sql"))


def mistake() -> str:
    """What `check` says of a misspelt column."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "pipeline.sql").write_text(_WRONG)
        return fenced(printed("check", "pipeline.sql", code=2, folder=Path(folder)))


def dead_letter() -> str:
    """A record that cannot be decoded, as it stands in the dead-letter topic."""
    orders = read(_BAD).tables["orders"]
    record = {"value": [b'{"id": 3, "amount": "many"}'], "topic": ["orders"], "partition": [0], "offset": [17]}
    records = pa.table({name: pa.array(given, RECORD.field(name).type) for name, given in record.items()})
    return _shown(dead_records(decoder(orders, (0, 1)).decode(records, Sql()).dead))


def dead_row() -> str:
    """A row that cannot be computed, as it stands there."""
    row = pa.table({"c0": [4], "c1": [0], "_weight": [1], "_reason": ["Division by zero"]})
    return _shown(row_records(row, ("id", "amount"), "calc_1", "", Sql()))


def _shown(records: pa.Table) -> str:
    """The headers of the only record, then its value."""
    (record,) = records.to_pylist()
    width = max(len(header["key"]) for header in record["headers"])
    headers = [f"{header['key']:<{width}}  {header['value'].decode()}" for header in record["headers"]]
    return fenced("\n".join([*headers, "", record["value"].decode()]))


PARTS: Mapping[str, Callable[[], str]] = {
    "pipeline": pipeline,
    "query": query,
    "test": tested,
    "changes": changes,
    "wire": wire,
    "explain": explained,
    "mistake": mistake,
    "dead-letter": dead_letter,
    "dead-row": dead_row,
}
"""The parts of pages that show them."""

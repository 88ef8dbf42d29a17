"""The benchmark of moving threads at its smallest: every way of moving gives its figures, on SQLite
and on PostgreSQL.
"""

from __future__ import annotations

import json
import subprocess
import sys

from patience import PATIENCE_S
from postgres.server import Database
from repository import ROOT


def test_moves_are_measured_on_both_databases(database: Database) -> None:
    size = ["--threads", "2", "--turns", "2", "--rounds", "1", "--delay-ms", "2"]
    command = [
        sys.executable,
        "-m",
        "benchmarks.postgres_moves",
        *size,
        "--json",
        "--server",
        database.server,
    ]

    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )

    figures = json.loads(done.stdout)["figures"]
    assert figures.keys() == {"copy", "acopy", "import", "lines", "out", "aout", "again"}
    for found in figures.values():
        assert found["SQLite"]["checkpoints_per_s"] > 0
        assert 0 < found["PostgreSQL, 2 ms"]["trips"] < found["PostgreSQL, 2 ms"]["statements"]

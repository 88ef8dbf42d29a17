"""The benchmark of long conversations on PostgreSQL at its smallest: both contenders give their
figures, as JSON too.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from patience import PATIENCE_S
from postgres.server import Database
from repository import ROOT

pytestmark = pytest.mark.usefixtures("peers")


def test_a_growing_conversation_is_measured_beside_its_peer(database: Database) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.postgres_shapes",
        "growth",
        "--turns",
        "12",
        "--json",
        "--server",
        database.server,
    ]

    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )

    found = json.loads(done.stdout)
    figures = found["figures"]["growth, 0 ms"]
    ours, theirs = figures["DeltaSaver, async"], figures["AsyncPostgresSaver"]
    assert (
        ours.keys()
        == theirs.keys()
        >= {"bytes@12 turns", "p99_ms@12 turns", "client_cpu_ms@12 turns"}
    )
    assert ours["bytes@12 turns"] > 100_000
    assert found["versions"]["langgraph-checkpoint-postgres"]

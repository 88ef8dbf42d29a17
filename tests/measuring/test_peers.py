"""The benchmark of round trips at its smallest: every contender gives every figure, and a known one
is what it is known to be.
"""

from __future__ import annotations

import pytest
from postgres.server import Database

from benchmarks.postgres_peers import COLUMNS, CONTENDERS, Plan, measure, place, report

pytestmark = pytest.mark.usefixtures("peers")


def test_every_contender_gives_every_figure(database: Database) -> None:
    plan = Plan(database.server, messages=(6, 30), delays_ms=(0, 10), turns=2)
    figures, errors = measure(plan, list(CONTENDERS))
    assert errors == {}
    assert figures.keys() == CONTENDERS.keys()
    for found in figures.values():
        for point in (
            place(messages, delay_ms) for messages in plan.messages for delay_ms in plan.delays_ms
        ):
            for what in COLUMNS.keys() - {"turn_p99_ms"}:  # that needs 50 turns
                assert found[f"{what}@{point}"] > 0
    alone = figures["PostgresSaver"]  # has one connection: its trips come one after another
    assert alone[f"turn_wall_ms@{place(6, 10)}"] > 10 * alone[f"trips@{place(6, 10)}"]
    assert alone[f"bytes_down@{place(30, 0)}"] > alone[f"bytes_down@{place(6, 0)}"]
    trips = {name: found[f"trips@{place(6, 0)}"] for name, found in figures.items()}
    assert trips["AsyncPostgresSaver, checked"] > trips["AsyncPostgresSaver"]
    assert len(list(report(figures, plan))) == 4 * (2 + len(CONTENDERS))

"""The benchmark of a full database at its smallest: every figure is there, and what must be so is
so.
"""

from __future__ import annotations

from postgres.server import Database

from benchmarks.sizing import Plan, report, run


def test_a_small_database_gives_every_figure(database: Database) -> None:
    plan = Plan(database.server, threads=5, messages=6, distinct=2, partitions=2)
    figures = run(plan)
    rows = {name: of["rows"] for name, of in figures["tables"].items()}
    assert (rows["thread"], rows["item"], rows["checkpoint"]) == (5, 5 * 6, 5 * 3 * 3)
    assert {"checkpoint_pkey", "item_pkey", "thread_by_owner"} <= figures["indexes"].keys()
    assert figures["bytes"] == sum(
        of["heap"] + of["toast"] + of["indexes"] for of in figures["tables"].values()
    )
    assert 4 <= figures["trips_per_turn"] < 6
    assert figures["get_pages"] > 5 < figures["turn_pages"]
    assert len(list(report(plan, figures))) > 40

"""The network that tests and benchmarks put before a server: its delay, its counts and its cuts are
what they say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proxy import Proxy, ProxyApart, at_address, with_database
from wire import Counts, Greeting, Messages, Meter

from postgres.server import Database

DELAY = 0.02
"""Seconds; many times what a statement takes here."""

MEGABYTE = 1 << 20


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    with Proxy(database.url) as made:
        yield made


def connected(proxy: Proxy | ProxyApart) -> psycopg.Connection:
    """A connection through the proxy that prepares nothing: each statement is what it says."""
    return psycopg.connect(proxy.url, autocommit=True, prepare_threshold=None)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# -- what it reads ---------------------------------------------------------------------------------

typed = st.tuples(st.sampled_from(b"QPBDEHSXZTCd"), st.binary(max_size=20))


@given(st.lists(typed), st.data())
def test_messages_are_found_in_whatever_pieces_they_come(
    messages: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(
        bytes([kind]) + (len(body) + 4).to_bytes(4, "big") + body for kind, body in messages
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    found = Messages()
    pieces = [
        stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ]
    assert [kind for piece in pieces for kind in found.feed(piece)] == [
        kind for kind, _ in messages
    ]


def test_encryption_is_refused_and_the_rest_passed_on_in_whatever_pieces_it_comes() -> None:
    wishes = b"".join(
        (8).to_bytes(4, "big") + code.to_bytes(4, "big") for code in (80877103, 80877104)
    )
    startup = (8 + 14).to_bytes(4, "big") + (196608).to_bytes(4, "big") + b"user\0postgres\0"
    stream = wishes + startup + b"and more"
    greeting, passed, refused = Greeting(), b"", 0
    for byte in stream:
        if greeting.over:
            passed += bytes([byte])
        else:
            more, wished = greeting.feed(bytes([byte]))
            passed, refused = passed + more, refused + wished
    assert (passed, refused) == (startup + b"and more", 2)
    assert Greeting().feed(stream) == (startup + b"and more", 2)


def test_urls_keep_all_but_what_is_changed() -> None:
    url = "postgresql://me:se%40cret@db.example:6000/app?connect_timeout=3"
    assert at_address(url, 7) == "postgresql://me:se%40cret@127.0.0.1:7/app?connect_timeout=3"
    assert (
        with_database(url, "other")
        == "postgresql://me:se%40cret@db.example:6000/other?connect_timeout=3"
    )


# -- counts ----------------------------------------------------------------------------------------


def test_each_statement_is_a_trip_and_a_pipeline_one(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        before = proxy.counts()
        for number in range(7):
            connection.execute("SELECT %s", [number])
        one_by_one = proxy.counts() - before
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s", [number]) for number in range(7)]
        together = proxy.counts() - before - one_by_one
    assert [cursor.fetchall() for cursor in cursors] == [[(number,)] for number in range(7)]
    assert (one_by_one.trips, one_by_one.syncs, one_by_one.statements) == (7, 7, 7)
    assert (together.trips, together.syncs, together.statements) == (1, 1, 7)
    assert one_by_one.connections == 0


def test_a_transactions_frame_costs_what_it_costs(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        before = proxy.counts()
        with connection.transaction():
            connection.execute("SELECT 1")
            connection.execute("SELECT 2")
        found = proxy.counts() - before
    assert (found.trips, found.syncs, found.statements) == (4, 4, 4)


UNDER_WAY = {
    "one after another": ("ES|ES|", "Z|Z|", (2, 2, 2)),
    "two pipelines at once": ("ESES|", "ZZ|", (1, 2, 2)),
    "the second before the first is answered": ("ES|ES||", "|Z|Z|", (1, 2, 2)),
    "a flush, answered, and the end": ("EH|ES|", "D|Z|", (2, 1, 2)),
    "a flush and the end at once": ("EHES|", "DZ|", (1, 1, 2)),
    "simple queries": ("Q|Q|", "TDCZ|CZ|", (2, 2, 2)),
}
"""What a client sends and what the server answers, a letter for a message, in steps; trips, syncs
and statements."""


@pytest.mark.parametrize(("up", "down", "found"), UNDER_WAY.values(), ids=UNDER_WAY)
def test_a_trip_begins_where_nothing_is_under_way(
    up: str, down: str, found: tuple[int, int, int]
) -> None:
    total = dict.fromkeys(Counts.__dataclass_fields__, 0)
    meter = Meter(total)
    for asked, answered in zip(up.split("|"), down.split("|"), strict=True):
        for kind in asked:
            meter.up(kind.encode() + (4).to_bytes(4, "big"))
        for kind in answered:
            meter.down(kind.encode() + (4).to_bytes(4, "big"))
    assert (total["trips"], total["syncs"], total["statements"]) == found


def test_bytes_are_counted_both_ways(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        before = proxy.counts()
        connection.execute("SELECT length(%s)", [b"x" * MEGABYTE])
        up = proxy.counts() - before
        connection.execute("SELECT repeat('x', %s)", [MEGABYTE]).fetchone()
        down = proxy.counts() - before - up
    assert MEGABYTE < up.bytes_up < MEGABYTE + 1000
    assert up.bytes_down < 1000
    assert MEGABYTE < down.bytes_down < MEGABYTE + 1000
    assert down.bytes_up < 1000


def test_connections_are_counted_together(proxy: Proxy) -> None:
    before = proxy.counts()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: connected(proxy).close(), range(20)))
    found = proxy.counts() - before
    assert (found.connections, found.trips, found.statements) == (20, 0, 0)


# -- delay -----------------------------------------------------------------------------------------


def test_each_trip_takes_the_delay_of_both_directions(database: Database) -> None:
    with Proxy(database.url, delay_s=DELAY) as proxy, connected(proxy) as connection:
        single = seconds(lambda: [connection.execute("SELECT 1") for _ in range(5)])
        with connection.pipeline():
            together = seconds(
                lambda: [connection.execute("SELECT 1") for _ in range(20)][-1].fetchone()
            )
        proxy.set_delay(0)
        undelayed = seconds(lambda: [connection.execute("SELECT 1") for _ in range(5)])
    assert single >= 5 * 2 * DELAY
    # Bounds from above are far from what is to be expected: the machine may be busy.
    assert 2 * DELAY <= together < 10 * 2 * DELAY
    assert undelayed < 5 * 2 * DELAY


def test_a_delay_does_not_limit_what_goes_through(database: Database) -> None:
    with Proxy(database.url, delay_s=0.1) as proxy, connected(proxy) as connection:
        sent = seconds(lambda: connection.execute("SELECT length(%s)", [b"x" * 16 * MEGABYTE]))
        text: list[tuple[str, ...]] = []
        got = seconds(
            lambda: text.extend(
                connection.execute("SELECT repeat('x', %s)", [16 * MEGABYTE]).fetchall()
            )
        )
    assert text == [("x" * 16 * MEGABYTE,)]
    # If each piece of 256 kB had waited for the one before it, that would be 6.4 s of waiting
    # alone.
    assert sent < 4
    assert got < 4


def test_order_is_kept_when_the_delay_changes(database: Database) -> None:
    with (
        Proxy(database.url, delay_s=DELAY) as proxy,
        connected(proxy) as connection,
        connection.pipeline(),
    ):
        cursors = []
        for number in range(60):
            proxy.set_delay(DELAY * (number % 3) / 2)
            cursors.append(connection.execute("SELECT %s", [number]))
        assert [cursor.fetchall() for cursor in cursors] == [[(number,)] for number in range(60)]


# -- cuts ------------------------------------------------------------------------------------------


def test_a_cut_ends_every_connection_and_new_ones_are_free_to_come(proxy: Proxy) -> None:
    with connected(proxy) as one, connected(proxy) as other:
        assert proxy.cut() == 2
        for connection in (one, other):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with connected(proxy) as another:
            assert another.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("sent", [0, 100, 50_000])
def test_what_is_cut_on_its_way_up_has_not_happened(
    proxy: Proxy, numbers: str, database: Database, sent: int
) -> None:
    with connected(proxy) as connection:
        before = proxy.counts()
        proxy.cut_after(sent)
        with pytest.raises(psycopg.OperationalError):
            connection.execute(f"INSERT INTO {numbers} VALUES (1, %s)".encode(), [b"x" * 100_000])
        assert (proxy.counts() - before).bytes_up == sent
    assert stored(database, numbers) == []


@pytest.mark.parametrize("seen", [0, 3])
def test_what_is_cut_on_its_way_down_has_happened(
    proxy: Proxy, numbers: str, database: Database, seen: int
) -> None:
    with connected(proxy) as connection:
        proxy.cut_after(seen, down=True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute(f"INSERT INTO {numbers} VALUES (1, 'x')".encode())
    assert stored(database, numbers) == [(1,)]


def test_a_cut_in_a_transaction_leaves_nothing_of_it(
    proxy: Proxy, numbers: str, database: Database
) -> None:
    with connected(proxy) as connection:
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO {numbers} VALUES (1, 'x')".encode())
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("COMMIT")
    assert stored(database, numbers) == []


def stored(database: Database, table: str) -> list[tuple[int, ...]]:
    """The numbers in a table, when nobody writes any more."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        for _ in range(500):
            [(busy,)] = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state LIKE %s AND pid"
                " <> pg_backend_pid()",
                [database.name, "%act%"],
            ).fetchall()
            if not busy:
                break
            time.sleep(0.01)
        return connection.execute(f"SELECT n FROM {table} ORDER BY n".encode()).fetchall()


def test_a_server_that_is_not_there_is_a_broken_connection() -> None:
    with (
        Proxy("postgresql://postgres@127.0.0.1:1/postgres") as proxy,
        pytest.raises(psycopg.OperationalError),
    ):
        connected(proxy)


# -- in a process of its own -----------------------------------------------------------------------


def test_a_proxy_in_a_process_of_its_own_does_the_same(database: Database) -> None:
    with closing(ProxyApart(database.url)) as proxy, closing(connected(proxy)) as connection:
        before = proxy.counts()
        connection.execute("SELECT 1")
        assert proxy.counts() - before == Counts(1, 1, 1, *(pytest.approx(100, abs=99),) * 2, 0)
        proxy.set_delay(DELAY)
        assert seconds(lambda: connection.execute("SELECT 1")) >= 2 * DELAY

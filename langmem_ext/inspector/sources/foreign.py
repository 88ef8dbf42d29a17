"""Databases of LangGraph's own savers, read as they are: nothing is imported, written or migrated.

What a step holds stands in one blob there, so it is looked at only where that is small
(`READ_BYTES`): what a list or a timeline would have shown beyond is left out, and what is asked for
by itself is always read.
"""

from __future__ import annotations

import json
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path as FilePath
from typing import Any, Final
from urllib.parse import quote

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Interrupt

from langmem_ext.errors import InvalidInput, StorageUnavailable, ThreadNotFound
from langmem_ext.inspector.sources.source import (
    PAGE,
    Conversation,
    ListedThread,
    Listing,
    MessageList,
    Path,
    Source,
    Standing,
    Step,
    StepFacts,
    ThreadPage,
    Write,
    made_at,
    part_of,
    standing_of,
    step_number,
)
from langmem_ext.messages.annotations import title_of
from langmem_ext.types import SearchHit

READ_BYTES: Final = 256 * 1024
"""Bytes of a checkpoint up to which it is read for the sake of a list."""

LAST_SHOWN: Final = 3
"""Messages of a list that a state shows."""

Row = Sequence[Any]


class ForeignSource(Source):
    """The threads of a saver of LangGraph's.

    Args:
        saver: The saver; what it would build is built of LangChain's and LangGraph's own classes
            alone.
        place: Where its database is, for people.
    """

    writable = False
    searchable = False
    size_unit = "bytes"

    def __init__(self, saver: BaseCheckpointSaver[Any], place: str) -> None:
        self._saver = saver
        self._saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        self.place = place

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """The checkpointer that reads it."""
        return self._saver

    def for_owner(self, owner: str | None) -> Source:
        """It knows no owners.

        Raises:
            InvalidInput: One is named.
        """
        if owner is not None:
            raise InvalidInput(f"{self.kind} keeps no owners of threads: open it without one")
        return self

    # -- what each kind of database answers --------------------------------------------------------

    @abstractmethod
    def _rows(self, statement: str, *params: Any) -> Sequence[Row]:
        """The rows that a statement gives; `?` stands for each parameter."""

    THREADS: str
    """Thread, newest and oldest checkpoint, bytes; with places for a condition, an order and what
    the page follows."""

    OUTLINE: str
    """Id, parent and metadata of every checkpoint."""

    SIZES: str
    """Id and bytes of every checkpoint."""

    # -- threads -----------------------------------------------------------------------------------

    def threads(self, listing: Listing) -> ThreadPage:
        """A page of threads; filters by wait, owner, tag or tool are not supported."""
        by = "bytes" if listing.order == "size" else "newest"
        after = json.loads(listing.after) if listing.after else None
        follows = f"WHERE ({by}, thread_id) < (?, ?)" if after else ""
        statement = self.THREADS.format(follows=follows, by=by, sized=by == "bytes")
        rows = self._rows(statement, f"%{_escaped(listing.text)}%", *(after or ()), PAGE + 1)
        page = rows[:PAGE]
        following = (
            json.dumps([page[-1][3 if by == "bytes" else 1], page[-1][0]])
            if len(rows) > PAGE
            else None
        )
        total = (
            None if listing.after else self._rows(self.COUNT, f"%{_escaped(listing.text)}%")[0][0]
        )
        return ThreadPage([self._listed(row) for row in page], following, total)

    COUNT: Final = (
        "SELECT count(DISTINCT thread_id) FROM checkpoints WHERE checkpoint_ns = '' AND thread_id"
        " LIKE ? ESCAPE '!'"
    )

    def thread(self, thread_id: str) -> ListedThread:
        """One thread."""
        statement = (
            "SELECT thread_id, max(checkpoint_id), min(checkpoint_id), 0 FROM checkpoints WHERE"
            " thread_id = ? GROUP BY thread_id"
        )
        rows = self._rows(statement, thread_id)
        if not rows:
            raise ThreadNotFound(
                f"thread {thread_id!r} not found: the list shows those that there are"
            )
        return self._listed(rows[0])

    def _listed(self, row: Row) -> ListedThread:
        thread_id, newest, oldest, size = row
        sizes = {
            name: bytes_
            for name, bytes_ in self._rows(
                f"{self.SIZES} AND checkpoint_id = ?", thread_id, "", newest
            )
        }
        head = (
            self.checkpoint(thread_id, newest) if (sizes.get(newest) or 0) <= READ_BYTES else None
        )
        messages = [] if head is None else _messages(head)[1]
        title = next(
            (title_of(vars(message)) for message in messages if isinstance(message, HumanMessage)),
            None,
        )
        waits = None if head is None else next(iter(_awaited_by(head)), None)
        return ListedThread(
            id=thread_id,
            title=title,
            owner=None,
            archived=False,
            created_at=made_at(oldest),
            used_at=made_at(newest),
            messages=len(messages) if head is not None else None,
            tokens=None,
            size=size or sum(bytes_ or 0 for _, bytes_ in self._rows(self.SIZES, thread_id, "")),
            waiting_for=waits,
            standing="idle" if head is None else _standing(head),
        )

    def search(self, text: str, thread_id: str | None = None) -> Sequence[SearchHit]:
        """It has no index.

        Raises:
            InvalidInput: Always.
        """
        raise InvalidInput(
            f"{self.kind} has no index of what was said: bring its threads in with `langmem-ext"
            " import-checkpoints`, then search"
        )

    # -- checkpoints -------------------------------------------------------------------------------

    def namespaces(self, thread_id: str) -> Sequence[str]:
        """The namespaces of a thread's subgraphs."""
        statement = (
            "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ? AND checkpoint_ns"
            " <> '' ORDER BY 1"
        )
        return [name for (name,) in self._rows(statement, thread_id)]

    def outline(self, thread_id: str, namespace: str = "") -> Sequence[Step]:
        """Every checkpoint of a thread's namespace, the newest first."""
        steps = []
        for name, parent, metadata in self._rows(self.OUTLINE, thread_id, namespace):
            noted = metadata if isinstance(metadata, dict) else _json(metadata)
            source = noted.get("source")
            steps.append(
                Step(
                    name,
                    parent,
                    step_number(noted.get("step")),
                    source if isinstance(source, str) else "",
                )
            )
        return steps

    def facts(
        self, thread_id: str, ids: Sequence[str], namespace: str = ""
    ) -> Mapping[str, StepFacts]:
        """What checkpoints say of their steps, as many of them as are small enough together."""
        rows = self._rows(self.SIZES, thread_id, namespace) if len(ids) > 1 else []
        sizes: dict[str, int] = {row[0]: row[1] or 0 for row in rows}
        facts: dict[str, StepFacts] = {}
        left = READ_BYTES * 8
        for name in ids:
            left -= sizes.get(name, 0)
            read = self.checkpoint(thread_id, name, namespace) if left >= 0 else None
            if read is not None:
                facts[name] = self._facts_of(read)
        return facts

    def _facts_of(self, read: CheckpointTuple) -> StepFacts:
        configurable, checkpoint = read.config["configurable"], read.checkpoint
        place = configurable["thread_id"], configurable["checkpoint_ns"], checkpoint["id"]
        written = tuple(Write(*row) for row in self._rows(self.WRITES, *place))
        held = tuple(checkpoint["channel_values"])
        return StepFacts(
            made_at(checkpoint["id"]),
            checkpoint["channel_versions"],
            checkpoint["versions_seen"],
            held,
            written,
        )

    WRITES: str
    """Task, path and channel of a checkpoint's pending writes."""

    def conversation(
        self, thread_id: str, checkpoint: str, first: int, limit: int, namespace: str = ""
    ) -> Conversation:
        """A part of the messages of a checkpoint."""
        read = self.checkpoint(thread_id, checkpoint, namespace)
        channel, messages = ("", []) if read is None else _messages(read)
        first = max(len(messages) + first, 0) if first < 0 else min(first, len(messages))
        part = messages[first : first + limit]
        return Conversation(channel, first, len(messages), part, [None] * len(part))

    def values(
        self,
        thread_id: str,
        checkpoint: str,
        namespace: str = "",
        only: Collection[str] | None = None,
    ) -> Mapping[str, Any]:
        """What a checkpoint's channels hold, or some of them."""
        read = self.checkpoint(thread_id, checkpoint, namespace)
        values = {} if read is None else read.checkpoint["channel_values"]
        return {
            name: MessageList(len(value), value[-LAST_SHOWN:]) if _is_list(value) else value
            for name, value in values.items()
            if only is None or name in only
        }

    def pending(
        self, thread_id: str, checkpoint: str, namespace: str = ""
    ) -> Sequence[tuple[str, str, Any]]:
        """The pending writes of a checkpoint: task, channel and value."""
        read = self.checkpoint(thread_id, checkpoint, namespace)
        return [] if read is None else read.pending_writes or []

    def value(self, thread_id: str, checkpoint: str, channel: str, namespace: str = "") -> Any:
        """What one channel holds, whole."""
        read = self.checkpoint(thread_id, checkpoint, namespace)
        return None if read is None else read.checkpoint["channel_values"].get(channel)

    def comparer(
        self, thread_id: str, checkpoint: str, channel: str, path: Path, namespace: str = ""
    ) -> Callable[[str], bool]:
        """A function that says of another checkpoint whether the same stands there."""

        def read(name: str) -> tuple[bool, Any]:
            stored = self.checkpoint(thread_id, name, namespace)
            if stored is None:
                return False, None
            if not path:
                return True, stored.checkpoint["channel_versions"].get(channel)
            return True, part_of(stored.checkpoint["channel_values"].get(channel), path)

        here = read(checkpoint)
        return lambda name: read(name) == here


class SqliteSaverSource(ForeignSource):
    """The file of a `SqliteSaver`, opened to be read."""

    kind = "SqliteSaver"
    THREADS = (
        "SELECT * FROM (SELECT thread_id, max(checkpoint_id) AS newest, min(checkpoint_id), CASE"
        " WHEN {sized} THEN sum(length(checkpoint)) ELSE 0 END AS bytes FROM checkpoints WHERE"
        " checkpoint_ns = '' AND thread_id LIKE ? ESCAPE '!' GROUP BY thread_id) {follows} ORDER BY"
        " {by} DESC, thread_id DESC LIMIT ?"
    )
    OUTLINE = (
        "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints WHERE thread_id = ?"
        " AND checkpoint_ns = ? ORDER BY checkpoint_id DESC"
    )
    SIZES = (
        "SELECT checkpoint_id, length(checkpoint) FROM checkpoints WHERE thread_id = ? AND"
        " checkpoint_ns = ?"
    )

    def __init__(self, path: str) -> None:
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(FilePath(path).absolute()))}?mode=ro",
                uri=True,
                check_same_thread=False,
            )
            tables = {
                name
                for (name,) in connection.execute("SELECT name FROM pragma_table_info('writes')")
            }
        except sqlite3.Error as error:
            raise StorageUnavailable(
                f"{path} cannot be read ({error}): give the path of a SqliteSaver's file"
            ) from error
        saver = SqliteSaver(connection)
        saver.is_setup = True  # its `setup` would write
        saver._has_task_path = "task_path" in tables
        path_of = "task_path" if "task_path" in tables else "''"
        self.WRITES = (
            f"SELECT task_id, {path_of}, channel FROM writes WHERE thread_id = ? AND checkpoint_ns"
            " = ? AND checkpoint_id = ? ORDER BY task_id, idx"
        )
        self._connection, self._lock = connection, saver.lock
        super().__init__(saver, str(path))

    def _rows(self, statement: str, *params: Any) -> Sequence[Row]:
        try:
            with self._lock, closing(self._connection.execute(statement, params)) as cursor:
                return cursor.fetchall()
        except sqlite3.Error as error:
            raise StorageUnavailable(f"{self.place} cannot be read ({error})") from error

    def close(self) -> None:
        """Close the file; idempotent."""
        self._connection.close()


class PostgresSaverSource(ForeignSource):
    """The database of a `PostgresSaver`, opened to be read.

    Args:
        url: The database, as psycopg takes it.
        schema: The schema of its tables; None: as the server's search path has it.
        place: Where it is, without a password.
    """

    kind = "PostgresSaver"
    _BYTES = "(SELECT sum(length(blob)) FROM checkpoint_blobs AS b WHERE b.thread_id = c.thread_id)"
    THREADS = (
        "SELECT * FROM (SELECT thread_id, max(checkpoint_id) AS newest, min(checkpoint_id),"
        " CASE WHEN {sized} THEN coalesce("
        + _BYTES
        + ", 0) ELSE 0 END AS bytes FROM checkpoints AS c WHERE checkpoint_ns = '' AND thread_id"
        " LIKE ? ESCAPE '!' GROUP BY thread_id) AS threads {follows} ORDER BY {by} DESC,"
        " thread_id DESC LIMIT ?"
    )
    OUTLINE = SqliteSaverSource.OUTLINE
    SIZES = (
        "SELECT checkpoint_id, (SELECT coalesce(sum(length(blob)), 0) FROM"
        " jsonb_each_text(checkpoint -> 'channel_versions') AS v JOIN checkpoint_blobs AS b ON"
        " b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND"
        " b.version = v.value) FROM checkpoints AS c WHERE thread_id = ? AND checkpoint_ns = ?"
    )
    WRITES = (
        "SELECT task_id, task_path, channel FROM checkpoint_writes"
        " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx"
    )

    def __init__(self, url: str, schema: str | None, place: str) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an extra
            from langgraph.checkpoint.postgres import (  # noqa: PLC0415
                PostgresSaver,
            )
        except ImportError as error:
            raise InvalidInput(
                "to look into a PostgresSaver's database, install what reads it: pip install"
                " langgraph-checkpoint-postgres"
            ) from error
        options = "-c default_transaction_read_only=on" + (
            f" -c search_path={schema}" if schema else ""
        )
        try:
            from psycopg.rows import dict_row  # noqa: PLC0415 - an extra

            self._connection: Any = psycopg.connect(
                url, autocommit=True, row_factory=dict_row, options=options
            )
        except psycopg.Error as error:
            raise StorageUnavailable(
                f"{place} cannot be read ({str(error).splitlines()[0]})"
            ) from error
        self._errors = psycopg.Error
        super().__init__(PostgresSaver(self._connection), place)

    def _rows(self, statement: str, *params: Any) -> Sequence[Row]:
        from psycopg.rows import tuple_row  # noqa: PLC0415 - an extra

        written = statement.replace("%", "%%").replace("?", "%s")
        try:
            with self._saver.lock, self._connection.cursor(row_factory=tuple_row) as cursor:  # type: ignore[attr-defined]
                rows: list[Row] = cursor.execute(written, params).fetchall()
                return rows
        except self._errors as error:
            raise StorageUnavailable(
                f"{self.place} cannot be read ({str(error).splitlines()[0]})"
            ) from error

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._connection.close()


def _messages(read: CheckpointTuple) -> tuple[str, list[BaseMessage]]:
    """The channel of a checkpoint's conversation, and its messages."""
    lists = {
        name: value for name, value in read.checkpoint["channel_values"].items() if _is_list(value)
    }
    if not lists:
        return "", []
    channel = "messages" if "messages" in lists else max(lists, key=lambda name: len(lists[name]))
    return channel, lists[channel]


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, BaseMessage) for item in value)
    )


def _awaited_by(read: CheckpointTuple) -> list[str]:
    """What a checkpoint's pending questions wait for."""
    asked = []
    for _, channel, value in read.pending_writes or ():
        if channel == "__interrupt__":
            for question in value if isinstance(value, list | tuple) else [value]:
                payload = question.value if isinstance(question, Interrupt) else question
                param = payload.get("param") if isinstance(payload, dict) else None
                asked.append(param if isinstance(param, str) else "an answer")
    return asked


def _standing(read: CheckpointTuple) -> Standing:
    """How a thread stands whose newest checkpoint this is."""
    written = {channel for _, channel, _ in read.pending_writes or ()}
    return standing_of(read.checkpoint["channel_values"], written)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _json(text: Any) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return parsed if isinstance(parsed, dict) else {}

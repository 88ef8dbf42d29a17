"""Threads as JSON lines: each row is one line, readable by people, and exact.

| line | what it holds |
|---|---|
| `{"format": "langmem-ext/threads", "version": 1, …}` | the first one |
| `thread` | what a list shows of the thread |
| `namespace`, `word` | what its rows name by number |
| `message` | its text, names and tool calls, readable; in `rest` the exact bytes of all else |
| `value`, `checkpoint`, `write` | what a graph keeps: exact bytes |
| `end` | how many rows there were, and a checksum of the thread's lines |
| `{"kind": "total", …}` | the last one: how many threads there were |

Every row has one way to be written, and nothing is said twice that could differ: a line that is
read is written again and compared. So what a person reads in a file is what an import stores.
Nothing is built that a line names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, MissingExtra, cause, safe_text
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.restore import RestorePolicy
from langmem_ext.messages.packed import fields_of, is_foreign, is_text
from langmem_ext.messages.size_limits import load_json
from langmem_ext.messages.snapshot import CLASSES
from langmem_ext.messages.token_costs.stored_tokens import implied_tokens
from langmem_ext.storage.operation import Row
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.clock import MINUTE_MS
from langmem_ext.storage.rows.compression import expand, expand_text
from langmem_ext.storage.rows.message import decode_item, require_item
from langmem_ext.storage.threads.list import STATUSES, TAG_END
from langmem_ext.storage.threads.rows_sql import (
    CHECKPOINT,
    ITEM,
    NAMESPACE,
    VALUE,
    WORD,
    WRITE,
    Table,
)
from langmem_ext.threads.export import fields
from langmem_ext.threads.export.fields import (
    Line,
    bytes_field,
    dumps,
    id_field,
    may,
    second_field,
    short,
    shown,
    take,
    time_field,
)
from langmem_ext.threads.validation import checked_metadata, checked_tags, checked_title

FORMAT: Final = "langmem-ext/threads"
VERSION: Final = 1

KINDS: Final = {
    "namespace": NAMESPACE,
    "word": WORD,
    "message": ITEM,
    "value": VALUE,
    "checkpoint": CHECKPOINT,
    "write": WRITE,
}
"""Kinds of lines by the table whose rows they are, in their order."""

_KIND_OF: Final = {table.name: kind for kind, table in KINDS.items()}
_TEXTS: Final = ("id", "owner", "title", "status", "waiting_for", "tool", "forked_from")
"""Columns of a thread's row that are texts, or nothing."""

_TYPES: Final = tuple(str(cls.model_fields["type"].default) for cls in CLASSES)

# -- threads ---------------------------------------------------------------------------------------


def thread_line(thread: Mapping[str, Any]) -> Line:
    """The line of a thread's own row.

    Raises:
        DamagedRow: A column is invalid.
    """
    try:
        if not all(isinstance(thread[name], str | None) for name in _TEXTS):
            raise ValueError("a text is invalid")
        metadata = load_json(thread["metadata"]) if thread["metadata"] else {}
        return {
            "kind": "thread",
            "id": thread["id"],
            "owner": thread["owner"],
            "title": thread["title"],
            "status": thread["status"],
            "tags": (thread["tags"] or "").split(TAG_END)[1:-1] or None,
            "metadata": metadata or None,
            "titled_by": thread["titled_by"],
            "created_at": time_field(thread["created_at"]),
            "epoch": second_field(thread["epoch"]),
            "updated_at": time_field(thread["updated_at"]),
            "messages": thread["head_messages"],
            "stored_messages": thread["items"],
            "tokens": thread["tokens"],
            "waiting_for": thread["waiting_for"],
            "tool": thread["tool"],
            "forked_from": thread["forked_from"],
            "next": [thread[f"next_{name}"] for name in ("namespace", "word", "item", "value")],
        }
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedRow(
            f"the row of thread {thread['id']!r} is damaged ({safe_text(error)}): see `langmem-ext"
            " doctor`"
        ) from cause(error)


def read_thread(line: Line) -> dict[str, Any]:
    """A thread's own row, from its line.

    Raises:
        ValueError: It is invalid.
    """
    title = may(line, "title", fields.text_of)
    if title is not None and title != checked_title(title):
        raise ValueError("a title must be text in one line")
    tags = checked_tags(line.get("tags") or ())
    metadata = checked_metadata(line.get("metadata") or {})
    status = take(line, "status", fields.name_of)
    if status not in STATUSES:
        raise ValueError(f"{short(status)} is not a status")
    counters = take(line, "next", list)
    if len(counters) != 4:
        raise ValueError("'next' is invalid")
    row: dict[str, Any] = {
        "id": take(line, "id", fields.name_of),
        "owner": may(line, "owner", fields.name_of),
        "title": title,
        "status": status,
        "tags": f"{TAG_END}{TAG_END.join(tags)}{TAG_END}" if tags else None,
        "metadata": (
            json.dumps(metadata, ensure_ascii=False, separators=(",", ":")) if metadata else None
        ),
        "titled_by": may(line, "titled_by", fields.number_of),
        "created_at": take(line, "created_at", fields.time_of),
        "epoch": take(line, "epoch", fields.second_of),
        "updated_at": take(line, "updated_at", fields.time_of),
        "head_messages": may(line, "messages", fields.count_of),
        "items": take(line, "stored_messages", fields.count_of),
        "tokens": take(line, "tokens", fields.count_of),
        "waiting_for": may(line, "waiting_for", fields.text_of),
        "tool": may(line, "tool", fields.name_of),
        "forked_from": may(line, "forked_from", fields.name_of),
    } | {
        f"next_{name}": fields.counter_of(count)
        for name, count in zip(("namespace", "word", "item", "value"), counters, strict=True)
    }
    return row | {"active_at": row["updated_at"] // MINUTE_MS}


# -- rows ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ThreadLines:
    """Writes the rows of one thread as lines, and reads them again, in the order of `KINDS`.

    Attributes:
        number: The thread's number where its rows are.
        epoch: The Unix second from which its messages' times count.
    """

    number: int
    epoch: int
    _codec: MessageCodec = field(default_factory=lambda: MessageCodec(RestorePolicy(strict=True)))
    _words: dict[int, bytes] = field(default_factory=dict)
    _before: tuple[int, bytes] | None = None

    def write(self, table: Table, row: Row) -> str:
        """The line of a row.

        Raises:
            DamagedRow: It has changed since it was written, or does not decode.
            MissingExtra: It is compressed, and zstd is not installed.
        """
        try:
            return dumps(
                {"kind": _KIND_OF[table.name], **getattr(self, f"_write_{table.name}")(*row)}
            )
        except (DamagedRow, MissingExtra):
            raise
        except Exception as error:
            pass_on(error)
            key = row[1] if table.placed else row[1:3]
            raise DamagedRow(
                f"a row of {table.name} ({key}) of thread number {self.number} is damaged"
                f" ({safe_text(error)}): other threads stay readable; see `langmem-ext doctor`"
            ) from cause(error)

    def read(self, line: Line) -> tuple[Table, Row]:
        """A row, from its line.

        Raises:
            ValueError: It is invalid.
        """
        table = KINDS.get(take(line, "kind", fields.text_of))
        if table is None:
            raise ValueError(f"unknown kind of line {short(line['kind'])}")
        row: Row = getattr(self, f"_read_{table.name}")(line)
        return table, row

    def _check(self, *columns: Any) -> int:
        return checks.check_of(self.number, *columns)

    def _verify(self, check: int, *columns: Any) -> None:
        checks.verify(check, self.number, *columns)

    def _write_namespace(self, thread: int, number: int, name: str, check: int) -> Line:
        self._verify(check, number, name)
        return {"number": number, "name": name}

    def _read_namespace(self, line: Line) -> Row:
        number, name = take(line, "number", fields.number_of), take(line, "name", fields.text_of)
        return self.number, number, name, self._check(number, name)

    def _write_word(self, thread: int, number: int, body: bytes, check: int) -> Line:
        self._verify(check, number, body)
        self._words[number] = body
        if body[:1] == b"{":
            with suppress(ValueError):
                return {"number": number, "text": body.decode()}
        return {"number": number, "body": bytes_field(body)}

    def _read_word(self, line: Line) -> Row:
        number = take(line, "number", fields.number_of)
        body = (
            line["text"].encode()
            if may(line, "text", fields.text_of) is not None
            else take(line, "body", fields.bytes_of)
        )
        return self.number, number, body, self._check(number, body)

    def _write_item(self, *row: Any) -> Line:
        _, number, message_id, role, name, text, tool_call_id, seconds, rest, shape, _, tokens = row
        require_item(self.number, row[1:-1])
        return {
            "number": number,
            "id": None if message_id is None else id_field(message_id),
            "role": None if role is None else _TYPES[role],
            "name": name,
            "text": expand_text(text),
            "tool_calls": self._tool_calls(row[1:-1]),
            "tool_call_id": tool_call_id,
            "created_at": second_field(self.epoch + seconds),
            "tokens": tokens if tokens is not None else implied_tokens(role, text),
            "shape": shape,
            "rest": None if rest is None else bytes_field(expand(rest)),
        }

    def _tool_calls(self, row: Row) -> list[Any] | None:
        """A message's tool calls, for people to read; None if it has none or they cannot be read.

        Another serializer's message cannot be read.
        """
        role, rest, shape = row[2], row[7], row[8]
        whole = None if rest is None else expand(rest)
        if role is None and whole is not None and is_foreign(whole):
            return None
        packed, _ = decode_item(
            self.number, row, None if shape is None else self._words.get(shape), self._codec
        )
        calls = None if is_text(packed) else fields_of(packed).get("tool_calls")
        return [shown(call) for call in calls] if isinstance(calls, list) and calls else None

    def _read_item(self, line: Line) -> Row:
        row = (
            take(line, "number", fields.number_of),
            may(line, "id", fields.id_of),
            may(line, "role", fields.role_of),
            may(line, "name", fields.text_of),
            may(line, "text", fields.text_of),
            may(line, "tool_call_id", fields.text_of),
            take(line, "created_at", fields.second_of) - self.epoch,
            may(line, "rest", fields.bytes_of),
            may(line, "shape", fields.number_of),
        )
        tokens = take(line, "tokens", fields.count_of)
        check = checks.item_check(self.number, row)
        return (
            self.number,
            *row,
            check,
            None if tokens == implied_tokens(row[2], row[4]) else tokens,
        )

    def _write_value(self, thread: int, number: int, body: bytes, check: int) -> Line:
        self._verify(check, number, body)
        return {"number": number, "body": bytes_field(expand(body))}

    def _read_value(self, line: Line) -> Row:
        number, body = take(line, "number", fields.number_of), take(line, "body", fields.bytes_of)
        return self.number, number, body, self._check(number, body)

    def _meant(self, space: int, checkpoint: bytes, parent: bytes | None) -> bytes | None:
        """The parent that is meant: an empty one is the checkpoint before, in its namespace."""
        before, self._before = self._before, (space, checkpoint)
        if parent != b"":
            return parent
        return before[1] if before is not None and before[0] == space else None

    def _write_checkpoint(
        self, thread: int, space: int, raw: bytes, parent: bytes | None, *rest: Any
    ) -> Line:
        step, label, shape, body, given_id, check = rest
        own = raw if given_id is None else given_id
        row = (
            space,
            own,
            self._meant(space, own, parent),
            step,
            label,
            shape,
            body,
            None if given_id is None else raw,
        )
        if check != checks.checkpoint_check(self.number, row):
            raise ValueError(checks.CHANGED)
        return {
            "namespace": space,
            "id": id_field(own),
            "key": None if given_id is None else bytes_field(raw),
            "parent": _parent_field(parent),
            "step": step,
            "label": label,
            "shape": shape,
            "body": bytes_field(body),
        }

    def _read_checkpoint(self, line: Line) -> Row:
        space, raw = take(line, "namespace", fields.number_of), take(line, "id", fields.id_of)
        parent = b"" if line.get("parent") == "" else may(line, "parent", fields.id_of)
        rest = (
            may(line, "step", fields.step_of),
            take(line, "label", fields.number_of),
            may(line, "shape", fields.number_of),
            take(line, "body", fields.bytes_of),
        )
        key = may(line, "key", fields.key_of)
        before = self._before
        check = checks.checkpoint_check(
            self.number, (space, raw, self._meant(space, raw, parent), *rest, key)
        )
        self._before = before  # it is written again, to be compared
        return self.number, space, key or raw, parent, *rest, raw if key else None, check

    def _write_pending_write(
        self,
        thread: int,
        space: int,
        checkpoint: bytes,
        task: bytes,
        shape: int | None,
        body: bytes,
        check: int,
    ) -> Line:
        self._verify(check, space, checkpoint, task, shape, body)
        return {
            "namespace": space,
            "checkpoint": id_field(checkpoint),
            "task": id_field(task),
            "shape": shape,
            "body": bytes_field(body),
        }

    def _read_pending_write(self, line: Line) -> Row:
        columns = (
            take(line, "namespace", fields.number_of),
            take(line, "checkpoint", fields.id_of),
            take(line, "task", fields.id_of),
            may(line, "shape", fields.number_of),
            take(line, "body", fields.bytes_of),
        )
        return self.number, *columns, self._check(*columns)


def _parent_field(parent: bytes | None) -> str | None:
    """A checkpoint's parent; an empty text for the checkpoint before it."""
    if parent is None or parent == b"":
        return None if parent is None else ""
    if not (text := id_field(parent)):
        raise ValueError("an id is empty")
    return text

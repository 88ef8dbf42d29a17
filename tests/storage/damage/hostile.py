"""Exports that somebody has written to fill the memory or the stack of whoever reads them, and a
process that reads them.

The process has little memory. It imports what it is given; what an import refuses it stores past
the import's examination, as in a database that somebody sends, and then has the doctor look at it,
and reads all of it in every way, unless the doctor warns.
"""

from __future__ import annotations

import base64
import gc
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

import ormsgpack
from carried import sealed, written
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from langmem_ext import DeltaSaver, InvalidInput, LangmemExtError, MalformedExport, Threads, examine
from langmem_ext.threads.export import reader

LIMIT: Final = 1 << 30
"""Bytes of memory that the process may use; a quarter is what anything may expand to."""

Lines = list[dict[str, Any]]
VALUES: Final = 2
"""Where the values' references stand in a checkpoint's body."""


# -- an export -------------------------------------------------------------------------------------


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def put(saver: DeltaSaver, thread: str, parent: Any, version: int, values: dict[str, Any]) -> Any:
    checkpoint: Any = empty_checkpoint()
    checkpoint |= {"channel_values": values, "channel_versions": dict.fromkeys(values, version)}
    return saver.put(
        parent, checkpoint, {"source": "loop", "step": version}, dict.fromkeys(values, version)
    )


@cache
def export(text: str = "x" * 1000, messages: int = 20) -> str:
    """An export of a thread in which everything is that may refer to something, and of one that is
    left alone.
    """
    with DeltaSaver.open(":memory:") as saver:
        said: list[Any] = [HumanMessage(text, id="long")]
        for number in range(1, messages):
            metadata = {
                "usage": {"input_tokens": number, "output_tokens": 300 + number},
                "model_name": f"model-{number}",
            }
            said.append(AIMessage(f"said {number}", id=f"m{number}", response_metadata=metadata))
        table = {f"key {number}": f"value {number} " * 20 for number in range(20)}
        held = {"said": said[0], "more": ["MARK", *said[1:4]]}
        at = put(
            saver,
            "t",
            config("t"),
            1,
            {"messages": said, "table": table, "held": held, "small": ["MARK"]},
        )
        later = table | {"key 3": "changed"}
        at = put(
            saver, "t", at, 2, {"messages": said, "table": later, "held": held, "small": ["MARK"]}
        )
        saver.put_writes(
            at, [("messages", said[:2]), ("held", {"said": said[1], "why": "MARK" * 30})], "task"
        )
        put(saver, "other", config("other"), 1, {"messages": [HumanMessage("whole", id="w")]})
        return "".join(Threads(saver).export_lines("t", "other"))


# -- changing it -----------------------------------------------------------------------------------


def unpacked(text: str) -> Any:
    """What base64 holds, with extension types as they are."""
    return ormsgpack.unpackb(
        base64.b64decode(text), ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS
    )


def packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def text_of(body: bytes) -> str:
    return base64.b64encode(body).decode()


def repeated(body: bytes, count: int) -> bytes:
    """A packed list of the same again and again."""
    return b"\xdd" + count.to_bytes(4) + body * count


def edited(whole: str, edit: Callable[[Lines], Any]) -> str:
    """An export in which the lines of its first thread are others, with counts and checksums that
    are right.
    """
    lines = [json.loads(text) for text in whole.splitlines()]
    end = next(at for at, line in enumerate(lines) if line.get("kind") == "end")
    first = lines[1 : end + 1]
    edit(first)
    order = ["thread", "namespace", "word", "message", "value", "checkpoint", "write", "end"]
    first.sort(key=lambda line: order.index(line["kind"]))
    return sealed(map(written, [lines[0], *first, *lines[end + 1 :]]))


def of_kind(lines: Lines, kind: str) -> Lines:
    return [line for line in lines if line["kind"] == kind]


def newest(lines: Lines) -> dict[str, Any]:
    return of_kind(lines, "checkpoint")[-1]


def refer(lines: Lines, *entries: Any, channel: int = 0) -> None:
    """Let a channel of the newest checkpoint refer to something else."""
    line = newest(lines)
    body = unpacked(line["body"])
    body[VALUES][channel : channel + 1] = entries
    line["body"] = text_of(packed(body))


def widen(lines: Lines, entries: list[Any]) -> None:
    """Give the newest checkpoint as many channels as there are references."""
    line, count = newest(lines), len(entries)
    time, versions, _, *rest = unpacked(line["body"])
    pattern = [4, [0] * count, [], None, list(range(count)), None]
    shape = packed([[f"c{number}" for number in range(count)], count, []])
    body = [packed(pattern), time, versions, entries, *rest]
    line["shape"] = add_word(lines, shape)
    line.pop("pattern", None)
    line["body"] = text_of(packed(body))


def add_word(lines: Lines, body: bytes) -> int:
    thread = lines[0]
    number = thread["next"][1]
    thread["next"][1] = number + 1
    lines.append({"kind": "word", "number": number, "body": text_of(body)})
    return int(number)


def add_value(lines: Lines, body: bytes) -> int:
    thread = lines[0]
    number = thread["next"][3]
    thread["next"][3] = number + 1
    lines.append({"kind": "value", "number": number, "body": text_of(body)})
    return int(number)


def add_messages(lines: Lines, count: int, **fields: Any) -> None:
    thread = lines[0]
    number = thread["next"][2]
    thread["next"][2] = number + count
    told = {
        "kind": "message",
        "created_at": of_kind(lines, "message")[0]["created_at"],
        "tokens": 0,
        **fields,
    }
    for at in range(number, number + count):
        line = told | {"number": at}
        lines.append({name: line[name] for name in FIELDS if name in line})


FIELDS: Final = (
    "kind",
    "number",
    "id",
    "role",
    "name",
    "text",
    "tool_calls",
    "tool_call_id",
    "created_at",
    "tokens",
    "shape",
    "rest",
)


def replaced(lines: Lines, mark: bytes, other: bytes) -> None:
    """Put other packed bytes in place of a mark, wherever a row holds it in place."""
    for line in lines:
        for name in ("body", "rest"):
            raw = (
                base64.b64decode(line[name])
                if isinstance(line.get(name), str) and line["kind"] != "word"
                else b""
            )
            if mark in raw:
                with suppress(RecursionError):  # what nests as deeply as that is left as it is
                    line[name] = text_of(_grown(raw, mark, other))


def _grown(raw: bytes, mark: bytes, other: bytes) -> bytes:
    """Bytes in which a part is another one; the lengths of the values around it are right again."""
    marker = ormsgpack.Ext(100, b"")

    def look(value: Any) -> Any:
        if isinstance(value, bytes) and mark in value:
            return _grown(value, mark, other)
        if isinstance(value, list):
            return [look(item) for item in value]
        if isinstance(value, dict):
            return {look(name): look(item) for name, item in value.items()}
        return marker if packed(value) == mark else value

    value = ormsgpack.unpackb(raw, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)
    return packed(look(value)).replace(packed(marker), other)


# -- reading it ------------------------------------------------------------------------------------


def outcome(whole: str) -> dict[str, Any]:
    """What becomes of an export: whether it is refused, whether the doctor finds damage in it,
    which readings of it are errors.
    """
    before = _memory("VmRSS", reset=True)
    with tempfile.TemporaryDirectory() as folder:
        found = _imported(f"{folder}/a.db", whole)
        if found["refused"]:
            reader._examine, examined = (lambda *given: None), reader._examine
            try:
                found |= _imported(f"{folder}/b.db", whole) | {"refused": found["refused"]}
            finally:
                reader._examine = examined
    return found | {"taken": _memory("VmHWM") - before}


def _memory(name: str, *, reset: bool = False) -> int:
    """Bytes of memory that this process uses, or has used at most since that was reset."""
    if reset:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(f"{name}:"))


def _imported(path: str, whole: str) -> dict[str, Any]:
    with DeltaSaver.open(path, synchronous="normal") as saver:
        try:
            Threads(saver).import_from(io.StringIO(whole), keep_ids=True)
        except MalformedExport as error:
            assert Threads(saver).count() == 0
            return {"refused": str(error)[:400], "stored": False}
        findings = examine(saver).findings
        damaged = [finding.message[:200] for finding in findings if finding.severity == "damaged"]
        large = [finding.message[:200] for finding in findings if finding.kind == "large"]
        errors = {}
        for name, read in (
            READINGS.items() if not large else ()
        ):  # whoever lets the doctor look knows what to leave alone
            try:
                read(saver)
            except InvalidInput:
                pass  # there is no list of messages
            except LangmemExtError as error:
                errors[name] = f"{type(error).__name__}: {error}"[:400]
            saver.log.caches.forget()
            gc.collect()  # what was read is in the traceback of an error
        other = saver.get_tuple(config("other"))
        assert other is not None
        assert other.checkpoint["channel_values"]["messages"] == [HumanMessage("whole", id="w")]
    return {"refused": None, "stored": True, "damaged": damaged, "large": large, "errors": errors}


def _listed(saver: DeltaSaver) -> None:
    for found in saver.list(config("t")):
        _ = found.checkpoint, found.pending_writes, found.metadata


def _told(form: Any) -> Callable[[DeltaSaver], None]:
    def tell(saver: DeltaSaver) -> None:
        for _ in zip(Threads(saver).export_lines("t", format=form), range(20_000), strict=False):
            pass

    return tell


READINGS: Final[dict[str, Callable[[DeltaSaver], Any]]] = {
    "get_tuple": lambda saver: saver.get_tuple(config("t")),
    "list": _listed,
    "threads": lambda saver: [Threads(saver).list(), Threads(saver).get("t")],
    "messages": lambda saver: Threads(saver).messages("t"),
    "turns": lambda saver: Threads(saver).turns("t"),
    "search": lambda saver: list(Threads(saver).search("said")),
    "stats": lambda saver: Threads(saver).stats(),
    "jsonl": _told("jsonl"),
    "markdown": _told("markdown"),
    "fork": lambda saver: Threads(saver).fork("t"),
    "prune": lambda saver: saver.prune(["t"], dry_run=True),
}


class Reader:
    """The process that reads exports, one after another; it is started again when it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def read(self, whole: str) -> dict[str, Any]:
        """What becomes of an export (`outcome`).

        Raises:
            AssertionError: The process has ended, or something else than this package's errors was
                raised.
        """
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(whole)
            file.flush()
            self._process.stdin.write(file.name + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        found: dict[str, Any] = (
            json.loads(answer)
            if answer
            else {"raised": f"the process ended with {self._process.wait()}"}
        )
        assert "raised" not in found, found["raised"]
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def serve() -> None:
    """Read the exports whose paths come in."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for line in sys.stdin:
        try:
            with open(line.strip(), encoding="utf-8", newline="") as file:
                found = outcome(file.read())
        except BaseException as error:  # a panic in Rust too
            found = {"raised": "".join(traceback.format_exception(error))[-3000:]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    serve()

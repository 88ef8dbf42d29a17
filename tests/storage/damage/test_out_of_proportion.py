"""Promise: what somebody sends takes memory in proportion to its bytes, or is refused: it ends no
process. What an application repeats is read as it was, however often.
"""

from __future__ import annotations

import base64
import functools
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import ormsgpack
import pytest
from carried import bring_in, exported, sealed, written
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Send
from patience import PATIENCE_S
from samples import Order

from langmem_ext import DeltaSaver, Threads, examine, stats

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
LONG: Final = "x" * 1_000_000


def put(saver: DeltaSaver, parent: Any, version: int, values: dict[str, Any]) -> Any:
    versions: Any = dict.fromkeys(values, version)
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
    return saver.put(parent, checkpoint, {"source": "loop", "step": version}, versions)


# -- what somebody sends ---------------------------------------------------------------------------

Lines = list[dict[str, Any]]


def packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def text_of(body: bytes) -> str:
    return base64.b64encode(body).decode()


def export(*, text: str = "x" * 1000, messages: int = 20) -> Lines:
    """The lines of an export of a thread with a large value."""
    with DeltaSaver(":memory:") as saver:
        said: list[Any] = [HumanMessage(text, id="long")]
        said += [AIMessage(f"said {number}", id=f"m{number}") for number in range(1, messages)]
        table = {f"key {number}": f"value {number} " * 20 for number in range(20)}
        put(saver, CONFIG, 1, {"messages": said, "table": table})
        return [json.loads(line) for line in exported(saver).splitlines()]


def of_kind(lines: Lines, kind: str) -> dict[str, Any]:
    """The last line of a kind."""
    return [line for line in lines if line.get("kind") == kind][-1]


def refer(lines: Lines, *entries: Any) -> None:
    """Let the first channel of the checkpoint refer to something else."""
    line = of_kind(lines, "checkpoint")
    body = ormsgpack.unpackb(base64.b64decode(line["body"]))
    body[2][0:1] = entries
    line["body"] = text_of(packed(body))


def in_the_value(body: bytes) -> Callable[[Lines], None]:
    return lambda lines: of_kind(lines, "value").update(body=text_of(body))


def again(body: bytes, count: int) -> bytes:
    """A packed list of the same again and again."""
    return b"\xdd" + count.to_bytes(4) + body * count


def renumber_the_last(lines: Lines) -> None:
    """A list from the first message to one of a number far away."""
    of_kind(lines, "message")["number"] = (1 << 20) - 1
    of_kind(lines, "thread")["next"][2] = 1 << 20
    refer(lines, [None, 0, 1 << 20])


def nest_metadata(lines: Lines) -> None:
    [line, *_] = [line for line in lines if line.get("kind") == "word" and "text" in line]
    line["text"] = '{"a":' * 50_000 + "1" + "}" * 50_000


BOMBS: Final[dict[str, tuple[Callable[[Lines], Any], dict[str, Any]]]] = {
    "a list of the same messages": (
        lambda lines: refer(lines, [None, *([0, 1000] * 16_775)]),
        {"messages": 1000},
    ),
    "a list of a long message": (
        lambda lines: refer(lines, [None, *([0, 1] * 1500)]),
        {"text": LONG},
    ),
    "more messages without ids than there are": (
        lambda lines: refer(lines, [None, 0, 1 << 24, [0, 1 << 24]]),
        {},
    ),
    "a list to a number far away": (renumber_the_last, {}),
    "a value that refers to a message again and again": (
        in_the_value(again(packed(ormsgpack.Ext(64, b"\0")), 200_000)),
        {"text": LONG},
    ),
    "lists in each other": (in_the_value(b"\x91" * 100_000 + b"\xc0"), {}),
    "lists that say to be long": (in_the_value(b"\xdd\xff\xff\xff\xff" * 100), {}),
    "a dict that says to be long": (in_the_value(b"\xdf\xff\xff\xff\xff\x01\x01"), {}),
    "metadata in itself": (nest_metadata, {}),
}
"""What reads as much more than it is, or as what no stack has room for."""

IMPORT: Final = """
import sys
from langmem_ext import DeltaSaver, MalformedExport, Threads

with DeltaSaver(":memory:") as saver:
    try:
        Threads(saver).import_from(sys.argv[1])
    except MalformedExport:
        print("refused", len(Threads(saver).list()))
"""


@pytest.mark.process
@pytest.mark.parametrize("bomb", BOMBS)
def test_what_would_fill_the_memory_is_refused_before_anything_is_stored(
    bomb: str, tmp_path: Path
) -> None:
    edit, sizes = BOMBS[bomb]
    lines, path = export(**sizes), tmp_path / "export.jsonl"
    edit(lines)
    path.write_text(sealed(map(written, lines)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        check=False,
    )
    assert (done.stdout, done.returncode) == ("refused 0\n", 0), done.stderr


# -- what applications repeat ----------------------------------------------------------------------

SAID: Final = [
    HumanMessage("long " * 60, id="a"),
    AIMessage("yes", id="b"),
    HumanMessage("no id, " * 9),
    ToolMessage("x", tool_call_id="1"),
]
REPEATED: Final = st.lists(st.sampled_from(SAID), max_size=4).flatmap(
    lambda said: st.sampled_from([1, 2, 17, 200]).map(lambda times: said * times)
)
HELD: Final = st.one_of(
    REPEATED,
    st.builds(
        lambda said, count: [
            Send("work", {"messages": said, "n": number}) for number in range(count)
        ],
        REPEATED,
        st.integers(0, 40),
    ),
    st.builds(lambda said: {"said": {"more": said}, "one": SAID[0]}, REPEATED),
)


@given(values=st.lists(HELD, min_size=1, max_size=3), told=HELD)
def test_what_an_application_repeats_is_read_as_it_was_however_often(
    values: list[Any], told: Any
) -> None:
    channels = {f"c{number}": value for number, value in enumerate(values)}
    with DeltaSaver(":memory:") as saver, DeltaSaver(":memory:") as target:
        at = put(saver, CONFIG, 1, channels)
        saver.put_writes(at, [("c0", told)], "task")
        bring_in(target, exported(saver), keep_ids=True)
        for reader in (DeltaSaver(saver.log), target):
            found = reader.get_tuple(at)
            assert found is not None
            assert found.checkpoint["channel_values"] == channels
            assert [value for _, _, value in found.pending_writes or []] == [told]
            assert examine(reader).ok


def test_many_tasks_may_take_the_same_long_history_and_store_it_once(tmp_path: Path) -> None:
    said = [HumanMessage(f"message {number} " * 200, id=f"{number}") for number in range(100)]
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        sends = [Send("work", {"messages": said, "n": number}) for number in range(60)]
        at = put(saver, CONFIG, 1, {"__pregel_tasks": sends})
        for number in range(60):
            saver.put_writes(at, [("messages", said)], f"task{number}")
        found = saver.get_tuple(at)
        assert found is not None
        assert found.checkpoint["channel_values"]["__pregel_tasks"] == sends
        assert len(found.pending_writes or []) == 60
        assert stats(saver).bytes["values"] < 200_000


def test_a_chain_of_objects_that_is_stored_is_read_and_a_longer_one_refused() -> None:
    def chain(length: int, last: str) -> Order:
        return functools.reduce(lambda inner, _: Order("n", [inner]), range(length), Order(last))

    with DeltaSaver(":memory:") as saver:
        for length, last in ((30, "x" * 5_000_000), (100, "last"), (200, "last")):
            value = chain(length, last)
            found = saver.get_tuple(put(saver, CONFIG, length, {"v": value}))
            assert found is not None
            assert found.checkpoint["channel_values"]["v"] == value
        before = Threads(saver).get("t")
        with pytest.raises(TypeError):
            put(saver, CONFIG, 1000, {"v": chain(100_000, "last")})
        assert Threads(saver).get("t") == before

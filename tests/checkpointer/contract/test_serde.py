"""Promise: an application's own data types come back as what they were, and no row makes this
package run, import or unpickle anything.
"""

from __future__ import annotations

import enum
import logging
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V2,
)
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import rows
from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings
from savers import Backend
from typing_extensions import TypedDict

from langmem_ext import (
    ConversationMemory,
    DamagedRow,
    DataSerializer,
    DeltaSaver,
    MessageLog,
    SearchUnavailable,
    ThreadChatMessageHistory,
    Threads,
)
from langmem_ext.storage.operation import Op, execute, fetch, operation
from langmem_ext.storage.rows.checksum import check_of

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class Order(BaseModel):
    number: int
    notes: list[str] = []


@dataclass
class Address:
    street: str


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Callable:
    """A data class that can be called: not a data type."""

    name: str

    def __call__(self) -> None:
        raise AssertionError("a row made this run")


class State(TypedDict):
    thing: Any


def through(saver: DeltaSaver, thing: Any) -> Any:
    graph = (
        StateGraph(State)
        .add_node("node", lambda state: {"thing": thing})
        .add_edge(START, "node")
        .compile(checkpointer=saver)
    )
    graph.invoke({"thing": None}, CONFIG)
    return graph.get_state(CONFIG).values["thing"]


@pytest.mark.parametrize(
    "thing",
    [
        Order(number=7),
        Address("Main"),
        Point(1, 2),
        Colour.RED,
        [Order(number=1)],
        {"a": (Point(1, 2),)},
    ],
)
def test_data_types_come_back_without_being_listed(
    backend: Backend, tmp_path: Path, thing: Any
) -> None:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        back = through(saver, thing)
        assert back == (thing if not isinstance(thing, dict) else {"a": [Point(1, 2)]})
        assert type(back) is type(thing)


def forge(code: int, payload: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(payload)))


FORGED = {
    "a function": forge(EXT_CONSTRUCTOR_POS_ARGS, ("os", "getenv", ("PATH",))),
    "a class method": forge(EXT_METHOD_SINGLE_ARG, ("os", "environ", "PATH", "get")),
    "a callable object": forge(EXT_CONSTRUCTOR_KW_ARGS, (__name__, "Callable", {"name": "x"})),
    "a runnable": forge(
        EXT_PYDANTIC_V2, ("langchain_core.runnables.base", "RunnableLambda", {"func": "x"}, "m")
    ),
    "a process": forge(EXT_CONSTRUCTOR_POS_ARGS, ("subprocess", "Popen", (["true"],))),
    "an import": forge(EXT_CONSTRUCTOR_POS_ARGS, ("this", "s", ())),
    "an alias": forge(EXT_CONSTRUCTOR_KW_ARGS, (__name__, "RunnableLambda", {"func": "x"})),
}


class Settings(BaseSettings):
    key: str = "none"


def test_a_row_cannot_make_settings_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-secret")
    forged = forge(EXT_PYDANTIC_V2, (__name__, "Settings", {}, "m"))
    assert DataSerializer().loads_typed(("msgpack", forged)) == {}


def test_a_secret_string_stays_secret(url: str) -> None:
    with DeltaSaver(url) as saver:
        back = through(saver, SecretStr("hush"))
        assert isinstance(back, SecretStr)
        assert back.get_secret_value() == "hush"


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_row_comes_back_as_inert_data_with_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    sys.modules.pop("this", None)
    found = DataSerializer().loads_typed(("msgpack", FORGED[name]))
    assert isinstance(found, list | dict | str)
    assert "this" not in sys.modules
    assert RunnableLambda.__name__ == "RunnableLambda"
    assert not caplog.records or "To allow it" in caplog.text


def test_a_forged_row_in_the_database_is_inert_too(backend: Backend, tmp_path: Path) -> None:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        through(saver, "x" * 100)
        saver.log.run(_overwrite_values(FORGED["a function"]), write=True)
        saver.log.caches.forget()
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["thing"] == ["PATH"]


@operation
def _overwrite_values(body: bytes) -> Op[None]:
    [(thread,)] = yield from fetch("SELECT number FROM thread")
    yield from execute(
        "UPDATE value SET body = :body, crc = :crc", body=body, crc=check_of(thread, 0, body)
    )


def test_strict_restores_only_what_is_listed(url: str) -> None:
    with DeltaSaver(url, serde=DataSerializer(strict=True)) as saver:
        assert through(saver, Order(number=7)) == {"number": 7, "notes": []}
    with DeltaSaver(url, serde=DataSerializer(strict=True, allow=[Order])) as saver:
        assert through(saver, Order(number=7)) == Order(number=7)


def test_allow_adds_what_the_policy_refuses(url: str) -> None:
    with DeltaSaver(url) as saver:
        assert through(saver, Callable("x")) == {"name": "x"}
        allowed = saver.with_allowlist([(__name__, "Callable")])
        assert isinstance(allowed, DeltaSaver)
        found = allowed.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["thing"] == Callable("x")


def test_a_type_that_changed_comes_back_as_its_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        packed = forge(EXT_CONSTRUCTOR_KW_ARGS, (__name__, "Address", {"road": "Main"}))
        assert DataSerializer().loads_typed(("msgpack", packed)) == {"road": "Main"}
    assert "could not be rebuilt" in caplog.text


class _Reverse:
    """A cipher for tests: it turns bytes round."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reverse", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "reverse"
        return ciphertext[::-1]


class _OtherKey(_Reverse):
    """The same with another key."""

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        raise ValueError("MAC check failed")


def test_what_another_serializer_wrote_is_not_called_damaged(url: str) -> None:
    message = HumanMessage("a very secret message", id="one")
    with DeltaSaver(url, serde=EncryptedSerializer(_Reverse())) as saver:
        saver.put(CONFIG, _checkpoint([message]), {"source": "loop", "step": 1}, {"messages": "1"})
    for wrong in ({}, {"serde": EncryptedSerializer(_OtherKey())}):
        with DeltaSaver(url, **wrong) as plain:
            with pytest.raises(
                DamagedRow, match=r"by a custom serializer: open the database with that serializer"
            ) as raised:
                plain.get_tuple(CONFIG)
            assert "delete" not in str(raised.value)


def test_with_an_encrypting_serializer_no_text_is_readable_in_the_database(url: str) -> None:
    serde = EncryptedSerializer(_Reverse())
    with DeltaSaver(url, serde=serde) as saver:
        saver.put(
            CONFIG,
            _checkpoint([HumanMessage("a very secret message")]),
            {"source": "loop", "step": 1},
            {"messages": "1"},
        )
        saver.put_writes(_at(), [("messages", HumanMessage("another secret message"))], "task")
    with DeltaSaver(url, serde=serde) as saver:
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"][0].content == "a very secret message"
        assert found.pending_writes is not None
        assert found.pending_writes[0][2].content == "another secret message"
        for table in ("thread", "item", "value", "checkpoint", "pending_write", "word"):
            stored = [
                row.encode() if isinstance(row, str) else row
                for rows in rows(saver, f"SELECT * FROM {table}")
                for row in rows
            ]
            assert b"secret" not in b" ".join(value for value in stored if isinstance(value, bytes))
    if "://" not in url:
        assert b"secret" not in Path(url).read_bytes()
    for wrong in ({}, {"serde": EncryptedSerializer(_OtherKey())}):
        told = "open (it|the database) with (that serializer|the serializer that wrote it)"
        with DeltaSaver(url, **wrong) as plain, pytest.raises(DamagedRow, match=told):
            plain.get_tuple(CONFIG)


def test_an_encrypting_serializer_leaves_readable_what_the_documents_say_and_no_more(
    url: str,
) -> None:
    class State(MessagesState):
        known: dict[str, str]

    def call(state: State) -> dict[str, Any]:
        calls = [
            {"name": "hidden tool", "args": {"hidden name": "hidden value"}, "id": "hidden call"}
        ]
        said = [
            AIMessage("hidden answer", tool_calls=calls),
            ToolMessage("hidden result", tool_call_id="hidden call"),
        ]
        return {"messages": said, "known": {"hidden key": "hidden text " * 40}}

    def ask(state: State) -> dict[str, Any]:
        return {"known": {"more": interrupt("hidden question")}}

    builder = (
        StateGraph(State)
        .add_node("seen_node", call)
        .add_node(ask)
        .add_edge(START, "seen_node")
        .add_edge("seen_node", "ask")
    )
    config: Any = {
        "configurable": {"thread_id": "seen-thread", "customer": "seen-customer"},
        "metadata": {"trace": "seen-trace"},
    }
    with DeltaSaver(
        url, serde=EncryptedSerializer(_Reverse(), DataSerializer()), owner="seen-owner"
    ) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("hidden prompt", id="seen-message")]}, config)
        graph.invoke(Command(resume="hidden reply"), config)
        threads = Threads(saver)
        threads.rename("seen-thread", "seen-title")
        threads.tag("seen-thread", "seen-tag")
        threads.note("seen-thread", {"by": "seen-note"})
        ThreadChatMessageHistory("other", saver).add_messages([HumanMessage("hidden line")])
        ConversationMemory(saver).for_session("other").merge({"hidden param": "hidden setting"})
        threads.begin("hidden desk").say("hidden saying")
        assert [message.text for message in threads.messages("seen-thread")] == [
            "hidden prompt",
            "hidden answer",
            "hidden result",
        ]
        assert threads.get("other").title is None
        with pytest.raises(SearchUnavailable):
            threads.search("prompt")
        tables = ("thread", "item", "value", "checkpoint", "pending_write", "word", "namespace")
        stored = [
            value
            for table in tables
            for row in rows(saver, f"SELECT * FROM {table}")
            for value in row
        ]
    content = b" ".join(
        value if isinstance(value, bytes) else str(value).encode() for value in stored
    )
    assert set(re.findall(rb"hidden \w+", content)) == set()
    readable = {b"thread", b"customer", b"trace", b"owner", b"message", b"title", b"tag", b"note"}
    assert set(re.findall(rb"seen-(\w+)", content)) == readable
    assert b"seen_node" in content
    if "://" not in url:
        assert b"hidden" not in Path(url).read_bytes()


def test_two_serializers_on_one_log_do_not_share_what_they_read(url: str) -> None:
    log = MessageLog.open(url)
    one, other = DeltaSaver(log), DeltaSaver(log, serde=DataSerializer(strict=True))
    through(one, Order(number=7))
    found = other.get_tuple(CONFIG)
    assert found is not None
    assert found.checkpoint["channel_values"]["thing"] == {"number": 7, "notes": []}
    log.close()


def _checkpoint(messages: list[Any]) -> Any:
    return {
        "v": 4,
        "id": "1f1e6000-0000-6000-8000-000000000001",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"messages": messages},
        "channel_versions": {"messages": "1"},
        "versions_seen": {},
        "updated_channels": None,
    }


def _at() -> Any:
    return {
        "configurable": {
            "thread_id": "t",
            "checkpoint_ns": "",
            "checkpoint_id": "1f1e6000-0000-6000-8000-000000000001",
        }
    }

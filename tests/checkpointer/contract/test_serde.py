"""Promise: an application's own data types come back as what they were, and no row makes this
package run, import or unpickle anything.
"""

from __future__ import annotations

import enum
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_PYDANTIC_V2,
)
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import rows
from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings
from raw_tables import change
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


def test_a_forged_row_in_the_database_is_inert_too(url: str) -> None:
    with DeltaSaver(url) as saver:
        through(saver, "x" * 100)
    forged = forge(EXT_CONSTRUCTOR_POS_ARGS, ("os", "getenv", ("PATH",)))
    change(url, "UPDATE value SET body = ?", forged, sealed=True)
    with DeltaSaver(url) as saver:
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["thing"] == ["PATH"]


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

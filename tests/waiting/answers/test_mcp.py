"""Promise: intents are MCP tools that ask, in both protocols, and questions outlive the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import desk
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult, InputRequiredResult
from patience import PATIENCE_S
from savers import Backend

from langmem_ext import DeltaSaver, InvalidInput, examine
from langmem_ext.mcp_server import create_mcp_server

MODERN, LEGACY = "2026-07-28", "legacy"
BOTH = pytest.mark.parametrize("mode", [MODERN, LEGACY])


class Person:
    """Answers each parameter's form with the next of the answers, and notes what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            name: list(given) if isinstance(given, list) else [given]
            for name, given in answers.items()
        }
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        [*names] = params.requested_schema["properties"]
        self.asked.append((names[0], params.message))
        answer = self.answers[names[0]].pop(0)
        return (
            answer
            if isinstance(answer, ElicitResult)
            else ElicitResult(action="accept", content={names[0]: answer})
        )


class Desk:
    """The order desk behind an MCP server in this process."""

    def __init__(self, saver: Any, folder: Path) -> None:
        self.shop = desk.Shop(folder / "shop.db")
        self.graph = desk.make_graph(saver, self.shop)

    async def call(
        self, person: Person | None, mode: str, tool: str, arguments: dict[str, Any]
    ) -> Any:
        async with Client(
            create_mcp_server(self.graph), elicitation_callback=person, mode=mode
        ) as client:
            return await client.call_tool(tool, arguments)


@pytest.fixture
def saver(durable: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(durable.new_url(tmp_path)) as saver:
        yield saver


@pytest.fixture
def office(saver: DeltaSaver, tmp_path: Path) -> Desk:
    return Desk(saver, tmp_path)


def said(result: Any) -> str:
    [block] = result.content
    text: str = block.text
    return text


async def test_the_intents_are_the_tools(office: Desk) -> None:
    async with Client(create_mcp_server(office.graph)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert [*tools] == [
        "check_order",
        "cancel_order",
        "change_address",
        "refund",
        "store_card",
        "talk_to_human",
    ]
    assert tools["refund"].description == "Give money back for an order. Asks for what is left out."
    schema = tools["refund"].input_schema
    assert [*schema["properties"]] == ["order_id", "amount", "method", "conversation"]
    assert "required" not in schema
    assert [*tools["store_card"].input_schema["properties"]] == ["conversation"], (
        "a sensitive value is no argument"
    )


@BOTH
async def test_a_call_asks_for_what_it_lacks_and_for_a_yes(
    office: Desk, saver: DeltaSaver, mode: str
) -> None:
    person = Person(order_id="O-2", confirmation=True)
    result = await office.call(person, mode, "cancel_order", {})
    assert said(result) == "Order O-2 is cancelled."
    assert [name for name, _ in person.asked] == ["order_id", "confirmation"]
    assert office.shop.effects() == [("cancel_order", {"number": "O-2"})]
    assert examine(saver).ok


@BOTH
async def test_what_is_given_is_not_asked_for_and_what_is_wrong_is_asked_for_again(
    office: Desk, mode: str
) -> None:
    assert (
        said(await office.call(Person(), mode, "check_order", {"order_id": "O-2"}))
        == "Order O-2 is on its way."
    )
    person = Person(amount=[700, 20], method="card")
    result = await office.call(person, mode, "refund", {"order_id": "O-1", "amount": 900})
    assert said(result) == "20 paid back by card for O-1, receipt R-1."
    assert [name for name, _ in person.asked] == ["amount", "amount", "method"]
    assert "less than or equal to 500" in person.asked[0][1]


@BOTH
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_declines_or_cancels_ends_the_call(office: Desk, mode: str, action: Any) -> None:
    no = ElicitResult(action=action)
    for person in (Person(order_id=no), Person(order_id="O-2", confirmation=no)):
        result = await office.call(person, mode, "cancel_order", {})
        assert said(result).endswith("Fine, I leave it.")
        assert result.structured_content["waiting_for"] is None
    assert office.shop.effects() == []


@BOTH
async def test_a_sensitive_value_is_asked_for_nowhere_but_in_a_chat(
    office: Desk, mode: str
) -> None:
    result = await office.call(Person(), mode, "store_card", {"conversation": "c"})
    assert "card is asked for by no form: go on in a chat with the thread mcp-c." in said(result)
    assert office.graph.get_state({"configurable": {"thread_id": "mcp-c"}}).interrupts


@BOTH
async def test_a_client_without_forms_is_told_how_to_answer(office: Desk, mode: str) -> None:
    result = await office.call(None, mode, "cancel_order", {})
    conversation = result.structured_content["conversation"]
    assert (
        said(result)
        == "What's your order ID?\nCall cancel_order again with the answer as order_id, and"
        f" conversation {conversation}."
    )
    result = await office.call(
        None, mode, "cancel_order", {"order_id": "O-2", "conversation": conversation}
    )
    assert "Shall I go ahead?" in said(result)
    assert "Only a person can say so" in said(result)
    result = await office.call(
        Person(confirmation=True), mode, "cancel_order", {"conversation": conversation}
    )
    assert said(result) == "Order O-2 is cancelled."


@asynccontextmanager
async def asking(office: Desk, key: str | None = None) -> AsyncIterator[Any]:
    """How a client calls tools that may ask in their results."""
    server = create_mcp_server(office.graph, key=key)
    async with Client(server, elicitation_callback=Person(), mode=MODERN) as client:
        yield partial(client.session.call_tool, allow_input_required=True)


def given(state: str | None, **values: Any) -> Any:
    """The answers with which a client calls again."""
    responses = {
        name: ElicitResult(action="accept", content={name: value}) for name, value in values.items()
    }
    return {"input_responses": responses, "request_state": state}


async def test_the_same_answer_twice_changes_nothing(office: Desk) -> None:
    async with asking(office) as call:
        asked = await call("cancel_order", {})
        answer = given(asked.request_state, order_id="O-2")
        first, second = [await call("cancel_order", {}, **answer) for _ in range(2)]
        assert first.input_requests == second.input_requests
        assert [*first.input_requests] == ["confirmation"]
        yes = given(first.request_state, confirmation=True)
        for again in (yes, yes, answer):  # a reply that was lost is given again
            assert said(await call("cancel_order", {}, **again)) == "Order O-2 is cancelled."
    assert office.shop.effects() == [("cancel_order", {"number": "O-2"})]


async def test_a_forged_state_answers_nobodys_question(office: Desk) -> None:
    async with asking(office) as call:
        victim = await call("cancel_order", {"order_id": "O-1", "conversation": "victim"})
        assert [*victim.input_requests] == ["confirmation"]
        own = (await call("cancel_order", {"order_id": "O-2"})).request_state
    config: Any = {"configurable": {"thread_id": "mcp-victim"}}
    [waits] = office.graph.get_state(config).interrupts
    plain = json.dumps({"conversation": "victim", "interrupt": waits.id})
    async with asking(office, "k" * 32) as elsewhere:
        foreign = (await elsewhere("cancel_order", {"order_id": "O-1"})).request_state
    flipped = own[:-2] + ("A" if own[-2] != "A" else "B") + own[-1]
    forged = ["", "x", "{}", "[]", plain, own + "A", own[:-4], flipped, foreign]
    order = {"order_id": "O-2"}
    async with asking(office) as call:
        for state in forged:
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await call("cancel_order", order, **given(state, confirmation=True))
        for tool, arguments in (
            ("cancel_order", {"order_id": "O-1"}),
            ("cancel_order", {**order, "conversation": "victim"}),
            ("check_order", order),
        ):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await call(tool, arguments, **given(own, confirmation=True))
        assert office.graph.get_state(config).interrupts == (waits,)
        assert office.shop.effects() == []
        done = await call("cancel_order", order, **given(own, confirmation=True))
        assert said(done) == "Order O-2 is cancelled."


async def test_one_owners_state_and_conversation_are_nobody_elses(
    saver: DeltaSaver, tmp_path: Path
) -> None:
    office = Desk(saver, tmp_path)
    whose = ["ada"]
    graphs = {name: office.graph.copy({"checkpointer": saver.for_owner(name)}) for name in "ab"}
    server = create_mcp_server(office.graph, graph_for=lambda request: graphs[whose[0][0]])
    async with Client(server, elicitation_callback=Person(), mode=MODERN) as client:
        call: Any = partial(client.session.call_tool, allow_input_required=True)
        order = {"order_id": "O-1", "conversation": "mine"}
        asked = await call("cancel_order", order)
        whose[0] = "bob"
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await call("cancel_order", order, **given(asked.request_state, confirmation=True))
        with pytest.raises(MCPError):
            await call("cancel_order", {"conversation": "mine"})
        assert office.shop.effects() == []
        whose[0] = "ada"
        done = await call("cancel_order", order, **given(asked.request_state, confirmation=True))
        assert said(done) == "Order O-1 is cancelled."


async def test_arguments_that_no_tool_takes_are_refused(office: Desk) -> None:
    async with asking(office) as call:
        for arguments in ({"foo": 1}, {"conversation": ""}, {"conversation": "x" * 201}):
            with pytest.raises(MCPError):
                await call("cancel_order", arguments)
        with pytest.raises(MCPError, match="takes no argument 'confirmation'"):
            await call("cancel_order", {"order_id": "O-1", "confirmation": True})
        with pytest.raises(MCPError, match="no tool is called 'foo'"):
            await call("foo", {})
        asked = await call("cancel_order", {})
        with pytest.raises(MCPError, match="no answer to the question for 'order_id'"):
            await call("cancel_order", {}, **given(asked.request_state, foo=1))
    assert office.shop.effects() == []


async def test_each_owner_has_a_key_that_outlives_the_server(office: Desk) -> None:
    saver = office.graph.checkpointer
    graphs = [office.graph.copy({"checkpointer": saver.for_owner(one)}) for one in ("a", "b")]
    for graph in (office.graph, *graphs):
        states = []
        for _ in range(2):  # a server, and the next
            async with Client(
                create_mcp_server(graph), mode=MODERN, elicitation_callback=Person()
            ) as client:
                call: Any = partial(client.session.call_tool, allow_input_required=True)
                for state in states:
                    asked = await call("cancel_order", {}, **given(state, order_id="O-2"))
                    assert [*asked.input_requests] == ["confirmation"]
                states.append((await call("cancel_order", {})).request_state)


async def test_no_key_is_taken_from_an_owner(office: Desk) -> None:
    store = office.graph.checkpointer.store
    at, planted = ("langmem_ext", "mcp"), {"key": "0" * 64}
    store.for_owner("eve").put(at, "key", planted)
    async with asking(office) as call:
        await call("cancel_order", {})
    assert store.get(at, "key").value != planted
    assert store.for_owner("eve").get(at, "key").value == planted


async def test_servers_that_start_at_once_seal_with_one_key(place: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as opened:
        calls: list[Any] = []
        for _ in range(4):
            saver = await opened.enter_async_context(await DeltaSaver.aopen(place))
            client = Client(
                create_mcp_server(Desk(saver, tmp_path).graph),
                elicitation_callback=Person(),
                mode=MODERN,
            )
            await opened.enter_async_context(client)
            calls.append(partial(client.session.call_tool, allow_input_required=True))
        for begun in await asyncio.gather(*(call("cancel_order", {}) for call in calls)):
            answer = given(begun.request_state, order_id="O-2")
            for call in calls:
                asked = await call("cancel_order", {}, **answer)
                assert [*asked.input_requests] == ["confirmation"]


def test_a_key_that_can_be_guessed_is_refused(office: Desk) -> None:
    with pytest.raises(InvalidInput, match="at least 32 bytes"):
        create_mcp_server(office.graph, key="short")


def test_beside_a_saver_that_encrypts_no_key_is_kept_in_plain_text(saver: DeltaSaver) -> None:
    sealed = DeltaSaver(saver.log, serde=EncryptedSerializer(cipher=NoCipher()))
    graph = desk.make_graph(sealed, desk.Shop(":memory:"))
    with pytest.raises(InvalidInput, match="encrypts"):
        create_mcp_server(graph)
    create_mcp_server(graph, key="k" * 32)


class NoCipher:
    """Stands for a cipher: none is called."""

    encrypt = decrypt = None


def test_another_graph_has_no_tools() -> None:
    graph = (
        StateGraph(MessagesState)
        .add_node("a", lambda state: {})
        .add_edge(START, "a")
        .add_edge("a", END)
    )
    with pytest.raises(InvalidInput, match="build_waiting_graph"):
        create_mcp_server(graph.compile(InMemorySaver()))


# -- a server of its own, and its death ----------------------------------------------------------


class Server:
    """`langmem-ext mcp`, or `serve --mcp` for an owner, as a program, which can be killed."""

    def __init__(self, folder: Path, database: str, transport: str) -> None:
        self._folder = folder
        self._transport = transport
        (folder / "office.py").write_text(
            f"import sys\nsys.path.insert(0, {str(Path(desk.__file__).parent)!r})\nimport desk\ndef"
            " office(saver):\n    return desk.make_graph(saver,"
            f" desk.Shop({str(folder / 'shop.db')!r}))\n",
            encoding="utf-8",
        )
        named = (
            ["serve", database, "--mcp", "--owner", "ada"]
            if transport == "serve"
            else ["mcp", "--db", database]
        )
        self._command = [sys.executable, "-m", "langmem_ext.cli", *named]
        self._command += ["--graph", "office.py:office"]
        self._pid = folder / "pid"
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = found.getsockname()[1]

    @asynccontextmanager
    async def client(self, person: Any, mode: str) -> AsyncIterator[Client]:
        """A client of the server, which is started if it does not run."""
        if self._transport != "stdio":
            self._listen()
            path = "langmem/mcp" if self._transport == "serve" else "mcp"
            target: Any = f"http://127.0.0.1:{self._port}/{path}"
        else:
            script = 'echo $$ > pid; exec "$@"'
            target = StdioServerParameters(
                command="sh", args=["-c", script, "sh", *self._command], cwd=self._folder
            )
        async with Client(target, elicitation_callback=person, mode=mode) as client:
            yield client

    def _listen(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self._port)], cwd=self._folder
        )
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server does not listen")

    def kill(self) -> None:
        """End it without warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
        else:
            os.kill(int(self._pid.read_text()), signal.SIGKILL)

    def close(self) -> None:
        if self._process is not None:
            self.kill()


@pytest.fixture(params=["stdio", "http", "serve"])
def served(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> Iterator[Server]:
    server = Server(tmp_path, place, request.param)
    yield server
    server.close()


@pytest.mark.process
async def test_a_question_outlives_the_server_and_is_answered_by_the_call_made_again(
    served: Server, tmp_path: Path
) -> None:
    async with served.client(Person(), MODERN) as client:
        assert client.protocol_version == MODERN
        asked = await client.session.call_tool(
            "cancel_order", {"order_id": "O-2"}, allow_input_required=True
        )
        assert isinstance(asked, InputRequiredResult)
        served.kill()
    yes: Any = {"confirmation": ElicitResult(action="accept", content={"confirmation": True})}
    async with served.client(Person(), MODERN) as client:
        done = await client.session.call_tool(
            "cancel_order",
            {"order_id": "O-2"},
            input_responses=yes,
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert said(done) == "Order O-2 is cancelled."
    assert desk.Shop(tmp_path / "shop.db").effects() == [("cancel_order", {"number": "O-2"})]


class Killer(Person):
    """Kills the server instead of answering."""

    def __init__(self, kill: Callable[[], None]) -> None:
        super().__init__(order_id="O-2")
        self._kill = kill

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self._kill()
        return await super().__call__(context, params)


@pytest.mark.process
async def test_a_question_within_a_call_outlives_the_server_and_is_asked_again(
    served: Server, tmp_path: Path
) -> None:
    killer = Killer(served.kill)
    with pytest.raises(Exception) as error:  # noqa: PT011 - whichever the transport's loss is
        async with served.client(killer, LEGACY) as client:
            await client.call_tool("check_order", {"conversation": "mine"}, read_timeout_seconds=20)
    assert killer.asked, error.value
    person = Person(order_id="O-2")
    async with served.client(person, LEGACY) as client:
        assert (
            said(await client.call_tool("check_order", {"conversation": "mine"}))
            == "Order O-2 is on its way."
        )
    assert person.asked == [("order_id", "What's your order ID?")]
    assert desk.Shop(tmp_path / "shop.db").effects() == [("check_order", {"number": "O-2"})]

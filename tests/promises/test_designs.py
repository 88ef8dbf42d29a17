"""Promise: what the five designs of conversation memory describe works, their plans for later
included. Each test is a row of a design, in its words and with the values of its examples.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from calling import calling
from catalogs import catalog_named
from clock import Clock
from commands import call
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import MessagesState
from langgraph.prebuilt import ToolNode
from prune_reference import change
from savers import Calls, Mode
from scripted_model import scripted
from small_graphs import chain, config

import langmem_ext as lm
from langmem_ext.server import Memory, create_app

# -- the first design: a conversation that waits for a parameter ----------------------------------


@tool
def check_order(order_id: str) -> dict[str, str]:
    """Find out where an order is."""
    return {"status": "on its way"}


def desk(saver: Any, **given: Any) -> Any:
    builder = lm.build_waiting_graph(catalog_named("designs"), [check_order], **given)
    return builder.compile(checkpointer=saver)


def said(graph: Any, *texts: str, thread: str = "s1") -> lm.Turn:
    return [lm.converse(graph, text, thread_id=thread) for text in texts][-1]


async def test_a_session_handle_holds_history_params_and_what_it_waits_for(
    url: str, mode: Mode
) -> None:
    do = Calls(mode).call
    with closing(lm.ConversationMemory(url)) as memory:
        session = memory.for_interaction(SimpleNamespace(context={"session_id": "s1"}, id="i1"))
        assert await do(session, "history") == []  # an unknown session is empty
        await do(session, "append", lm.Message("user", "I want to check my order"))
        await do(session, "append", lm.Message("agent", "What's your order ID?"))
        await do(session, "set_waiting", "order_id")
        await do(session, "set_last_intent_id", "check_order")
        await do(session, "set_plan_execution", {"intent_id": "check_order", "cursor": 0})
    with closing(lm.ConversationMemory(url)) as memory:  # persisted: the process may have ended
        session = memory.for_interaction({"id": "s1"})  # without a session, its own id
        assert await do(session, "waiting") == "order_id"
        assert await do(session, "plan_execution") == {"intent_id": "check_order", "cursor": 0}
        await do(session, "merge", {"order_id": "O-12345", "note": "", "gift": False})
        await do(session, "set_waiting", None)
        await do(session, "set_last_result", {"status": "on its way"})
        await do(session, "append", lm.Message("tool", "check_order: on its way"))
        assert await do(session, "params") == {"order_id": "O-12345", "note": "", "gift": False}
        assert await do(session, "last_intent_id") == "check_order"
        assert await do(session, "last_result") == {"status": "on its way"}
        await do(session, "prune", max_messages=2)
        kept = [(one.role, one.text) for one in await do(session, "history")]
        assert kept == [("agent", "What's your order ID?"), ("tool", "check_order: on its way")]
        await do(session, "clear")
        assert (session.history(), session.params(), session.waiting()) == ([], {}, None)


def test_ask_answer_continue_over_a_restart(url: str) -> None:
    with lm.DeltaSaver.open(url) as saver:
        turn = said(desk(saver), "I want to check my order")
        assert (turn.reply, turn.waiting_for) == ("What's your order ID?", "order_id")
    with lm.DeltaSaver.open(url) as saver:  # the plan that waits has survived
        session = lm.ConversationMemory(saver).for_session("s1")
        assert (session.waiting(), session.plan_execution() is None) == ("order_id", False)
        turn = said(desk(saver), "It's O-12345")
        assert (turn.reply, turn.waiting_for) == ("Order O-12345 is on its way.", None)
        assert (session.params(), session.waiting()) == ({"order_id": "O-12345"}, None)
        assert [one.role for one in session.history()].count("tool") == 1


def test_it_asks_again_gives_examples_and_escalates() -> None:
    graph, told = desk(InMemorySaver()), ("I want to check my order", *["the blue one"] * 3)
    assert [said(graph, text).reply for text in told] == [
        "What's your order ID?",
        "I need the number of your order.",
        "I need the number of your order. For example: O-12345",
        "A colleague takes over.",
    ]


def test_another_intent_a_timeout_and_a_reset_clear_the_question() -> None:
    graph, asked = desk(InMemorySaver()), datetime(2026, 3, 1, 12)
    aside = said(graph, "I want to check my order", "when are you open?")
    assert aside.reply.splitlines()[0] == "We open at 9."
    assert aside.waiting_for == "order_id"  # what was asked first continues after it
    assert said(graph, "forget it").waiting_for is None
    assert said(graph, "I want to check my order", "start over", thread="s2").waiting_for is None
    assert graph.get_state({"configurable": {"thread_id": "s2"}}).values["params"] == {}
    lm.converse(graph, "I want to check my order", thread_id="s3", now=asked)
    late = lm.converse(graph, "It's O-12345", thread_id="s3", now=asked + timedelta(hours=2))
    assert late.reply == "It has been a while. Do you still want to check order?"
    assert lm.converse(graph, "no", thread_id="s3").waiting_for is None


def test_telemetry_has_names_only() -> None:
    events: list[lm.Event] = []
    graph = desk(InMemorySaver(), telemetry=[SimpleNamespace(emit=events.append)])
    said(graph, "I want to check my order", "It's O-12345")
    told = [event.as_dict() for event in events if event.name in ("received", "respond")]
    before = {"history_count": 3, "params_keys": [], "waiting_for_param": "order_id"}
    after = {"history_count": 6, "params_keys": ["order_id"], "waiting_for_param": None}
    memory = [(one["event"], one["memory"]) for one in told[1:]]
    assert memory == [("received", before), ("respond", after)]
    assert "12345" not in json.dumps([event.as_dict() for event in events])


# -- the second design: the context of a command line, and its sessions ----------------------------

COUNTER = lm.ApproximateCounter()
OUTPUT = "\n".join(f"line {number}" for number in range(2_000))


def shell(times: int, output: Any, command: str = "ls") -> list[BaseMessage]:
    """Calls of a tool with the same arguments and the same result."""
    name, said = "run_shell_command", list[BaseMessage]([HumanMessage(f"Run {command}.")])
    for place in range(times):
        call = {"name": name, "args": {"command": command}, "id": f"{command}-{place}"}
        done = ToolMessage("", tool_call_id=call["id"], name=name, id=f"{command}{place}")
        done = done.model_copy(update={"content": output})  # a dict stays one
        said += [AIMessage("", tool_calls=[call]), done]
    return said


def talk(turns: int) -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for n in range(turns):
        said.append(HumanMessage(f"question {n} " + "word " * 30, id=str(2 * n)))
        said.append(AIMessage(f"answer {n}", id=str(2 * n + 1)))
    return [*said, HumanMessage("Go on.", id="last")]


def governor(budget: int, model: Any = None, prompt: Any = None, **policy: Any) -> Any:
    rules = lm.ContextPolicy(**{"verify": False, **policy})
    more = {} if prompt is None else {"prompt": prompt}
    return lm.ContextGovernor(budget=budget, model=model, counter=COUNTER, policy=rules, **more)


def sent(messages: list[BaseMessage], budget: int, model: Any = None, **policy: Any) -> Any:
    return governor(budget, model, **policy).govern(messages)


def test_old_tool_output_is_trimmed_and_the_last_exchange_is_not() -> None:
    for output in ("word " * 2_000, {"display": "word " * 2_000}):
        messages = [*shell(1, output), AIMessage("Done."), *shell(1, "total 0", "pwd")]
        _, called, trimmed, *rest = sent(messages, 1_500).messages
        call = called.tool_calls[0]["id"]
        assert (trimmed.name, trimmed.tool_call_id) == ("run_shell_command", call)
        total = len(output if isinstance(output, str) else json.dumps(output))
        assert trimmed.content.endswith(f"[…truncated, {total} chars total]")
        assert rest == messages[3:]
        events = sent(messages, 1_500, tool_output_trim_chars=0).events
        assert "trim" not in [event["kind"] for event in events]


def test_the_window_is_head_summary_and_tail() -> None:
    model, messages = scripted(lambda asked: "Numbers were asked for."), talk(25)
    cut = sent(messages, 9_000, model, strategy="messages").messages
    assert [one.id for one in cut[:2]] == ["0", "1"]  # the first run
    assert cut[2].text.startswith("[Summary of 29 earlier messages]\nNumbers were asked for.")
    assert (isinstance(cut[2], HumanMessage), cut[3:]) == (True, messages[31:])  # 40 // 2
    [[system, asked]] = model.asked
    assert system.text.startswith("You are a conversation summariser. Return only the summary.")
    assert "- Any pending tasks or next steps" in asked.text
    assert model.tools == [[]]  # it can call nothing
    fallen = sent(messages, 9_000, scripted(lambda asked: 1 / 0), strategy="messages").messages
    removed = "29 messages removed to stay within context budget"
    assert fallen[2].text == f"[Earlier conversation trimmed — {removed}]"
    assert sent(messages, 9_000, model, strategy="messages", max_messages=0).messages == messages


def test_a_summary_may_have_a_trigger_a_prompt_and_a_model_of_its_own() -> None:
    model = scripted(lambda asked: "Numbers were asked for.")
    several = [{"messages": 40, "tokens": 1_000}]
    for trigger in (("messages", 40), ("tokens", 1_000), ("fraction", 0.1), several):
        own = governor(9_000, model, prompt="Only prices.", trigger=trigger)
        assert own.govern(talk(25)).events[0]["by"] == "model", trigger
        assert model.asked[-1][1].text.startswith("Only prices.")


def test_a_compaction_on_demand_leaves_two_messages() -> None:
    model = scripted(lambda asked: "Numbers were asked for.")
    own = governor(9_000, model, strategy="messages")
    graph = chain(lambda state: {}, saver=InMemorySaver(), state=lm.ContextState)
    graph.invoke({"messages": talk(9)[:-1]}, config())
    own.compact(graph, config())
    values = graph.get_state(config()).values
    compacted = own.govern(values["messages"], values["context_events"]).messages
    assert [one.text for one in compacted] == [
        "[Compacted conversation summary]\nNumbers were asked for.",
        "Understood. I have the conversation context.",
    ]


def test_a_summary_is_guarded_verified_and_checked_before_it_is_sent() -> None:
    longer = sent(talk(60), 2_000, scripted(lambda asked: "much more was said " * 900))
    assert longer.plan.after <= 2_000  # however long it became
    checks = "You check summaries"
    said = {True: "- MISSED.md is pending.", False: "It was about a file."}
    model = scripted(lambda asked: said[asked[0].text.startswith(checks)])
    texts = "".join(one.text for one in sent(talk(60), 4_000, model, verify=True).messages)
    assert "It was about a file." in texts
    assert any(asked[0].text.startswith(checks) for asked in model.asked)
    with pytest.raises(lm.ContextOverflow, match="the request needs"):
        lm.govern([HumanMessage("word " * 5_000)], budget=1_000, counter=COUNTER)


def test_large_output_is_offloaded_with_a_preview_and_read_again() -> None:
    policy = lm.ContextPolicy(offload=True)
    assert (policy.protected_tokens, policy.least_offload_tokens) == (50_000, 30_000)
    messages = [*shell(1, OUTPUT, "cat"), AIMessage("Done."), *shell(1, "total 0", "pwd")]
    offload = {"offload": True, "protected_tokens": 0, "least_offload_tokens": 30_000}
    preview = sent(messages, 4_000, **offload).messages[2]
    assert "\nline 0\n" in preview.text
    assert "line 1999" in preview.text
    assert 'read_tool_output(ref="cat0"' in preview.text
    read = {"name": "read_tool_output", "args": {"ref": "cat0", "find": "line 1234"}, "id": "r"}
    reader = chain(ToolNode([lm.output_reader()]))
    found = reader.invoke({"messages": [*messages, AIMessage("", tool_calls=[read])]})
    assert "line 1234" in found["messages"][-1].text


def test_a_loop_is_broken_and_reasoning_is_stripped() -> None:
    nudged = sent(shell(3, "nothing"), 9_000)
    assert "was called 3 times with the same arguments" in nudged.messages[-1].text
    assert "Stopped: " in str(sent(shell(6, "nothing"), 9_000).plan)
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    answer = AIMessage([thought, {"type": "text", "text": "Four."}])
    asked = [HumanMessage("2 + 2?"), answer, HumanMessage("So?")]
    assert "hm" not in str(sent(asked, 9_000).messages)


# -- the third design: threads that go on across tools ---------------------------------------------


async def test_a_conversation_flows_from_chat_to_debug_to_codereview(
    saver: lm.DeltaSaver, mode: Mode, clock: Clock
) -> None:
    do = Calls(mode).call
    threads = lm.Threads(saver, max_turns=50, tool_ttl=timedelta(hours=3))
    chat = threads.begin("chat")
    file = lm.TurnFile("/path/to/file.go", "func main() {}")
    await do(chat, "say", "Help me debug this function", files=[file])
    used = {"input_tokens": 1_000_000, "output_tokens": 0}
    reply = "I see a potential issue on line 42..."
    await do(chat, "answer", reply, usage=used, model="small-1")
    cost = (await do(threads, "usage", chat.id, {"small-1": ("0.15", "0.60")})).total.cost
    assert str(cost).rstrip("0") == "0.15"
    continuation_id = chat.result("…")["continuation_id"]
    debug = await do(threads, "continue_", continuation_id, tool="debug")
    assert len(await do(debug, "history")) == 2
    copied = lm.TurnFile("/copy/of/file.go", "func main() {}")
    asked = await do(debug, "say", "Debug request", files=[copied, "/path/to/file.go"])
    assert "func main" not in asked.text  # the same content is not sent twice
    review = await do(threads, "continue_", continuation_id, tool="codereview")
    assert [turn.tool for turn in await do(review, "turns")] == ["chat", "debug"]
    paths = [file.path for file in await do(review, "files")]
    assert sorted(paths) == ["/copy/of/file.go", "/path/to/file.go"]
    summary = (await do(review, "context_summary")).text
    assert f"Thread: {continuation_id}" in summary
    assert "Turns: 2\nTools used: chat, debug" in summary
    counted = await do(threads, "stats")
    assert (counted.threads, counted.turns) == (1, 2)
    clock.wait(hours=3)
    with pytest.raises(lm.ThreadExpired):
        await do(threads, "continue_", continuation_id, tool="debug")
    assert (await do(threads, "sweep")).threads == 1
    with pytest.raises(lm.ThreadNotFound):
        await do(threads, "continue_", continuation_id, tool="debug")


def test_turns_are_limited_and_the_newest_fit_a_budget(saver: lm.DeltaSaver) -> None:
    thread = lm.Threads(saver, max_turns=3).begin("chat")
    for number in range(5):
        thread.say(f"Turn {number}")
    assert [turn.said for turn in thread.turns()] == ["Turn 2", "Turn 3", "Turn 4"]
    with pytest.raises(lm.TurnLimitReached):
        lm.Threads(saver, max_turns=3, on_limit="error").continue_(thread.id)
    budget = lm.Budget.of_window(200_000)
    assert (budget.response, budget.history, budget.files) == (16_000, 50_000, 134_000)
    small = lm.Budget(window=100, response=0, history=16, files=0)
    kept = small.allocate_history(thread.turns())
    assert [turn.said for turn in kept] == ["Turn 3", "Turn 4"]


# -- the fourth design: a manager of sessions ------------------------------------------------------


def test_sessions_are_created_saved_loaded_listed_and_deleted(
    saver: lm.DeltaSaver, clock: Clock, tmp_path: Path
) -> None:
    threads = lm.Threads(saver)
    threads.create("s1", metadata={"user": "ann"})
    history = lm.ThreadChatMessageHistory("s1", saver)
    first = "How do I sort a list? " * 9
    begun = [SystemMessage("Be brief."), HumanMessage(first), AIMessage("sorted()")]
    history.add_messages(begun)
    assert [one.type for one in history.messages] == ["system", "human", "ai"]
    recent = history.window(90, counter=COUNTER)
    assert recent == history.messages[-len(recent) :]  # the newest, not the oldest
    [row] = threads.list(limit=10)
    assert (row.id, row.messages) == ("s1", 3)
    assert row.title[:90] == first[:90]
    assert len(row.title) <= 100
    fork = threads.fork("s1", to="s2")
    assert threads.search("sort a list")[0].thread_id in ("s1", fork.id)
    threads.export_to(tmp_path / "all.jsonl.gz")
    with lm.DeltaSaver.open(":memory:") as other:
        brought = lm.Threads(other).import_from(tmp_path / "all.jsonl.gz", keep_ids=True)
        assert sorted(brought.ids) == ["s1", "s2"]
        threads.archive("s1")
        assert [one.id for one in threads.list()] == ["s2"]
    threads.delete("s1")
    clock.wait(days=31)
    assert threads.prune(older_than=timedelta(days=30)).threads == 1
    assert threads.list() == []


def test_damage_is_logged_and_the_conversation_continues_without_memory(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with lm.DeltaSaver.open(url) as saver:
        lm.Threads(saver).begin("chat").say("Hello")
    change(url, "UPDATE checkpoint SET body = :broken", broken=b"\xff")
    with lm.DeltaSaver.open(url) as saver:
        threads = lm.Threads(saver, on_damage="skip")
        [row] = threads.list()
        assert threads.continue_(row.id, tool="chat").history() == []
        assert row.id in caplog.text


def test_a_database_can_be_encrypted_at_rest(tmp_path: Path) -> None:
    cipher = SimpleNamespace(
        encrypt=lambda plain: ("reversed", plain[::-1]), decrypt=lambda _, text: text[::-1]
    )
    serde = EncryptedSerializer(cipher, lm.DataSerializer())
    with lm.DeltaSaver.open(str(tmp_path / "memory.db"), serde=serde) as saver:
        lm.ThreadChatMessageHistory("s", saver).add_messages([HumanMessage("my secret")])
        assert lm.ThreadChatMessageHistory("s", saver).messages[0].text == "my secret"
    assert all(b"my secret" not in file.read_bytes() for file in tmp_path.iterdir())


def test_several_agents_share_a_database(url: str) -> None:
    def work(number: int) -> None:
        with lm.DeltaSaver.open(url) as saver:
            lm.ThreadChatMessageHistory("s", saver).add_messages([HumanMessage(str(number))])

    with ThreadPoolExecutor(4) as agents:
        list(agents.map(work, range(8)))
    with lm.DeltaSaver.open(url) as saver:
        said = [one.text for one in lm.ThreadChatMessageHistory("s", saver).messages]
        assert sorted(said) == sorted(map(str, range(8)))


def test_the_strategies_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("langmem.yaml").write_text(
        "memory: {enabled: true, max_history_tokens: 4096, auto_prune_days: 30, strategy: simple}"
    )
    settings = lm.Settings()
    assert (settings.max_history_tokens, settings.auto_prune_days) == (4096, 30)
    assert lm.ContextPolicy.from_settings(settings).strategy == "window"
    messages = talk(60)
    important = {"langmem_ext": {"important": True}}
    messages[20] = messages[20].model_copy(update={"additional_kwargs": important})
    for strategy in ("window", "summary", "hybrid"):
        ids = [one.id for one in sent(messages, 2_000, strategy=strategy).messages]
        assert ("20" in ids) == (strategy == "hybrid")


def test_the_commands_of_a_chat(tmp_path: Path) -> None:
    def chat(*words: str, lines: tuple[str, ...]) -> Any:
        given = "".join(f"{line}\n" for line in lines)
        return call(["chat", *words], environment={}, folder=tmp_path, given=given)

    chat("--thread", "order", lines=("I want to check my order",))
    done = chat("--thread", "t2", lines=("hello", "/sessions", "/load order", "/history", "/save"))
    assert "I want to check my order" in done.stdout
    assert done.returncode == 0
    assert "What's your order ID?" in chat("--resume", "order", lines=()).stderr
    done = chat("--continue", lines=("/clear", "/delete order"))
    assert "needs a confirmation" in done.stderr


# -- the fifth design: a structured memory of each conversation ------------------------------------

PLANTS = {
    "main_topics": ["photosynthesis", "plant biology", "gardening"],
    "action": ["observe plants at home", "try growing seeds"],
    "typical_observation": "Shows curiosity about nature and enjoys hands-on learning",
}
DETAILS = "These are some details of the conversation till now."
TOPICS = '`main_topics` is "photosynthesis, plant biology, gardening"'
ACTION = '`action` is "observe plants at home, try growing seeds"'
OBSERVED = f'`typical_observation` is "{PLANTS["typical_observation"]}"'


def test_a_placeholder_becomes_the_memory() -> None:
    for keys, becomes in {
        "": f"{DETAILS} {TOPICS}, {ACTION}, {OBSERVED}.",
        "__main_topics": f"{DETAILS} {TOPICS}.",
        "__main_topics__action": f"{DETAILS} {TOPICS}, {ACTION}.",
        "__invalid_key__main_topics": f"{DETAILS} {TOPICS}.",
    }.items():
        template = f"Context: {{{{CONVERSATION_MEMORY{keys}}}}}"
        assert lm.inject_memory_placeholders(template, PLANTS) == f"Context: {becomes}"
        missing = "Context: Conversation memory not available."
        assert lm.inject_memory_placeholders(template, None) == missing


async def test_a_memory_is_generated_validated_put_and_seen_in_a_prompt(url: str) -> None:
    def coach(saver: Any) -> Any:
        memories, prompts = lm.ConversationMemories(saver), lm.PromptVersions(saver.store)
        model = scripted(lambda asked: "By light.")

        async def answer(state: MessagesState, config: RunnableConfig) -> Any:
            memory = await memories.aget(config["configurable"]["thread_id"])
            version = await prompts.aactive("simplified_conversation")
            text = version.text if version else "Coach."
            prompt = lm.inject_memory_placeholders(text, memory.data if memory else None)
            return {"messages": [await model.ainvoke([SystemMessage(prompt), *state["messages"]])]}

        return chain(answer, saver=saver)

    writer = scripted(lambda asked: json.dumps(PLANTS))
    async with calling(create_app(url, graph=coach, memory=Memory(writer))) as caller:

        async def ask(method: str, path: str, **given: Any) -> Any:
            return (await caller.http.request(method, f"/langmem/{path}", **given)).json()

        async def say(content: str) -> Any:
            body = {"content": content, "purpose": "chat"}
            message = (await ask("POST", "conversations/123/messages", json=body))["message"]
            return await ask("GET", f"messages/{message['id']}/response")

        await say("How do plants grow?")
        done = await ask("POST", "tasks/generate-memory-for-conversation/123?sync=true")
        assert done["result"]["written"] == 1
        memory = await ask("GET", "internal/conversations/123/memory")
        assert memory["memory_data"] == PLANTS
        version = {"prompt_text": "... Context: {{CONVERSATION_MEMORY}} ..."}
        await ask("POST", "prompts/simplified_conversation/versions?set_active=true", json=version)
        answer = await say("Hello")
        [step] = await ask("GET", f"messages/{answer['id']}/pipeline_steps")
        assert f"Context: {DETAILS} {TOPICS}, {ACTION}, {OBSERVED}." in step["prompt"]
        wrong = {"conversation_id": "123", "memory_data": {"main_topics": "plants"}}
        assert (await caller.http.post("/langmem/memories", json=wrong)).status_code == 422
        right = {"conversation_id": "123", "memory_data": {**PLANTS, "action": []}}
        await ask("POST", "memories", json=right)
        memory = await ask("GET", "internal/conversations/123/memory")
        assert memory["memory_data"]["action"] == []


def test_those_that_need_a_memory_are_selected(saver: lm.DeltaSaver) -> None:
    generator = lm.MemoryGenerator(saver, scripted(lambda asked: json.dumps(PLANTS)))
    for name in ("t1", "t2"):
        lm.ThreadChatMessageHistory(name, saver).add_messages([HumanMessage("How?")])
    lm.Threads(saver).create("empty")
    assert generator.needing_memory() == []  # they have not rested yet
    rested = {"idle": timedelta(0)}
    assert len(generator.needing_memory(**rested)) == 2
    assert len(generator.needing_memory(**rested, include_empty=True)) == 3
    assert generator.generate_needing(**rested, clamp=1).written == 1
    assert len(generator.needing_memory(**rested, clamp=-1)) == 1

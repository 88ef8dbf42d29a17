"""A governor that remembers requests sends what one without memory sends."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from talks import outputs, talks, texts

from langmem_ext._internal.stepping import perform
from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.cut.request_cache import RequestMemory
from langmem_ext.context.decisions import RESTORE, ContextEvent
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.summary.with_model import Sending, asking
from langmem_ext.errors import ContextOverflow
from langmem_ext.messages.token_costs.tokens import ApproximateCounter

COUNTER = ApproximateCounter()
POLICIES = [
    ContextPolicy(),
    ContextPolicy(thoughts="compaction", trigger=("tokens", 500)),
    ContextPolicy(strategy="hybrid", thoughts="never"),
    ContextPolicy(strategy="messages", max_messages=8),
]
THOUGHT = {"type": "thinking", "thinking": "why?", "signature": "c2ln"}
ROLES = {"human": HumanMessage, "ai": AIMessage, "system": SystemMessage}


def sent_of(
    messages: Sequence[BaseMessage],
    events: Sequence[ContextEvent],
    memory: RequestMemory | None,
    *,
    budget: int = 1_500,
    **given: Any,
) -> Governed | str:
    """What is sent, or that it does not fit."""
    sending = Sending(
        **{"budget": budget, "counter": COUNTER, "policy": POLICIES[0], **given}, memory=memory
    )
    try:
        return perform(asking(messages, events, sending), str)
    except ContextOverflow as overflow:
        return str(overflow)


@st.composite
def said(draw: st.DrawFn, number: int) -> list[BaseMessage]:
    """What comes next: a message, or a round of calls, as agents and users say it."""
    name = draw(st.sampled_from([f"n{number}", None]))
    match draw(
        st.sampled_from(["human", "ai", "thought", "round", "call", "result", "system", "empty"])
    ):
        case "human":
            return [HumanMessage(draw(texts), id=name)]
        case "ai":
            return [AIMessage(draw(texts), id=name)]
        case "thought":
            return [AIMessage([THOUGHT, {"type": "text", "text": draw(texts)}], id=name)]
        case "call":
            return [
                AIMessage(
                    "",
                    tool_calls=[{"name": "run", "args": {}, "id": f"c{draw(st.integers(0, 3))}"}],
                    id=name,
                )
            ]
        case "result":
            return [ToolMessage(draw(outputs), tool_call_id=f"c{draw(st.integers(0, 3))}", id=name)]
        case "system":
            return [SystemMessage(draw(texts), id=name)]
        case "empty":
            return [
                draw(
                    st.sampled_from(
                        [
                            AIMessage("", id=name),
                            HumanMessage("", id=name),
                            AIMessage([THOUGHT], id=name),
                        ]
                    )
                )
            ]
    call = {"name": "run", "args": {"n": number}, "id": f"c{draw(st.integers(0, 3))}"}
    content = draw(st.sampled_from([[THOUGHT], "I look."]))
    return [
        AIMessage(content, tool_calls=[call], id=name),
        ToolMessage(draw(outputs), tool_call_id=call["id"], id=f"r{number}"),
    ]


@st.composite
def changed(draw: st.DrawFn, message: BaseMessage) -> BaseMessage:
    """The message, with its id, and something else of it."""
    if isinstance(message, ToolMessage) and draw(st.booleans()):
        return message.model_copy(update={"tool_call_id": f"c{draw(st.integers(0, 3))}"})
    what = draw(st.sampled_from(["content", "role", "name", "important", "copy"]))
    if what == "role":
        return ROLES[draw(st.sampled_from(sorted(ROLES)))](message.content, id=message.id)
    new: dict[str, Any] = {
        "content": {"content": draw(texts)},
        "name": {"name": "other"},
        "important": {"additional_kwargs": {"langmem_ext": {"important": True}}},
        "copy": {},
    }[what]
    return message.model_copy(update=new, deep=True)


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(st.data(), st.sampled_from(POLICIES), talks(thinking=True, damaged=True, most_turns=4))
def test_what_is_sent_does_not_depend_on_what_is_remembered(
    data: st.DataObject, policy: ContextPolicy, begun: list[BaseMessage]
) -> None:
    memory = RequestMemory(size=2)
    threads: list[tuple[list[BaseMessage], list[ContextEvent]]] = [(begun, [])]
    for number in range(12):
        at = data.draw(st.integers(0, len(threads) - 1))
        messages, events = threads[at]
        step = data.draw(
            st.sampled_from(["say", "say", "say", "again", "change", "remove", "fork", "restore"])
        )
        place = data.draw(st.integers(0, max(len(messages) - 1, 0)))
        if step == "say":
            messages = [*messages, *data.draw(said(number))]
        elif step == "again":
            messages = copy.deepcopy(messages)
        elif step == "change" and messages:
            messages = [
                *messages[:place],
                data.draw(changed(messages[place])),
                *messages[place + 1 :],
            ]
        elif step == "remove":
            messages = [*messages[:place], *messages[place + 1 :]]
        elif step == "restore":
            events = [*events, RESTORE]
        asked = {
            "policy": policy,
            "provider": data.draw(st.sampled_from([None, None, "openai", "google"])),
            "pins": data.draw(
                st.sampled_from(
                    [(), (), tuple(filter(None, (one.id for one in messages[place : place + 2])))]
                )
            ),
            "params": data.draw(st.sampled_from([{}, {}, {"city": "Ulm"}])),
            "budget": data.draw(st.sampled_from([1_500, 1_500, 700, 30_000])),
        }
        one = sent_of(messages, events, memory, **asked)
        other = sent_of(messages, events, None, **asked)
        assert one == other
        if isinstance(other, Governed):
            # A request may hold an earlier copy of a message, but nothing that a message does not
            # say.
            assert [vars(message) for message in one.messages] == [
                vars(message) for message in other.messages
            ]  # type: ignore[union-attr]
            events = list(other.events)
        if step == "fork":
            threads.append((messages, events))
        threads[at] = (messages, events)

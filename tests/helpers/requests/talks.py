"""Conversations as agents have them: whole ones, and ones that something has gone wrong with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

SENTENCES = (
    "Where is my order? ",
    "The parcel left the warehouse on Tuesday. ",
    "{'status': 'sent', 'items': [1, 2, 3]} ",
    "def total(rows):\n    return sum(row.price for row in rows)\n",
    "订单已经发货，请稍等。",
    "ünïcödé 🙂 שלום ",
    "0123456789abcdef" * 2 + " ",
)
TOOLS = ("find_order", "search", "run")
PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

texts = st.builds(
    lambda start, sentence, times: f"{start} {sentence * times}".strip(),
    st.integers(0, 99),
    st.sampled_from(SENTENCES),
    st.integers(1, 12),
)
outputs = st.one_of(
    texts,
    st.builds(
        lambda sentence, times: sentence * times, st.sampled_from(SENTENCES), st.integers(20, 150)
    ),
    st.sampled_from(["", "ok", "\n"]),
    texts.map(lambda text: [{"type": "text", "text": text}]),
)


@dataclass
class Talk:
    """A conversation while it is made.

    Attributes:
        messages: What was said so far.
        with_ids: Whether messages have ids.
        calls: The ids of the calls so far.
    """

    with_ids: bool = True
    messages: list[BaseMessage] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def say(self, message: BaseMessage) -> None:
        number = len(self.messages)
        self.messages.append(
            message.model_copy(update={"id": f"m{number}"}) if self.with_ids else message
        )


@st.composite
def talks(
    draw: st.DrawFn, *, damaged: bool = False, thinking: bool = False, most_turns: int = 6
) -> list[BaseMessage]:
    """A conversation that ends where a model would be called; a damaged one may end anywhere.

    Args:
        draw: Hypothesis' own.
        damaged: Whether calls lack results, results calls, and more.
        thinking: Whether the assistant's messages may hold reasoning.
        most_turns: How many times the user speaks at most.
    """
    talk = Talk(with_ids=draw(st.booleans()))
    if draw(st.booleans()):
        talk.say(SystemMessage(draw(texts)))
    if damaged and draw(st.booleans()):
        _damage(draw, talk)
    turns = draw(st.integers(1, most_turns))
    for turn in range(turns):
        talk.say(
            HumanMessage(
                [{"type": "text", "text": draw(texts)}, PIXEL]
                if draw(st.integers(0, 9)) == 0
                else draw(texts)
            )
        )
        for _ in range(draw(st.integers(0, 3))):
            _round(draw, talk, damaged, thinking)
        if turn < turns - 1 and (not damaged or draw(st.booleans())):
            talk.say(AIMessage(_thought(draw, draw(texts)) if thinking else draw(texts)))
        if damaged and draw(st.integers(0, 3)) == 0:
            _damage(draw, talk)
    return talk.messages


def _round(draw: st.DrawFn, talk: Talk, damaged: bool, thinking: bool) -> None:
    """An assistant's message with calls, and their results."""
    text = draw(st.sampled_from(["", "I look."]))
    ids = [f"call_{len(talk.calls) + number}" for number in range(draw(st.integers(1, 3)))]
    if talk.calls and draw(st.integers(0, 7)) == 0:
        ids[0] = draw(st.sampled_from(talk.calls))  # some models count anew in every answer
    talk.calls += ids
    calls = [
        {
            "name": draw(st.sampled_from(TOOLS)),
            "args": {"query": draw(texts), "n": len(ids)},
            "id": name,
        }
        for name in ids
    ]
    talk.say(AIMessage(_thought(draw, text) if thinking else text, tool_calls=calls))
    results = [
        ToolMessage(
            draw(outputs),
            tool_call_id=call["id"],
            name=call["name"],
            status=draw(st.sampled_from(["success", "error"])),
        )
        for call in calls
    ]
    if damaged:
        results = _spoilt(draw, results)
    for result in draw(st.permutations(results)) if len(results) > 1 else results:
        talk.say(result)


def _thought(draw: st.DrawFn, text: str) -> Any:
    thought = {"type": "thinking", "thinking": draw(texts), "signature": "c2lnbmF0dXJl"}
    kept = [{"type": "text", "text": text}] if text else []
    return draw(st.sampled_from([text, [thought, *kept]])) if kept or text == "" else text


def _spoilt(draw: st.DrawFn, results: list[ToolMessage]) -> list[ToolMessage]:
    """Results of which some are missing or there twice."""
    what = draw(st.sampled_from(["whole", "whole", "missing", "twice", "none"]))
    if what == "missing":
        return results[1:]
    return {"whole": results, "twice": [*results, results[0]], "none": []}[what]


def _damage(draw: st.DrawFn, talk: Talk) -> None:
    """Something that a provider would refuse."""
    broken = {
        "type": "invalid_tool_call",
        "name": "run",
        "args": "{",
        "id": f"bad_{len(talk.messages)}",
        "error": "no JSON",
    }
    late = [ToolMessage(draw(outputs), tool_call_id=name) for name in talk.calls[-1:]]
    talk.say(
        draw(
            st.sampled_from(
                [
                    AIMessage(""),
                    AIMessage("Hello."),
                    HumanMessage(""),
                    HumanMessage([]),
                    SystemMessage("A rule that was added later."),
                    ToolMessage("of nothing", tool_call_id="unknown"),
                    AIMessage("I look.", invalid_tool_calls=[broken]),
                    AIMessage([{"type": "text", "text": ""}]),
                    *late,
                ]
            )
        )
    )


def looping(times: int, *, changing: bool = False) -> list[BaseMessage]:
    """A turn with `times` equal tool calls; `changing` gives each another result."""
    talk = Talk()
    talk.say(HumanMessage("Is it done?"))
    for number in range(times):
        talk.say(
            AIMessage(
                "",
                tool_calls=[
                    {"name": "run", "args": {"b": 1, "a": number % 1}, "id": f"call_{number}"}
                ],
            )
        )
        talk.say(
            ToolMessage(
                f"not yet {number if changing else ''}" * 20,
                tool_call_id=f"call_{number}",
                name="run",
            )
        )
    return talk.messages

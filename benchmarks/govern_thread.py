"""What choosing a request from 10,000 messages costs, beside LangChain's `trim_messages`.

    python -m benchmarks.govern_thread [--messages 10000] [--turns 50]

A request is chosen again after every turn of a question and an answer, as an agent does. CPU of one
request in milliseconds:

    cold        the first time a `ContextGovernor` sees the thread
    warm        nothing is to be left out anew; the messages are the objects of the turn before, or
    copies as a checkpointer gives them trim        `trim_messages` with tiktoken,
    `strategy="last"`, in the same process

Both count with cl100k_base (the extra `tokens-offline`); the aims are a warm request in 2 ms, and
1/100 of `trim_messages`.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import process_time

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)

from benchmarks.text import texts
from langmem_ext import ContextGovernor, TiktokenCounter

WINDOW = 128_000
"""Tokens of a request: less than the thread costs, as in a thread that has been cut."""

WIDE = 10_000_000
"""Tokens of a request that all of the thread fits in."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=50)
    args = parser.parse_args()
    messages, counter = conversation(args.messages), TiktokenCounter("cl100k_base")
    trimmed = median(trim(messages, counter) for _ in range(3))
    print(
        f"{args.messages:,} messages, {sum(map(counter.count, messages)):,} tokens; trim_messages"
        f" to {WINDOW:,}: {trimmed * 1000:.0f} ms"
    )
    for name, budget in (("cut", WINDOW), ("whole", WIDE)):
        cold, same, copies = governed(messages, budget, args.turns)
        print(
            f"{name:6} cold {cold * 1000:7.1f} ms   warm {same * 1000:6.2f} ms, of copies"
            f" {copies * 1000:6.2f} ms   trim_messages / warm {trimmed / same:6.0f}"
        )
    return 0


def conversation(count: int) -> list[BaseMessage]:
    """Turns of a question, a tool call with its result, and an answer."""
    words = texts((100, 400), seed=7)
    said: list[BaseMessage] = [SystemMessage("You answer customers of a shop.", id="system")]
    while len(said) < count:
        at = len(said)
        call = {"name": "find_order", "args": {"order_id": f"O-{at}"}, "id": f"call-{at}"}
        said += [
            HumanMessage(next(words), id=f"m{at}"),
            AIMessage("", tool_calls=[call], id=f"m{at + 1}"),
            ToolMessage(next(words), tool_call_id=f"call-{at}", name="find_order", id=f"m{at + 2}"),
            AIMessage(next(words), id=f"m{at + 3}"),
        ]
    return [*said, HumanMessage("and the last one?", id="last")]


def governed(messages: list[BaseMessage], budget: int, turns: int) -> tuple[float, float, float]:
    """CPU seconds of the first request, of later ones, and of later ones with copied messages."""
    governor = ContextGovernor(budget=budget, counter=TiktokenCounter("cl100k_base"))
    start = process_time()
    events = governor.govern(messages).events
    cold = process_time() - start
    warm = []
    for copied in (False, True):
        times = []
        for turn in range(turns):
            name = f"{copied}-{turn}"
            messages = [
                *messages,
                AIMessage(f"Answer {turn}.", id=f"a{name}"),
                HumanMessage(f"Question {turn}?", id=f"q{name}"),
            ]
            given = [message.model_copy() for message in messages] if copied else messages
            start = process_time()
            request = governor.govern(given, events)
            spent = process_time() - start
            if (
                not request.plan.added
            ):  # a turn in which something is left out is another measurement
                times.append(spent)
            events = request.events
        warm.append(median(times))
    return cold, warm[0], warm[1]


def trim(messages: list[BaseMessage], counter: TiktokenCounter) -> float:
    start = process_time()
    trim_messages(
        messages,
        max_tokens=WINDOW,
        token_counter=lambda some: sum(map(counter.count, some)),
        strategy="last",
        include_system=True,
    )
    return process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())

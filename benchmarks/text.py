"""The benchmarks' texts: docstrings of the standard library, and messages as providers send."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

MODULES = """
argparse asyncio collections concurrent.futures configparser contextlib csv datetime decimal difflib
email.message enum fractions
functools heapq http.client http.cookies http.server importlib.abc inspect ipaddress itertools json
logging logging.handlers mailbox
multiprocessing.pool numbers optparse os pathlib pdb pickle pprint pydoc queue random re selectors
shelve shlex shutil smtplib socket
socketserver sqlite3 ssl statistics string subprocess tarfile tempfile textwrap threading tokenize
traceback types
unittest.case unittest.mock urllib.parse urllib.request uuid warnings weakref xml.dom.minidom
xml.sax.handler zipfile
"""

Length: TypeAlias = int | tuple[int, int]
"""Characters of a text: so many, or anything between two bounds, on a logarithmic scale."""

Lengths: TypeAlias = tuple[Length, Length]
"""Of a user's and of an agent's message."""

SHORT: Lengths = (180, 280)
LONG: Lengths = (2000, 2000)


PIECE = 12
"""Words that stay together, in their order."""


@cache
def pieces() -> tuple[str, ...]:
    """Every docstring of the modules, once, cut into pieces of some words."""
    found: dict[str, None] = {}
    for name in MODULES.split():
        for _, thing in sorted(vars(importlib.import_module(name)).items()):
            found.update(dict.fromkeys(_docstrings(thing)))
    cut = [
        words[at : at + PIECE]
        for words in map(str.split, found)
        for at in range(0, len(words), PIECE)
    ]
    return tuple(" ".join(words) + " " for words in cut)


def _docstrings(thing: Any) -> Iterator[str]:
    if callable(thing):
        yield inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        for _, member in sorted(vars(thing).items()):
            if callable(member):
                yield inspect.getdoc(member) or ""


def texts(length: Length, *, seed: int = 0) -> Iterator[str]:
    """Endless texts of a length; each round over the pieces has its own order."""
    more, chance = _shuffled(random.Random(seed)), random.Random(seed)
    shortest, longest = (length, length) if isinstance(length, int) else length
    while True:
        end = round(shortest * (longest / shortest) ** chance.random())
        text = ""
        while len(text) < end:
            text += next(more)
        yield text[:end]


def _shuffled(chance: random.Random) -> Iterator[str]:
    while True:
        order = list(pieces())
        chance.shuffle(order)
        yield from order


def humans(characters: Lengths) -> Iterator[HumanMessage]:
    """What the user says."""
    return (HumanMessage(text) for text in texts(characters[0], seed=1))


def replies(characters: Lengths, *, rich: bool) -> Iterator[AIMessage]:
    """The agent's replies; `rich` ones carry ids, usage and metadata as a provider's do."""
    said = texts(characters[1], seed=2)
    return (
        AIMessage(text, **_provided(number)) if rich else AIMessage(text)
        for number, text in enumerate(said)
    )


def _provided(number: int) -> dict[str, Any]:
    """What langchain-openai puts into a message, with other numbers in each."""
    chance = random.Random(number)
    asked, cached, said = (
        400 + 35 * (number % 900) + chance.randrange(90),
        128 * chance.randrange(8),
        chance.randrange(20, 400),
    )
    return {
        "id": f"lc_run--{UUID(int=chance.getrandbits(128), version=4)}",
        "additional_kwargs": {"refusal": None},
        "usage_metadata": {
            "input_tokens": asked,
            "output_tokens": said,
            "total_tokens": asked + said,
            "input_token_details": {"audio": 0, "cache_read": cached},
            "output_token_details": {"audio": 0, "reasoning": 0},
        },
        "response_metadata": {
            "token_usage": {
                "completion_tokens": said,
                "prompt_tokens": asked,
                "total_tokens": asked + said,
                "completion_tokens_details": {
                    "accepted_prediction_tokens": 0,
                    "audio_tokens": 0,
                    "reasoning_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
                "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": cached},
            },
            "model_provider": "openai",
            "model_name": "gpt-4o-mini-2024-07-18",
            "system_fingerprint": "fp_0ba0d124f1",
            "id": (
                "chatcmpl-"
                + "".join(
                    chance.choices(
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=29
                    )
                )
            ),
            "service_tier": "default",
            "finish_reason": "stop",
            "logprobs": None,
        },
    }


def dialogue(messages: int, characters: Lengths = SHORT, *, rich: bool = False) -> list[AnyMessage]:
    """The first messages of a conversation, to begin a thread with."""
    pairs = zip(humans(characters), replies(characters, rich=rich), strict=True)
    return list(islice((message for pair in pairs for message in pair), messages))


def raw_bytes(messages: Iterable[BaseMessage]) -> list[int]:
    """The bytes of each message by LangGraph's serializer: the least that storing it once takes."""
    serde = JsonPlusSerializer()
    return [len(serde.dumps_typed(message)[1]) for message in messages]

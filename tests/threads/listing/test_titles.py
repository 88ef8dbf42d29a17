"""Promises of titles by a model: better than the first prompt, never instead of what somebody has
said, and no secret is shown to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from patience import PATIENCE_S
from prune_reference import assert_sound
from savers import Backend, Calls, Mode

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    TitleWriter,
)

HIDDEN = "•••"


class ScriptedModel(GenericFakeChatModel):
    """A chat model that gives the next of its answers, and remembers what it was asked."""

    asked: list[list[BaseMessage]] = []

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *args, **kwargs)


class FailingModel(ScriptedModel):
    """A chat model that has no connection, and says what it was asked when it fails."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"no connection for {messages[-1].text}")


def model(*answers: str) -> ScriptedModel:
    return ScriptedModel(messages=iter([AIMessage(answer) for answer in answers]))


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(backend.new_url(tmp_path), synchronous="normal") as saver:
        yield saver


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def say(saver: DeltaSaver, *texts: str, thread: str = "t", **notes: Any) -> None:
    kwargs: Any = {"langmem_ext": notes} if notes else {}
    said = [
        HumanMessage(text, additional_kwargs=kwargs) if at % 2 == 0 else AIMessage(text)
        for at, text in enumerate(texts)
    ]
    ThreadChatMessageHistory(thread, saver).add_messages(said)


async def test_a_model_names_a_thread_by_its_first_exchange(
    saver: DeltaSaver, calls: Calls
) -> None:
    say(saver, "hi, ehm, where is my lamp?", "On its way.", "and my table?", "Also.")
    scripted = model('\nTitle: "The lost lamp."\n')
    named = await calls.call(TitleWriter(Threads(saver), scripted), "write", "t")
    assert named.title == Threads(saver).get("t").title == "The lost lamp"
    [[instruction, shown]] = scripted.asked
    assert isinstance(instruction, SystemMessage)
    assert shown.text == "User: hi, ehm, where is my lamp?\n\nAssistant: On its way."
    assert_sound(saver)


async def test_what_somebody_has_called_a_thread_stays(saver: DeltaSaver, calls: Calls) -> None:
    say(saver, "where is my lamp?")
    say(saver, "and my table?", thread="u")
    threads = Threads(saver)
    threads.rename("t", "My own title")
    scripted = model("Another one")
    assert (await calls.call(TitleWriter(threads, scripted), "write", "t")).title == "My own title"
    assert scripted.asked == []

    class Slow(ScriptedModel):
        """A chat model during whose answer somebody names the thread."""

        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
            threads.rename("u", "Named meanwhile")
            return super()._generate(messages, *args, **kwargs)

    slow = TitleWriter(threads, Slow(messages=iter([AIMessage("Too late")])))
    assert slow.write("u").title == "Named meanwhile"


async def test_a_model_is_shown_no_sensitive_value(saver: DeltaSaver, calls: Calls) -> None:
    say(saver, "my pin is 1234", "Thank you.", sensitive=["pin"], spans=[[10, 14]])
    say(saver, "4111 1111", thread="hidden", sensitive=["card"])
    scripted = model("A pin", "A card")
    writer = TitleWriter(Threads(saver), scripted)
    assert (await calls.call(writer, "write", "t")).title == "A pin"
    assert (await calls.call(writer, "write", "hidden")).title == HIDDEN
    assert [messages[-1].text for messages in scripted.asked] == [
        f"User: my pin is {HIDDEN}\n\nAssistant: Thank you."
    ]


def test_whatever_a_model_answers_a_title_is_one_short_line(saver: DeltaSaver) -> None:
    answers = [("", "the prompt"), (" \n''\n", "the prompt"), ("“Ein Titel”", "Ein Titel")]
    for number, (answer, title) in enumerate([*answers, ("x " * 300, None)]):
        say(saver, "the prompt", thread=f"t{number}")
        named = TitleWriter(Threads(saver), model(answer)).write(f"t{number}").title
        assert named is not None
        assert len(named) <= 100
        assert title is None or named == title


def test_titles_are_written_in_the_background_and_what_fails_leaves_the_title(
    saver: DeltaSaver, caplog: pytest.LogCaptureFixture
) -> None:
    say(saver, "the first prompt")
    say(saver, "another prompt", thread="u")
    threads = Threads(saver)
    with TitleWriter(threads, model("A title")) as writer:
        assert (named := writer.submit("t").result(PATIENCE_S)) is not None
        assert named.title == "A title"
    with (
        TitleWriter(threads, FailingModel(messages=iter([]))) as writer,
        caplog.at_level(logging.WARNING),
    ):
        assert writer.submit("u").result(PATIENCE_S) is None
    assert threads.get("u").title == "another prompt"
    assert "RuntimeError" in caplog.text
    assert "another prompt" not in caplog.text


async def test_what_cannot_be_named_is_one_clear_error(saver: DeltaSaver, calls: Calls) -> None:
    with pytest.raises(ThreadNotFound):
        await calls.call(TitleWriter(Threads(saver), model()), "write", "nobody")
    with pytest.raises(InvalidInput, match="instruction"):
        TitleWriter(Threads(saver), model(), instruction=" ")
    with pytest.raises(InvalidInput):
        TitleWriter(Threads(saver), "nobody:nothing")

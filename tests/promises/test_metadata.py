"""Promise: secrets in `configurable` do not become metadata, and everything else does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from langmem_ext import DeltaSaver

PLAIN = {
    "author": "ann",
    "max_tokens": 9,
    "total_tokens": 9,
    "monkey": "m",
    "keyboard": "k",
    "tokenizer": "t",
    "authority": "a",
    "patient": "p",
    "langgraph_auth_user_id": "u",
    "spinner": "s",
}
SECRET = {
    "pat": "x",
    "github_pat": "x",
    "ssn": "x",
    "api_key": "x",
    "openai-key": "x",
    "apikey": "x",
    "password": "x",
    "access_token": "x",
    "access_tokens": "x",
    "authToken": "x",
    "basic_auth": "x",
    "client_secret": "x",
    "GITHUB_TOKEN": "x",
    "dbPwd": "x",
    "PIN2": "x",
}


def graph(saver: DeltaSaver) -> Any:
    builder = StateGraph(MessagesState).add_node("a", lambda _: {}).add_edge(START, "a")
    return builder.compile(checkpointer=saver)


def invoke(compiled: Any, **configurable: Any) -> None:
    compiled.invoke({"messages": ["hi"]}, {"configurable": {"thread_id": "t", **configurable}})


def test_names_are_secret_by_their_whole_words() -> None:
    with DeltaSaver() as saver:
        invoke(graph(saver), **PLAIN, **SECRET)
        found = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert found is not None
        assert found.metadata.items() >= PLAIN.items()
        assert SECRET.keys().isdisjoint(found.metadata)


async def test_a_name_that_is_left_out_is_told_once_and_so_is_a_filter_on_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DeltaSaver() as saver, caplog.at_level(logging.WARNING, "langmem_ext"):
        for _ in range(3):
            invoke(graph(saver), partner_secret="x")
        assert caplog.text.count("'partner_secret' looks like the name of a secret") == 1
        assert [found async for found in saver.alist(None, filter={"partner_pin": "x"})] == []
        assert [*saver.list(None, filter={"partner_pin": "x"})] == []
        assert caplog.text.count("'partner_pin' looks like the name of a secret") == 1
        assert "metadata_keys" in caplog.text


def test_names_that_are_given_are_taken_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "langmem_ext"):
        saver = DeltaSaver(DeltaSaver().log, metadata_keys=["routing_key"])
        invoke(graph(saver), routing_key="r", author="ann")
        [*found] = saver.list(None, filter={"routing_key": "r"})
        assert found
        assert "author" not in found[0].metadata
    assert caplog.records == []

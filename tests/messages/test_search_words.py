"""Promises of search words and queries: any text is data; matches are a reader's."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import normalize

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from repository import ROOT

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

SEARCHES = yaml.safe_load((ROOT / "tests/cases/searches.yaml").read_text("utf-8"))["cases"]
SCRIPTS = st.sampled_from(
    "abzABZ019 _-\"'*:^()+.é̈ßİıŉǅ½ﬁ①½東京都がガカか한국어ㅎสวัสดีहिन्दीعَرَبِיּם\u200d\u00ad😀\U00020000"
)
LOST = dict.fromkeys(map(ord, '"“”„«»'), " ")


@pytest.fixture(scope="module")
def threads() -> Iterator[Threads]:
    with DeltaSaver() as saver:
        yield Threads(saver)


def found(threads: Threads, text: str, query: str) -> list[str] | None:
    """What of a message is highlighted by a search; None if it is not found."""
    thread = threads.begin()
    thread.add(HumanMessage(text))
    hits = threads.search(query, thread=thread.id)
    threads.delete(thread.id)
    return [hit.snippet[start:end] for hit in hits for start, end in hit.highlights] or (
        [] if hits else None
    )


def test_a_text_is_found_and_shown_where_it_stands_however_it_is_written(threads: Threads) -> None:
    for case in SEARCHES["Is found"]:
        for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
            text, query = normalize(form, case["text"]), normalize(other, case["query"])  # type: ignore[arg-type]
            shown = found(threads, text, query)
            assert shown, case
            if "shown" in case:
                assert normalize("NFC", "|".join(shown)) == normalize("NFC", case["shown"]), case
    for case in SEARCHES["Is not found"]:
        assert found(threads, case["text"], case["query"]) is None, case


@given(st.text(SCRIPTS, max_size=40))
def test_a_text_finds_itself_and_case_does_not_count(text: str) -> None:
    plain = f"lantern {text}".translate(LOST)
    with DeltaSaver() as saver:
        threads = Threads(saver)
        assert found(threads, plain, f'"{plain}"') is not None
        assert found(threads, plain.upper(), "LANTERN") == found(threads, "LANTERN", "lantern")


def test_a_snippet_is_a_piece_of_a_long_text(threads: Threads) -> None:
    thread = threads.begin()
    text = "and so on " * 300 + "a lantern for the cellar" + " and so on" * 300
    thread.add(HumanMessage(text))
    [hit] = threads.search("lantern cellar", thread=thread.id)
    assert len(hit.snippet) < 400
    assert hit.snippet.strip("… ") in text
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["lantern", "cellar"]


def test_many_words_are_no_error(threads: Threads) -> None:
    for query in (
        " ".join(f"word{number}" for number in range(500)),
        "東京都庁" * 500,
        "-" * 20_000 + "word",
        "one " + "x" * 1_000_000,
    ):
        assert threads.search(query) == []
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("x" * 1_000_000)])
        assert len(Threads(saver).search("x" * 1_000_000)) == 1

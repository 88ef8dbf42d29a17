"""Promises of search words and queries: any text is data; matches are a reader's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langmem_ext.messages.search.query import (
    MOST_WORDS,
    SNIPPET,
    Term,
    cut_snippet,
    find_places,
    has_all,
    plan_query,
    rank,
    weigh,
)
from langmem_ext.messages.search.words import LONGEST, list_words, place_words
from langmem_ext.storage.search.find import _match

SCRIPTS = st.sampled_from(
    "abzABZ019"
    " _-\"'*:^()+.é̈ßİıŉǅ½ﬁ①½東京都がガカか한국어ㅎสวัสดีहिन्दीعَرَبِיּם\u200d\u00ad\0\ud800😀\U00020000"
)
texts = st.one_of(
    st.text(max_size=40),
    st.text(SCRIPTS, max_size=40),
    st.lists(st.sampled_from(["order", "late", "the", "東京"])).map(" ".join),
)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Where is my ORDER?", "order"),
        ("Where is my order?", "order whe"),
        ("Über die Brücke", "uber brucke"),
        ("uber die brucke", "Über BRÜCKE"),
        ("the café’s menu", "CAFE menu"),
        ("Straße", "STRASSE"),
        ("it is a state-of-the-art thing", '"state of the art"'),
        ("order 4711-12", '"4711 12"'),
        ("我要查询订单状态", "订单"),
        ("我要查询订单状态", "查询订单状态"),
        ("我要查询订单状态", "态"),
        ("我的iPhone手机坏了", "iphone手机"),
        ("東京タワーへ行きたい", "タワー"),
        ("주문번호를 알려 주세요", "번호"),
        ("สวัสดีครับ", "ดีครับ"),
        ("मुझे हिन्दी आती है", "हिन्दी"),
        ("ordering", "order"),
    ],
)
def test_a_text_is_found(text: str, query: str) -> None:
    terms = plan_query(query)
    assert terms
    assert has_all(list_words(text), terms)
    assert find_places(text, terms)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the orders are late", "order late"),
        ("disorder", "order"),
        ("art of the state", '"state of the art"'),
        ("ordering", '"order"'),
        ("東京。京都", "京京"),
        ("東。京", "東京"),
        ("タワー", "タウ"),
        ("か", "が"),
    ],
)
def test_another_text_is_not_found(text: str, query: str) -> None:
    assert not has_all(list_words(text), plan_query(query))


@given(texts)
def test_both_ways_of_taking_words_are_one(text: str) -> None:
    words = list(place_words(text))
    assert list_words(text) == (f" {' '.join(word.word for word in words)} " if words else "")
    assert all(
        0 <= word.start < word.end <= len(text) and 0 < len(word.word) <= LONGEST for word in words
    )


@given(texts)
@example("어京ּ")  # decomposed, it is of letters between which no script is cut from another
@example("東京か\u3099")
@example("\uf937京")
@example("ᬆ")
def test_case_and_the_way_of_writing_do_not_count(text: str) -> None:
    composed, decomposed = normalize("NFC", text), normalize("NFD", text)
    assert list_words(decomposed) == list_words(composed) == list_words(text)
    assert plan_query(decomposed) == plan_query(composed) == plan_query(text)
    ascii_text = text.encode("ascii", "ignore").decode()
    assert list_words(ascii_text.upper()) == list_words(ascii_text.lower())


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("정말 어제 東京에서 주문했어요", "어제", "어제"),
        ("어京ּ 한국어", "어京", "어京"),
        ("東京でガスを止めたい", "ガス", "ガス"),
        ("Tôi muốn biết đơn hàng ở đâu", "muon biet", "muốn|biết"),
    ],
)
def test_a_text_is_found_and_shown_where_it_stands_however_it_is_written(
    form: Literal["NFC", "NFD"], text: str, query: str, shown: str
) -> None:
    written = normalize(form, text)
    places = find_places(written, plan_query(normalize("NFD" if form == "NFC" else "NFC", query)))
    assert normalize("NFC", "|".join(written[start:end] for start, end in places)) == normalize(
        "NFC", shown
    )


@given(texts, texts)
def test_what_fts5_finds_is_what_the_words_say_for_any_text_and_query(
    text: str, query: str
) -> None:
    terms, words = plan_query(query), list_words(text)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE search USING fts5(words, columnsize = 0, tokenize = 'ascii')"
        )
        connection.execute("INSERT INTO search VALUES (?)", (words,))
        if terms:
            found = bool(
                connection.execute(
                    "SELECT 1 FROM search WHERE search MATCH ?", (_match(terms),)
                ).fetchall()
            )
            patterns = " AND ".join("instr(words, ?)" for _ in terms)
            read = bool(
                connection.execute(
                    f"SELECT 1 FROM search WHERE {patterns}", [term.pattern for term in terms]
                ).fetchall()
            )
            assert found is read is has_all(words, terms)
            assert bool(find_places(text, terms[:1])) >= found


@given(texts, st.integers(0, 40), st.integers(1, 40))
def test_a_part_of_a_text_finds_the_text(text: str, start: int, length: int) -> None:
    whole = [match for match in "東京都庁前駅が混雑しています"]
    part = "".join(whole[start % len(whole) :][:length])
    assert has_all(list_words(text + "".join(whole) + text), plan_query(part))


@given(texts)
def test_a_quoted_text_finds_itself(text: str) -> None:
    plain = text.translate(dict.fromkeys(map(ord, '"“”„«»'), " "))
    terms = plan_query(f'"{plain}"')
    assert has_all(list_words(plain), terms)
    assert sum(len(term.words.split()) for term in terms) <= MOST_WORDS


@given(texts, texts, st.integers(0, 300))
def test_a_snippet_is_a_piece_of_the_text_and_its_highlights_stand_in_it(
    text: str, query: str, apart: int
) -> None:
    whole = "and so on " * apart + text + " and so on" * apart
    terms = plan_query(query)
    snippet, highlights = cut_snippet(whole, terms)
    assert len(snippet) <= SNIPPET + 2 + 64
    assert all(0 <= start < end <= len(snippet) for start, end in highlights)
    assert list(highlights) == sorted(highlights)
    assert bool(highlights) == bool(find_places(whole, terms))


def test_many_words_are_no_error() -> None:
    terms = plan_query(" ".join(f"word{number}" for number in range(500)))
    assert len(terms) == MOST_WORDS
    assert len(plan_query("東京都庁" * 500)[0].words.split(" ")) == MOST_WORDS
    assert plan_query("-" * 20_000 + "word") == ()
    assert [len(term.words) for term in plan_query("one " + "x" * 10_000_000)] == [3, LONGEST]


def test_what_is_rare_and_what_is_short_rank_first() -> None:
    terms = (Term("the"), Term("parcel"))
    weights = weigh([900, 3], 1000)
    assert weights[1] > weights[0] > 0
    often, rare, long = (
        " the the the parcel ",
        " the parcel parcel parcel ",
        f" the parcel {'and ' * 50}",
    )
    ranks = rank([often, rare, long], terms, weights)
    assert ranks[1] > ranks[0] > ranks[2] > 0

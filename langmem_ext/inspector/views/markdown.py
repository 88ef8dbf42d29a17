"""Markdown becomes safe HTML: no raw HTML, no remote images, no script links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

LONGEST: Final = 60_000
"""Characters that are read as Markdown: what is longer is shown as it stands."""

MARKS: Final = "[]!<>*_`~"
"""Characters that make Markdown's reader look far ahead or far back."""

SCHEMES: Final = ("http", "https", "mailto")


class _Renderer(RendererHTML):
    """Images become links: a page asks nothing of the network."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        source = str(token.attrGet("src") or "")
        label = escape(token.content or "image")
        return (
            '<a class="remote" rel="noopener noreferrer nofollow"'
            f' href="{escape(source)}">{label}</a>'
            if _is_web(source)
            else str(label)
        )

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        tokens[idx].attrSet("rel", "noopener noreferrer nofollow")
        return self.renderToken(tokens, idx, options, env)


def _is_web(address: str) -> bool:
    try:
        return urlsplit(address.strip()).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _reader() -> MarkdownIt:
    reader = MarkdownIt(
        "commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer
    ).enable(["table", "strikethrough"])
    setattr(reader, "validateLink", _is_web)  # noqa: B010 - a method, which the library says to replace
    return reader


_READER: Final = _reader()


def _work(text: str) -> int:
    """How much a text asks of the reader: marks, lines, and the cells that its tables may have."""
    blocks = (block.split("\n") for block in text.split("\n\n"))
    lines = sum(len(rows) * (2 + max(row.count("|") for row in rows)) for rows in blocks)
    return lines + sum(map(text.count, MARKS))


def rendered(text: str) -> Markup:
    """A text as HTML; one that is very long, or of little but marks, as it stands.

    The reader's time grows with the square of some marks, and a short row of a table gets all
    cells of its header.
    """
    if len(text) > LONGEST or _work(text) > 300 + min(len(text) // 8, 1500):
        return Markup('<pre class="plain">{}</pre>').format(text)
    environment: dict[str, Any] = {}
    return Markup(_READER.render(text, environment))  # the reader escapes all that it is given

"""Web addresses, as written (`www.example.com/x`) or spelled out ("example dot com slash x").

The normal form has a scheme and its host in small letters: `https://www.example.com/x`.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, outside
from langmem_ext.waiting.extract.codes.email import emails
from langmem_ext.waiting.extract.reply import Reply

_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_HOST = rf"(?:{_LABEL}\.){{1,8}}[^\W\d_]{{2,24}}"
_REST = r"(?::\d{1,5})?(?:[/?#][^\s<>\"“”]{0,2000})?"
_IP = r"\d{1,3}(?:\.\d{1,3}){3}"
_WRITTEN = re.compile(
    rf"(?<![\w@./-])(?:(?P<scheme>https?://)(?:{_HOST}|localhost|{_IP}){_REST}"
    rf"|(?P<www>www\.)?{_HOST}(?![\w@-]){_REST})",
    re.I,
)
_SPELLED = re.compile(
    rf"\b{_LABEL}(?:\s+dot\s+{_LABEL}){{1,6}}(?:\s+slash\s+[\w-]+){{0,6}}\b", re.I
)
_NO_SITES = frozenset(
    [
        "pdf",
        "doc",
        "docx",
        "txt",
        "jpg",
        "jpeg",
        "png",
        "gif",
        "xls",
        "xlsx",
        "csv",
        "zip",
        "py",
        "md",
        "html",
    ]
)
"""Ends of names of files."""


def address_of(written: str) -> str | None:
    """The address in its normal form; None where the text is not one."""
    full = written if re.match(r"https?://", written, re.I) else f"https://{written}"
    try:
        parts = urlsplit(full)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or re.search(r"\s", full):
        return None
    host = parts.hostname if port is None else f"{parts.hostname}:{port}"
    return parts._replace(scheme=parts.scheme.lower(), netloc=host).geturl()


def urls(text: str, *, bare: bool = True) -> list[Candidate]:
    """The addresses of `text`, in its order.

    Args:
        text: The message.
        bare: Whether a host without a scheme and without `www` is one ("example.com").
    """
    candidates = []
    for match in _WRITTEN.finditer(text):
        end = match.start() + len(_without_ending(match.group()))
        written = text[match.start() : end]
        marked = match["scheme"] or match["www"]
        is_file = written.lower().rpartition(".")[2] in _NO_SITES
        if not marked and "/" not in written and (not bare or is_file):
            continue  # a host alone may be anything: "at 5.pm"
        value = address_of(written)
        if value:
            candidates.append(
                Candidate(match.start(), end, value, 0.98 if marked else 0.9, reason="web address")
            )
    candidates = outside(candidates, [(mail.start, mail.end) for mail in emails(text)])
    if candidates or not bare:
        return candidates
    for match in _SPELLED.finditer(text):
        value = address_of(
            re.sub(
                r"\s+slash\s+",
                "/",
                re.sub(r"\s+dot\s+", ".", match.group(), flags=re.I),
                flags=re.I,
            )
        )
        if value:
            candidates.append(
                Candidate(
                    match.start(), match.end(), value.lower(), 0.8, reason="web address spelled out"
                )
            )
    return candidates


def _without_ending(written: str) -> str:
    """The address without closing punctuation, except for a bracket that it opens itself."""
    while written[-1] in ".,;:!?'’*_" or (
        written[-1] == ")" and written.count(")") > written.count("(")
    ):
        written = written[:-1]
    return written


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The addresses of a reply; without a question only those with a scheme or `www`."""
    return urls(reply.text, bare=not reply.strict)

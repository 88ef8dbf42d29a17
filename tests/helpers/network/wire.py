"""PostgreSQL's protocol, version 3, as a proxy reads it: message starts, questions, answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
QUERY, EXECUTE, SYNC, FLUSH, CALL, READY = b"Q"[0], b"E"[0], b"S"[0], b"H"[0], b"F"[0], b"Z"[0]


class Messages:
    """Finds the types of messages in a stream, into whatever pieces it is cut."""

    def __init__(self) -> None:
        self._head = b""
        self._rest = 0

    def feed(self, data: bytes) -> Iterator[int]:
        """The types of the messages that begin in a piece, once five bytes are there."""
        at = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
                at += step
                continue
            missing = 5 - len(self._head)
            self._head += data[at : at + missing]
            at += missing
            if len(self._head) == 5:
                kind, self._rest, self._head = (
                    self._head[0],
                    int.from_bytes(self._head[1:], "big") - 4,
                    b"",
                )
                yield kind


class Greeting:
    """What a client says before its messages have types."""

    def __init__(self) -> None:
        self.over = False
        self._held = b""

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """What is to be forwarded of a piece, and how many encryption requests to refuse."""
        self._held += data
        refused = 0
        while not self.over and len(self._held) >= 8:
            length, code = (
                int.from_bytes(self._held[:4], "big"),
                int.from_bytes(self._held[4:8], "big"),
            )
            if code in (SSL_REQUEST, GSS_REQUEST):
                self._held = self._held[8:]
                refused += 1
            elif len(self._held) < length:
                break
            else:
                self.over = True
        if not self.over:
            return b"", refused
        passed, self._held = self._held, b""
        return passed, refused


@dataclass(frozen=True)
class Counts:
    """What has gone through.

    Attributes:
        trips: How often a client began to wait: it asked for an answer (a Sync, a simple query, a
            Flush) while none was under way.
        syncs: Pipelines and statements that ended: Syncs and simple queries.
        statements: Statements executed; a simple query is one.
        bytes_up: From clients to the server.
        bytes_down: From the server to clients.
        connections: Connections that clients opened.
    """

    trips: int = 0
    syncs: int = 0
    statements: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    connections: int = 0

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(
            *(now - then for now, then in zip(astuple(self), astuple(earlier), strict=True))
        )


class Meter:
    """Counts the messages of one connection into what all have in common."""

    def __init__(self, total: dict[str, int]) -> None:
        self._total = total
        self._up, self._down = Messages(), Messages()
        self._unanswered = 0
        self._flushed = False

    def up(self, data: bytes) -> None:
        """Something has come from the client."""
        for kind in self._up.feed(data):
            if kind in (QUERY, EXECUTE, CALL):
                self._total["statements"] += 1
            if kind not in (QUERY, SYNC, CALL, FLUSH):
                continue
            self._total["trips"] += not (self._unanswered or self._flushed)
            if kind == FLUSH:
                self._flushed = True
            else:
                self._total["syncs"] += 1
                self._unanswered += 1

    def down(self, data: bytes) -> None:
        """Something is handed to the client."""
        # The first ReadyForQuery answers the greeting.
        self._unanswered = max(
            0, self._unanswered - sum(kind == READY for kind in self._down.feed(data))
        )
        self._flushed = False

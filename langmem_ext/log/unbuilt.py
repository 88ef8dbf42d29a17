"""Values of classes as another checkpointer packed them, stored again without being built.

A process that moves a thread need not have the application's classes, and must not run them. What
a row names is kept as it is; the reader's policy decides what is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ormsgpack

from langmem_ext.messages.packed import pack


class Unbuilt:
    """A value of some class as LangGraph's serializer packed it, with what is to be lifted out.

    Attributes:
        code: LangGraph's extension code.
        content: Module, name, payload, and for some codes a method; or the payload alone.
    """

    __slots__ = ("code", "content")

    def __init__(self, code: int, content: Any) -> None:
        self.code = code
        self.content = content

    def packed(
        self, default: Callable[[Any], Any], mark: Callable[[Any], Any] | None = None
    ) -> ormsgpack.Ext:
        """As it was packed.

        Args:
            default: Packs what msgpack does not know.
            mark: Marks, in the payload, what `default` lifts out.
        """
        content = self.content
        if mark is not None and type(content) is list and len(content) > 2:
            content = [*content[:2], mark(content[2]), *content[3:]]
        return ormsgpack.Ext(self.code, pack(content, default))

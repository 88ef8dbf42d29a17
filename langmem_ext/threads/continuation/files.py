"""Files of a conversation: messages refer to them, so that each content is sent once.

A changed file is sent again; an unchanged one is not, whatever its path.

A content is identified by its SHA-256 and is in one message of the thread. Later messages refer to
it. If that message is not among those that are shown, the first shown message that refers to it
shows the content instead: the view changes, the log does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.annotations import FileReference, files_of

LONGEST_PATH: Final = 4096
"""The maximum number of characters of a path."""


@dataclass(frozen=True, slots=True)
class TurnFile:
    """A file with its content.

    Attributes:
        path: Its name in the conversation; it is never looked for on a disk.
        content: Its text.
        sha256: The content's hash.

    Raises:
        InvalidInput: The path is not text of one line, or the content is not text.
    """

    path: str
    content: str = field(repr=False)

    def __post_init__(self) -> None:
        checked_path(self.path)
        if not isinstance(self.content, str):
            raise InvalidInput(
                f"the content of {self.path!r} is not text: decode it, or pass it as a content"
                " block of your own message"
            )

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, in hexadecimal digits."""
        return sha256(self.content.encode("utf-8", "replace")).hexdigest()


Files: TypeAlias = Iterable[TurnFile | str]
"""Files with their contents, and paths of files that are only named."""


def read_file(path: str | PathLike[str], *, name: str | None = None) -> TurnFile:
    """Read a file from the disk: nothing else here does.

    Args:
        path: The file.
        name: Its name in the conversation. Default: its path.

    Raises:
        InvalidInput: The file does not exist, or is not UTF-8 text.
    """
    try:
        content = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(
            f"the file {str(path)!r} cannot be read as text: {type(error).__name__}"
        ) from error
    return TurnFile(name or str(path), content)


def checked_path(path: object) -> str:
    """A valid path.

    Raises:
        InvalidInput: It is not text of one line.
    """
    if (
        not isinstance(path, str)
        or not path.strip()
        or len(path) > LONGEST_PATH
        or "\0" in path
        or len(path.splitlines()) > 1
    ):
        raise InvalidInput(
            f"a file must be a TurnFile, or a path of 1 to {LONGEST_PATH} characters, in one line"
        )
    return path


# -- content of a message --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What a turn with some files would send.

    Attributes:
        send: The files whose content the thread does not have.
        known: The files whose content it has, or gets with one of `send`.
        named: The files of which only the path is passed.
    """

    send: tuple[TurnFile, ...] = ()
    known: tuple[FileReference, ...] = ()
    named: tuple[FileReference, ...] = ()


def plan_files(files: Files, sent: Iterable[str] = ()) -> FilePlan:
    """Which of some files must be sent, and which not.

    Args:
        files: The files.
        sent: The SHA-256 of each content that the thread has.

    Raises:
        InvalidInput: A file is invalid.
    """
    seen = set(sent)
    send: list[TurnFile] = []
    known: list[FileReference] = []
    named: list[FileReference] = []
    for file in checked_files(files):
        if isinstance(file, str):
            named.append(FileReference(file))
        elif file.sha256 in seen:
            known.append(FileReference(file.path, file.sha256))
        else:
            seen.add(file.sha256)
            send.append(file)
    return FilePlan(tuple(send), tuple(known), tuple(named))


def checked_files(files: Files) -> list[TurnFile | str]:
    """Files, each of them once.

    Raises:
        InvalidInput: A file is invalid.
    """
    if isinstance(files, str | TurnFile | Mapping):
        raise InvalidInput("files must be a list: pass [file]")
    return list(
        dict.fromkeys(file if isinstance(file, TurnFile) else checked_path(file) for file in files)
    )


def message_content(
    text: str, files: Files, sent: Mapping[str, str]
) -> tuple[str | list[str | dict[str, Any]], list[dict[str, Any]]]:
    """The content of a message that refers to files, and the notes about these.

    Args:
        text: The message's text.
        files: The files.
        sent: The path under which a content was sent, by its SHA-256.
    """
    known = dict(sent)
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": text}]
    notes = []
    for file in checked_files(files):
        if isinstance(file, str):
            notes.append(FileReference(file).note())
            continue
        digest = file.sha256
        again = digest in known
        tale = (
            _reference(file.path, digest, known[digest])
            if again
            else _whole(file.path, digest, _fenced(file.content))
        )
        notes.append(FileReference(file.path, digest, len(blocks), again).note())
        blocks.append({"type": "text", "text": tale})
        known.setdefault(digest, file.path)
    return (text if len(blocks) == 1 else blocks), notes


def contents_in(messages: Iterable[BaseMessage]) -> dict[str, str]:
    """The path under which messages first have a content, by its SHA-256."""
    contents: dict[str, str] = {}
    for message in messages:
        for file in files_of(vars(message)):
            if file.sha256 is not None and not file.again and _tale(message, file) is not None:
                contents.setdefault(file.sha256, file.path)
    return contents


def complete(shown: Sequence[BaseMessage], left_out: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The shown messages, with the contents that they refer to and only left-out messages have."""
    bodies: dict[str | None, str] = {}
    for message in left_out:
        for file in files_of(vars(message)):
            if not file.again and (tale := _tale(message, file)) is not None:
                bodies.setdefault(file.sha256, tale.lstrip("\n").partition("\n")[2])
    if not bodies:
        return list(shown)
    completed = []
    for message in shown:
        for file in files_of(vars(message)):
            if file.sha256 in bodies and _tale(message, file) is not None:
                body = bodies.pop(file.sha256)
                if file.again:
                    message = _with_content(
                        message, file, _whole(file.path, str(file.sha256), body)
                    )
        completed.append(message)
    return completed


def newest_first(
    references: Iterable[Sequence[FileReference]], most: int | None
) -> list[FileReference]:
    """Each path once, by its latest reference, those of the newest turn first.

    Args:
        references: The references of each turn, the oldest first.
        most: The maximum number.

    Raises:
        InvalidInput: `most` is not a number of files.
    """
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        raise InvalidInput(f"max_files must be a number of files, or None for all, not {most!r}")
    by_path: dict[str, FileReference] = {}
    for turn in reversed(list(references)):
        latest = {file.path: file for file in turn}
        by_path |= {path: file for path, file in latest.items() if path not in by_path}
    return list(by_path.values())[:most]


# A path may have had several contents: the beginning of the hash tells them apart.


def _whole(path: str, digest: str, fenced: str) -> str:
    return f"\n\nFile {path} ({digest[:12]}):\n{fenced}"


def _fenced(content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{content}\n{fence}"


def _reference(path: str, digest: str, known: str) -> str:
    return f"\n\nFile {path}: the same content as {known} ({digest[:12]}), which was given above."


def _tale(message: BaseMessage, file: FileReference) -> str | None:
    """The text of the block about a file; None if there is none."""
    content = message.content
    block = (
        content[file.block]
        if isinstance(content, list) and file.block is not None and file.block < len(content)
        else None
    )
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _with_content(message: BaseMessage, file: FileReference, tale: str) -> BaseMessage:
    assert isinstance(message.content, list)
    content = [
        {"type": "text", "text": tale} if at == file.block else block
        for at, block in enumerate(message.content)
    ]
    return message.model_copy(update={"content": content})

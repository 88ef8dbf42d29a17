"""The examples in the help of each command, in the order of a conversation's life."""

from __future__ import annotations

from typing import Final

_EXAMPLES: Final = {
    "": (
        ("chat --new", "start a conversation; /quit ends it, and it stays stored"),
        ("threads list --since yesterday", "find it again: id, title and age"),
        ("chat --continue", "continue the most recently used one"),
        ("chat --resume ID", "continue another one"),
    ),
    "chat": (
        ("chat --thread order-17", "start or continue this conversation"),
        ("chat --continue", "continue the most recently used one"),
        ("chat --resume 'My order'", "continue the one with this title"),
        ("chat --graph app.py:graph", "chat with your own graph"),
    ),
    "threads": (
        ("threads list --since yesterday", "conversations used yesterday and today"),
        ("threads search 'broken lamp'", "messages with these words"),
        ("threads show order-17", "the details of a conversation"),
        ("threads history order-17", "its messages"),
        ("threads export order-17 --to order.md", "its messages as Markdown"),
    ),
    "list": (
        ("threads list --since yesterday --until today", "last used yesterday"),
        ("threads list --waiting", "waiting for an answer"),
        ("threads list --expired", "whose question has timed out"),
        ("threads list --all --limit 0 --json", "everything, for a program"),
    ),
    "search": (
        ("threads search 'broken lamp'", "both words, anywhere in a message"),
        ("threads search '\"broken lamp\"'", "the exact phrase"),
        ("threads search lamp --role human", "only what users said"),
    ),
    "tag": (
        ("threads tag order-17 late vip", "add two tags"),
        ("threads tag order-17 --remove late", "remove a tag"),
    ),
    "fork": (
        ("threads fork order-17", "copy all of it; the new id is printed"),
        ("threads fork order-17 --to again", "choose the id of the copy"),
    ),
    "export": (
        ("threads export order-17 --to order.md", "Markdown, to read"),
        ("threads export --all --to all.jsonl.gz", "everything, compressed, to import again"),
    ),
    "import": (
        ("threads import all.jsonl.gz --db other.db", "import under new ids"),
        ("threads import all.jsonl.gz --keep-ids", "keep ids; skip threads that exist"),
    ),
    "mcp": (
        ("mcp --graph app.py:graph", "for a client that starts it"),
        ("mcp --graph app.py:graph --port 8000", "at http://127.0.0.1:8000/mcp"),
    ),
    "catalog": (
        ("catalog check intents.yaml --tools app.py:TOOLS", "every mistake with its line"),
        ("catalog try intents.yaml", "chat, and see what is understood and why; no tool is called"),
    ),
    "inspect": (
        ("inspect --demo", "see what it can do, in a minute"),
        ("inspect memory.db", "a database of your own"),
        ("inspect checkpoints.sqlite", "a SqliteSaver's, as it is"),
        ("inspect memory.db --graph app.py:graph", "answer what waits, too"),
    ),
    "sweep": (
        ("sweep --dry-run", "what the settings would delete"),
        ("sweep --ttl 720", "not used for 30 days"),
    ),
    "prune": (
        ("prune --older-than 30 --dry-run", "what would be deleted"),
        ("prune --older-than 30", "delete it, after a confirmation"),
    ),
    "memory": (
        ("memory run --model openai:gpt-5-mini", "write the memories that are needed"),
        ("memory show order-17", "the memory of a conversation"),
        ("memory list --facts --owner ann", "what an owner said that lasts"),
    ),
    "run": (
        ("memory run --facts --every 10m", "again and again, with facts, until Ctrl-C"),
        ("memory run --thread order-17", "one conversation, now"),
    ),
    "store": (
        ("store list", "all namespaces"),
        ("store list users anna", "the items below a namespace"),
        ("store export --to items.jsonl.gz", "everything, compressed, to import again"),
        ("store import items.jsonl.gz --db other.db", "into another database"),
    ),
    "roles": (
        ("roles grant app --writer", "let the role app read and write all threads"),
        (
            "roles grant acme --writer --owner acme",
            "let the role acme see only the threads of the owner acme",
        ),
        ("roles list", "which roles have access"),
    ),
    "grant": (
        ("roles grant app --writer", "read and write"),
        ("roles grant reports --reader", "read only"),
        ("roles grant acme --writer --owner acme", "only this owner's threads"),
        ("roles grant app --writer --sql", "print the SQL for an administrator"),
    ),
    "show": (
        ("config show ttl_hours", "one setting with its allowed values"),
        ("config show --set ttl_hours=12", "the effect of an argument"),
    ),
}

COMMANDS: Final = tuple(_EXAMPLES)


def examples(command: str) -> list[str]:
    """The examples of a command, each a line of shell with its purpose as a comment."""
    return [f"langmem-ext {typed}  # {purpose}" for typed, purpose in _EXAMPLES[command]]


def examples_of(command: str) -> str:
    """The examples of a command as the end of its help; of the program, if no command is named."""
    lines = [(f"langmem-ext {typed}", purpose) for typed, purpose in _EXAMPLES[command]]
    width = max(len(typed) for typed, _ in lines)
    # What follows this mark keeps its lines. A purpose that would exceed 80 columns goes below.
    shown = [
        (
            f"  {typed:{width}}  {purpose}"
            if width + len(purpose) < 74
            else f"  {typed}\n      {purpose}"
        )
        for typed, purpose in lines
    ]
    return "\n".join(["\b", "Examples:", *shown])

"""Score whole conversations: where does a user end who writes as people write?

`python -m benchmarks.conversations FILE… [--show] [--without-offers] [--damage KIND…]`: each file
holds a catalog, its tools and ten conversations (`talks/README.md` says how). Every message goes
through `converse` on a database in memory. Right: just the wanted calls were made, and nothing was
stored that the user did not say. Wrong: another call, or a wrong value, was stored. Else the
conversation is unfinished.

An offer is a question of the graph's own that names what may be meant: requests ("Do you mean: A,
or B?"), values ("Did you mean X?"), or a request that is read back though no catalog wants it
confirmed, which counts as needless as well. No file can foresee it, so a user who wants what is
offered says so, then goes on as written; `--without-offers` lets the question pass as if it had not
been asked. `--damage typos` (or `all`) plays them as hasty people write them (`damage.py`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field, create_model

from benchmarks.damage import KINDS, damaged
from langmem_ext import DeltaSaver, IntentCatalog, Turn, build_waiting_graph, converse
from langmem_ext.types import CONFIRMATION

NOW = datetime(2026, 3, 4, 10, 15)
"""A Wednesday: when all of the messages are written."""

OFFERS = 3
"""Offers after one message that a user answers, at most: of requests, then of their values."""

TALKS = Path(__file__).with_name("talks")
_TYPES: Mapping[str, Any] = {"integer": int, "money": float, "number": float, "boolean": bool}


@dataclass(slots=True)
class Ended:
    """Where a conversation has ended.

    Attributes:
        title: What it is called.
        calls: The tools that were called, each with its arguments.
        bad: Values that nobody said, and calls that nobody wanted.
        done: Whether just the wanted calls were made.
        reached: Whether the first request was taken up; None where the first message is none.
        needless: Questions for what the user had said already.
        offers: Offers that held what the user wanted, and that the user took up.
        lines: What was said.
    """

    title: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    done: bool = False
    reached: bool | None = None
    needless: int = 0
    offers: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """`right`, `wrong` or `unfinished`."""
        return "wrong" if self.bad else "right" if self.done else "unfinished"

    def say(self, graph: Any, text: str) -> tuple[Turn, Mapping[str, Any]]:
        """What comes of a message, and the state then."""
        turn = converse(graph, text, thread_id="t", now=NOW)
        replies = (f"  agent > {line}" for line in turn.reply.split("\n"))
        self.lines += [f"  you   > {text}", *replies]
        return turn, graph.get_state({"configurable": {"thread_id": "t"}}).values


def tools_of(data: Mapping[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> list[BaseTool]:
    """The tools of a file; each notes its call and gives the result that the file says."""
    return [_tool(data, name, calls) for name in data["tools"]]


def _tool(data: Mapping[str, Any], name: str, calls: list[tuple[str, dict[str, Any]]]) -> BaseTool:
    spec, params = data["tools"][name], data["catalog"]["params"]
    required = {
        param
        for intent in data["catalog"]["intents"]
        if intent.get("tool") == name
        for param in intent.get("required", ())
    }

    def call(**given: Any) -> Any:
        calls.append((name, {key: value for key, value in given.items() if value is not None}))
        return spec.get("result") or {}

    fields: dict[str, Any] = {}
    for arg in spec["args"]:
        kind = _TYPES.get(params[arg]["type"], str)
        fields[arg] = (kind, ...) if arg in required else (kind | None, Field(default=None))
    return StructuredTool.from_function(
        call, name=name, description=name, args_schema=create_model(name, **fields)
    )


def play(
    data: Mapping[str, Any],
    talk: Mapping[str, Any],
    catalog: IntentCatalog,
    *,
    offers: int = OFFERS,
) -> Ended:
    """Have one conversation; where it ends.

    Args:
        data: The desk.
        talk: The conversation.
        catalog: The desk's catalog.
        offers: How often the user says after one message which of several is meant, at most.
    """
    ended = Ended(talk["title"])
    builder = build_waiting_graph(catalog, tools_of(data, ended.calls))
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        filled: set[str] = set()
        for number, said in enumerate(talk["says"]):
            turn, state = ended.say(graph, said if isinstance(said, str) else said["say"])
            for _ in range(offers):
                choice = _choice(data, talk, number, ended.calls, state)
                if choice is None:
                    break
                ended.offers += 1
                ended.needless += turn.waiting_for == CONFIRMATION
                turn, state = ended.say(graph, choice)
            if number == 0 and talk["reached"] is not None:
                wanted = talk["reached"] if isinstance(talk["reached"], list) else [talk["reached"]]
                ended.reached = state.get("last_intent_id") in wanted
            params = state.get("params") or {}
            ended.bad |= {
                f"{name}={value}"
                for name, value in params.items()
                if not may_stand(data, talk, name, value)
            }
            ended.needless += turn.waiting_for in filled
            filled |= params.keys()
    _judge(data, talk, ended)
    return ended


_PLACES = ("the first", "the second", "the third", "the fourth", "the fifth", "the sixth")
"""What a user says who is asked which of several is meant."""


def _choice(
    data: Mapping[str, Any],
    talk: Mapping[str, Any],
    number: int,
    calls: Sequence[tuple[str, Any]],
    state: Mapping[str, Any],
) -> str | None:
    """What a user says to an offer; None if nothing is offered, or not what is wanted.

    The conversations foresee themselves which of two times of day is meant.
    """
    first = talk["reached"] if isinstance(talk["reached"], list) else [talk["reached"]]
    left = [call for wanted in talk["want"][len(calls) :] for call in wanted.items()]
    asked = state.get("waiting_for_param")
    if asked == CONFIRMATION:
        return "yes" if _is_read_back(data, state) and _is_wanted(data, left, state) else None
    if asked is None:
        heard = state.get("understood") or ()
        offered = [intent for command in heard for intent in command.get("intents") or ()]
        meant = [*(first if number == 0 else ()), *(intent for intent, _ in left)]
        place = next((offered.index(one) for one in meant if one in offered), None)
    else:
        offered = ((state.get("plan") or {}).get("choices") or {}).get(asked) or []
        kind = data["catalog"]["params"][asked]["type"]
        meant = [values[asked] for _, values in left if values.get(asked) is not None]
        fits = (
            place
            for place, one in enumerate(offered)
            if any(accepts(kind, value, one) for value in meant)
        )
        place = None if ":" in str(offered[:1]) else next(fits, None)
    if place is None:
        return None
    return _PLACES[place] if len(offered) > 1 else "yes"


def _is_wanted(
    data: Mapping[str, Any],
    left: Sequence[tuple[str, Mapping[str, Any]]],
    state: Mapping[str, Any],
) -> bool:
    """Whether the request that is read back is one that is wanted, with these values."""
    params = state.get("params") or {}
    return any(
        intent == state["plan"]["intent_id"]
        and all(
            accepts(data["catalog"]["params"][name]["type"], value, params.get(name))
            for name, value in values.items()
        )
        for intent, values in left
    )


def _is_read_back(data: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Whether a request is read back that no catalog wants confirmed: no file could foresee it."""
    return state.get("waiting_for_param") == CONFIRMATION and not any(
        intent["id"] == state["plan"]["intent_id"] and intent.get("confirm")
        for intent in data["catalog"]["intents"]
    )


def _judge(data: Mapping[str, Any], talk: Mapping[str, Any], ended: Ended) -> None:
    wanted = [next(iter(call.items())) for call in talk["want"]]
    left, calls = list(wanted), list(ended.calls)
    for call in calls:
        match = next(
            (
                one
                for one in (left if talk.get("order") == "any" else left[:1])
                if _is(data, call, one)
            ),
            None,
        )
        if match is None:
            ended.bad.add(f"called {call}")
        else:
            left.remove(match)
    ended.done = not left


def _is(
    data: Mapping[str, Any], call: tuple[str, dict[str, Any]], wanted: tuple[str, Mapping[str, Any]]
) -> bool:
    name, given = call
    tools = {intent["id"]: intent.get("tool") for intent in data["catalog"]["intents"]}
    if name != tools[wanted[0]]:
        return False
    return all(
        accepts(data["catalog"]["params"][param]["type"], value, given.get(param))
        for param, value in wanted[1].items()
    )


def may_stand(data: Mapping[str, Any], talk: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a value may be stored for a parameter at any time of the conversation."""
    kind = data["catalog"]["params"].get(name, {}).get("type", "text")
    if any(
        name in (tool.get("result") or {}) and tool["result"][name] == value
        for tool in data["tools"].values()
    ):
        return True
    if accepts(kind, (talk.get("also") or {}).get(name, []), value):
        return True
    named = [call[name] for want in talk["want"] for call in want.values() if name in call]
    if named:
        return any(accepts(kind, one, value) for one in named)
    intents = {
        intent["id"]: (*intent.get("required", ()), *intent.get("optional", ()))
        for intent in data["catalog"]["intents"]
    }
    return any(name in intents[intent] for want in talk["want"] for intent in want)


def accepts(kind: str, wanted: Any, got: Any) -> bool:
    """Whether a value is one that is wanted: a scalar, a list of forms, or None for no value."""
    if isinstance(wanted, list):
        return any(accepts(kind, one, got) for one in wanted)
    if wanted is None or got is None:
        return wanted is None and got is None
    return _plain(kind, wanted) == _plain(kind, got)


def _plain(kind: str, value: Any) -> object:
    text = str(value).strip()
    match kind:
        case "boolean":
            return text.lower() in ("true", "yes", "1")
        case "integer" | "money" | "number":
            try:
                return float(text.replace(",", "").strip("$€£ "))
            except ValueError:
                return text
        case "time":
            return re.sub(r"^(\d\d:\d\d).*$", r"\1", text)
        case "date":
            return text[:10]
        case "phone":
            return re.sub(r"[^\d+]", "", text)
        case "identifier":
            return re.sub(r"\s", "", text.lower())
        case "enum":
            return re.sub(r"[\s_-]+", "_", text.lower())
        case _:
            return re.sub(r"[\s,;]+", " ", text.lower().replace("’", "'")).strip(' .!?"')


def ends(path: Path, damage: str | None = None, *, offers: int = OFFERS) -> Iterator[Ended]:
    """Where the conversations of a file end, damaged or as they are, with so many offers taken."""
    data = yaml.safe_load(path.read_text())
    if damage:
        data = damaged(data, damage)
    catalog = IntentCatalog.from_dict(data["catalog"], source=path.name)
    for talk in data["conversations"]:
        yield play(data, talk, catalog, offers=offers)


def main(argv: Sequence[str] | None = None) -> int:
    """Score files; print a line each, and what was said where a conversation did not end right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--show", action="store_true", help="print the conversations that did not end right"
    )
    parser.add_argument(
        "--without-offers", action="store_true", help="the user does not say which one is meant"
    )
    parser.add_argument(
        "--damage", nargs="*", choices=[*KINDS, "all"], help="damage the messages or the catalogs"
    )
    args = parser.parse_args(argv)
    kinds = KINDS if args.damage and "all" in args.damage else args.damage or (None,)
    for kind in kinds:
        every: list[Ended] = []
        for path in args.files:
            found = list(ends(path, kind, offers=0 if args.without_offers else OFFERS))
            every += found
            if args.show:
                _show(path.stem, found)
            if not args.damage:
                print(f"{path.stem:10} {_figures(found)}")
        print(f"{kind or 'all':12} {_figures(every)}", flush=True)
    return 0


def _show(desk: str, found: Sequence[Ended]) -> None:
    """Print what was said where a conversation did not end right."""
    for one in found:
        if one.verdict != "right" or one.reached is False:
            bad = sorted(one.bad)
            print(f"== {desk} / {one.title}: {one.verdict} {bad}, calls {one.calls}")
            print("\n".join(one.lines))


def _figures(found: Sequence[Ended]) -> str:
    verdicts = [one.verdict for one in found]
    first = [one.reached for one in found if one.reached is not None]
    return (
        f"{len(found)} conversations: {verdicts.count('right')} right, {verdicts.count('wrong')}"
        f" wrong, {verdicts.count('unfinished')} unfinished; {sum(one.needless for one in found)}"
        f" needless questions, {sum(one.offers for one in found)} offers; first request taken up"
        f" {sum(first)} of {len(first)}"
    )


if __name__ == "__main__":
    sys.exit(main())

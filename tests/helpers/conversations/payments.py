"""A desk whose tools are confirmed: it pays, cancels and refunds orders, and notes what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.tools import tool

from langmem_ext import IntentCatalog, build_waiting_graph

CATALOG = Path(__file__).with_suffix(".yaml").read_text("utf-8")


class Payments:
    """The desk.

    Args:
        folder: Where its catalog is put.
        note: What the free text of its last intent is called.
    """

    def __init__(self, folder: Path, *, note: str = "note") -> None:
        self.ran: list[tuple[str, object]] = []
        path = folder / "intents.yaml"
        path.write_text(
            CATALOG.replace("[note]", f"[{note}]").replace("  note:", f"  {note}:"),
            encoding="utf-8",
        )
        self._catalog, self._note = IntentCatalog.from_yaml(path), note

    def end_refund(self) -> None:
        """What happens at the end of a refund."""

    def graph(self, saver: Any) -> Any:
        """The waiting graph."""

        @tool
        def pay(amount: float) -> dict[str, int]:
            """Pay."""
            self.ran.append(("paid", amount))
            return {"ok": 1}

        @tool
        def cancel_order(order_id: str) -> dict[str, int]:
            """Cancel."""
            self.ran.append(("cancelled", order_id))
            return {"ok": 1}

        @tool
        def refund(order_id: str) -> dict[str, int]:
            """Refund."""
            self.ran.append(("refunded", order_id))
            self.end_refund()
            return {"ok": 1}

        space: dict[str, Any] = {"ran": self.ran}
        exec(  # an argument of any name
            f"def send_note({self._note}: str) -> dict:\n"
            f"    'Send.'\n    ran.append(('sent', {self._note}))\n    return {{'ok': 1}}",
            space,
        )
        tools = [pay, cancel_order, refund, tool(space["send_note"])]
        return build_waiting_graph(self._catalog, tools).compile(checkpointer=saver)

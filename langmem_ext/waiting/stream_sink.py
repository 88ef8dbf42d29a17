"""Telemetry to LangGraph's custom stream: whoever streams a turn sees its events while it runs."""

from __future__ import annotations

from langgraph.config import get_stream_writer

from langmem_ext.telemetry import FIELD, Event


class StreamSink:
    """Writes events to LangGraph's custom stream, each as `{"langmem_ext": event.as_dict()}`: `stream_mode="custom"` shows them.

    An event outside of a graph's nodes, as a sweep's `expired`, has no stream and is passed over.
    """

    def emit(self, event: Event) -> None:
        """Write the event, if a graph runs here."""
        try:
            write = get_stream_writer()
        except RuntimeError:
            return
        write({FIELD: event.as_dict()})

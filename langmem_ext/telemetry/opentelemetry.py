"""OpenTelemetry sink: puts a turn's events on its span, or makes each a span of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langmem_ext.errors import MissingExtra
from langmem_ext.telemetry import Event

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

PREFIX: Final = "langmem_ext."


class OpenTelemetrySink:
    """Puts events on the current span if it is recorded; otherwise makes each a span.

    Such a span lasts as long as the event did.

    It keeps nothing from event to event, so a turn that dies and is finished by another process
    leaves no span open.

    Args:
        tracer_provider: Where spans go. Default: the one that the program has set.

    Raises:
        MissingExtra: The extra `telemetry` is not installed.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import trace  # noqa: PLC0415  an extra
        except ImportError:
            raise MissingExtra("OpenTelemetrySink", "telemetry") from None
        self._current = trace.get_current_span
        self._tracer = trace.get_tracer("langmem_ext", tracer_provider=tracer_provider)

    def emit(self, event: Event) -> None:
        """Record the event."""
        at, attributes = _nanoseconds(event.time), attributes_of(event)
        span = self._current()
        if span.is_recording():
            span.add_event(PREFIX + event.name, attributes, timestamp=at)
            return
        duration = event.payload.get("duration_ms")
        lasted = duration * 1_000_000 if isinstance(duration, int) else 0
        self._tracer.start_span(
            PREFIX + event.name, attributes=attributes, start_time=at - lasted
        ).end(end_time=at)


def attributes_of(event: Event) -> dict[str, Any]:
    """The event as attributes: flat, each name after `langmem_ext.`; what is None is left out."""
    fields = event.as_dict()
    del fields["event"], fields["time"]
    return dict(_flat(PREFIX, fields))


def _flat(prefix: str, fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    attributes: list[tuple[str, Any]] = []
    for key, value in fields.items():
        if isinstance(value, Mapping):
            attributes += _flat(f"{prefix}{key}.", value)
        elif value is not None:
            attributes.append((prefix + key, value))
    return attributes


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000

"""Every shape, by name."""

from benchmarks.shapes import chat

SHAPES = {shape.name: shape for module in (chat,) for shape in module.SHAPES}

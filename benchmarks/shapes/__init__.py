"""Every shape, by name."""

from benchmarks.shapes import applications, chat, crowd, reading, upkeep

SHAPES = {shape.name: shape for module in (chat, applications, reading, crowd, upkeep) for shape in module.SHAPES}

"""Every shape, by name."""

from benchmarks.shapes import applications, chat, crowd, reading, search, upkeep

SHAPES = {
    shape.name: shape
    for module in (chat, applications, reading, crowd, upkeep, search)
    for shape in module.SHAPES
}

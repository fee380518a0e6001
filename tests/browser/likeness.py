"""How much two pictures of a page differ: a little between machines, more when it breaks."""

import io

import numpy as np
from PIL import Image

CELL = 4  # pixels of a picture, 8 of the page: a letter is grey at this size
_BAND, _SHIFT = 20, 8  # bands of 40 px of the page, each up to 16 px from its place
COLOURS = 32


def shrunk(png: bytes) -> bytes:
    """Return a picture of a page at half its size and in few colours, to be kept as a golden."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    small = image.resize((image.width // 2, image.height // 2), Image.Resampling.BOX)
    out = io.BytesIO()
    small.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def difference_fraction(golden: bytes, shot: bytes) -> float:
    """Return the mean difference of two pictures made by `shrunk`: 0 to 1 of full brightness.

    Both are blurred over 8 px of the page, where it does not matter how a browser smooths its
    letters. Bands of 40 px are compared where they fit best, up to 16 px above or below their
    place, so that a line that is a pixel taller counts as nothing. The worst tenth of the bands
    decides: one section that is gone can't hide in a long page.
    """
    one, other = _blurred(golden), _blurred(shot)
    if one.shape != other.shape:
        return 1.0
    bands = [_band(one, other, top) for top in range(0, len(one) - _BAND + 1, _BAND)]
    worst = sorted(bands, reverse=True)[: max(1, len(bands) // 10)]
    return float(np.mean(worst))


def _blurred(png: bytes) -> np.ndarray:
    """Return cells across, and down the page their running means at every pixel."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    cells = image.resize((image.width // CELL, image.height), Image.Resampling.BOX)
    sums = np.cumsum(np.asarray(cells, dtype=float) / 255, axis=0)
    means: np.ndarray = (sums[CELL:] - sums[:-CELL]) / CELL
    return means


def _band(one: np.ndarray, other: np.ndarray, top: int) -> float:
    band = one[top : top + _BAND : CELL]
    first, last = max(0, top - _SHIFT), min(len(other) - _BAND, top + _SHIFT)
    return min(
        float(np.abs(band - other[at : at + _BAND : CELL]).mean()) for at in range(first, last + 1)
    )

"""Pictures in a terminal: by the protocol it says it has, else as half blocks of colour, else not at all.

kitty and iTerm2 take a PNG, sixel a palette; where a terminal only knows 24-bit colours, a cell shows two pixels.
"""

from __future__ import annotations

import base64
import io
import os
import re
import select
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TextIO

import numpy as np

from mispair.pictures.decode import Broken, decode, quiet

if TYPE_CHECKING:
    from PIL.Image import Image

Way = Literal["kitty", "iterm2", "sixel", "blocks"]
WAYS: tuple[Way, ...] = ("kitty", "iterm2", "sixel", "blocks")
_TILE = (22, 8)  # columns and lines of a thumbnail
_CELL = (10, 20)  # pixels of a cell, as near as one knows; two in the way "blocks"
_MOST_ROWS = 2  # of thumbnails
_COLOURS = 128  # of a sixel palette
_PATIENCE = 0.2  # seconds a terminal has to say what it can


def find_way(environment: Mapping[str, str], out: TextIO, answer: str | None = None) -> Way | None:
    """How the terminal behind `out` shows pictures; None where it is no terminal, or says nothing of colours.

    Args:
        answer: what it said of itself (`ask_terminal`); a 4 among its attributes means sixel.
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if not out.isatty() or term in ("", "dumb", "linux") or "NO_COLOR" in environment:
        return None
    if "TMUX" not in environment and not term.startswith(("screen", "tmux")):  # these swallow what they do not know
        if "KITTY_WINDOW_ID" in environment or "kitty" in term or "ghostty" in (term, program):
            return "kitty"
        if program in ("iTerm.app", "WezTerm", "mintty") or environment.get("LC_TERMINAL") == "iTerm2":
            return "iterm2"
        if answer is not None and "4" in re.findall(r"\d+", answer)[1:]:
            return "sixel"
    return "blocks" if environment.get("COLORTERM") in ("truecolor", "24bit") or "256color" in term else None


def ask_terminal(read: int, write: int) -> str | None:
    """Ask a terminal for its attributes (DA1) and wait a moment for the answer; None where there is none."""
    try:
        import termios
        import tty

        before = termios.tcgetattr(read)
    except (ImportError, OSError, ValueError):
        return None
    except Exception as error:  # termios.error is no OSError on every Python
        if type(error).__name__ != "error":
            raise
        return None
    said = b""
    try:
        tty.setcbreak(read)
        os.write(write, b"\x1b[c")
        while select.select([read], [], [], _PATIENCE)[0] and not said.endswith(b"c") and len(said) < 100:
            said += os.read(read, 1)
    except OSError:
        return None
    finally:
        termios.tcsetattr(read, termios.TCSANOW, before)
    attributes = re.search(rb"\x1b\[\?[\d;]*c", said)
    return None if attributes is None else attributes.group().decode()


def thumbnails(files: Sequence[bytes | None], way: Way, width: int) -> str:
    """Picture files side by side in at most two rows, `width` columns wide, as what to write to the terminal.

    A file that is missing or cannot be decoded leaves a grey place.
    """
    across = max(width // _TILE[0], 1)
    shown = files[: _MOST_ROWS * across]
    if not shown:
        return ""
    columns, lines = min(across, len(shown)) * _TILE[0], -(-len(shown) // across) * _TILE[1]
    cell = (1, 2) if way == "blocks" else _CELL
    sheet = _sheet(shown, across, (_TILE[0] * cell[0], _TILE[1] * cell[1]))
    if way == "blocks":
        return _blocks(sheet)
    if way == "sixel":
        return _sixel(sheet) + "\n"
    png = io.BytesIO()
    sheet.save(png, "PNG")
    data = base64.b64encode(png.getvalue()).decode()
    if way == "iterm2":
        return f"\x1b]1337;File=inline=1;width={columns};height={lines};preserveAspectRatio=0:{data}\a\n"
    parts = [data[k : k + 4096] for k in range(0, len(data), 4096)]
    first = f"f=100,a=T,c={columns},r={lines},"
    return "".join(
        f"\x1b_G{first if k == 0 else ''}m={int(k + 1 < len(parts))};{part}\x1b\\" for k, part in enumerate(parts)
    ) + "\n"  # fmt: skip


def _sheet(files: Sequence[bytes | None], across: int, tile: tuple[int, int]) -> Image:
    from PIL import Image, ImageOps

    rows = -(-len(files) // across)
    sheet = Image.new("RGB", (min(across, len(files)) * tile[0], rows * tile[1]), (0, 0, 0))
    gap = max(tile[0] // 22, 1)
    for k, data in enumerate(files):
        with quiet():
            picture = Broken("missing") if data is None else decode(data, 2 * max(tile))
        if isinstance(picture, Broken):
            picture = Image.new("RGB", (4, 3), (110, 110, 110))
        fitted = ImageOps.fit(picture, (tile[0] - gap, tile[1] - gap), Image.Resampling.BILINEAR)
        sheet.paste(fitted, (k % across * tile[0], k // across * tile[1]))
    return sheet


def _blocks(sheet: Image) -> str:
    """Two pixels a cell: the upper half block in the colour of one, on the ground of the other."""
    pixels = np.asarray(sheet)
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        cells = (
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m\u2580"
            for a, b in zip(upper, lower, strict=True)
        )
        lines.append("".join(cells) + "\x1b[0m\n")
    return "".join(lines)


def _sixel(sheet: Image) -> str:
    """Bands of six lines; in each, one pass per colour, runs of the same column counted."""
    small = sheet.quantize(_COLOURS)
    palette, pixels = np.array(small.getpalette() or [], int).reshape(-1, 3), np.asarray(small)
    out = [f'\x1bPq"1;1;{sheet.width};{sheet.height}']
    out += [f"#{k};2;{r * 100 // 255};{g * 100 // 255};{b * 100 // 255}" for k, (r, g, b) in enumerate(palette)]
    for top in range(0, len(pixels), 6):
        band = pixels[top : top + 6]
        bits = 1 << np.arange(len(band))[:, None]
        for colour in np.unique(band).tolist():
            columns = ((band == colour) * bits).sum(0)
            ends = np.flatnonzero(np.append(np.diff(columns), 1)) + 1  # where a run of one value ends
            runs = np.diff(np.concatenate([[0], ends]))
            out.append(
                f"#{colour}" + "".join(f"!{n}{chr(63 + int(columns[e - 1]))}" for n, e in zip(runs, ends, strict=True))
            )
            out.append("$")
        out.append("-")
    return "".join(out) + "\x1b\\"

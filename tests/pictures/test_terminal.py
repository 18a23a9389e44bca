"""Pictures in a terminal: which way for which terminal, and what each way writes, read back."""

import base64
import io
import os
import re
import threading

import numpy as np
import pytest
from PIL import Image

from mispair.pictures.terminal import ask_terminal, find_way, thumbnails

pty = pytest.importorskip("pty")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def png(colour):
    out = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("environment", "answer", "way"),
    [
        ({"TERM": "xterm-kitty"}, None, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, None, "kitty"),
        ({"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, None, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, None, "iterm2"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, None, "iterm2"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "\x1b[?62;4;22c", "sixel"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "\x1b[?4;22c", "blocks"),  # the first number is a level
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, None, "blocks"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "x"}, "\x1b[?62;4c", "blocks"),
        ({"TERM": "xterm"}, None, None),
        ({"TERM": "dumb"}, None, None),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, None, None),
        ({}, None, None),
    ],
)
def test_the_way_is_what_the_terminal_says(environment, answer, way):
    assert find_way(environment, Terminal(), answer) == way
    assert find_way(environment, io.StringIO(), answer) is None  # a file or a pipe gets none


def test_blocks_show_two_pixels_a_cell():
    written = thumbnails([png((255, 0, 0)), png((0, 0, 255))], "blocks", 60)
    lines = written.splitlines()
    assert len(lines) == 8
    assert lines[0].count("\u2580") == 44
    colours = re.findall(r"38;2;(\d+);(\d+);(\d+)", lines[1])
    assert colours[3] == ("255", "0", "0")
    assert colours[25] == ("0", "0", "255")


def test_kitty_and_iterm_get_a_png_of_the_sheet():
    kitty = thumbnails([png((255, 0, 0))] * 7, "kitty", 60)
    data = "".join(re.findall(r"\x1b_G[^;]*;([^\x1b]*)\x1b\\", kitty))
    assert kitty.startswith("\x1b_Gf=100,a=T,c=44,r=16,m=")  # two across, two rows: the rest is left out
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (440, 320)
    assert all(len(part) <= 4096 for part in re.findall(r";([^\x1b]*)\x1b", kitty))
    iterm = thumbnails([png((255, 0, 0)), None], "iterm2", 60)
    sheet = Image.open(io.BytesIO(base64.b64decode(iterm.split(":")[1].rstrip("\a\n"))))
    assert sheet.getpixel((5, 5)) == (255, 0, 0)
    assert sheet.getpixel((225, 5)) == (110, 110, 110)  # missing: a grey place


def test_sixels_read_back_are_the_picture():
    written = thumbnails([png((255, 0, 0)), png((0, 0, 255))], "sixel", 60)
    pixels = _read_sixel(written)
    assert pixels.shape == (160, 440, 3)
    assert pixels[80, 100].tolist() == [100, 0, 0]
    assert pixels[80, 320].tolist() == [0, 0, 100]


def _read_sixel(text):
    """As a terminal does: colours in percent."""
    width, height = map(int, re.match(r"\x1bPq\"1;1;(\d+);(\d+)", text).groups())
    palette = {int(n): tuple(map(int, c.split(";"))) for n, c in re.findall(r"#(\d+);2;(\d+;\d+;\d+)", text)}
    pixels = np.zeros((height + 6, width, 3), int)
    body = re.sub(r"#\d+;2;\d+;\d+;\d+", "", text.split(f"{width};{height}", 1)[1])
    y, x, colour = 0, 0, 0
    for number, run, value, move in re.findall(r"#(\d+)|!(\d+)([?-~])|([$-])", body):
        if number:
            colour = int(number)
        elif run:
            for bit in range(6):
                if (ord(value) - 63) >> bit & 1:
                    pixels[y + bit, x : x + int(run)] = palette[colour]
            x += int(run)
        else:
            x, y = 0, y + 6 * (move == "-")
    return pixels[:height]


@pytest.mark.parametrize("answer", [b"\x1b[?62;4;22c", None])
def test_a_terminal_is_asked_and_may_say_nothing(answer):
    terminal, program = pty.openpty()

    def respond():
        asked = os.read(terminal, 3)
        if asked == b"\x1b[c" and answer is not None:
            os.write(terminal, answer)

    replying = threading.Thread(target=respond)
    replying.start()
    said = ask_terminal(program, program)
    replying.join(10)
    os.close(terminal)
    os.close(program)
    assert said == (None if answer is None else answer.decode())


def test_what_is_no_terminal_is_not_asked(tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        assert ask_terminal(file.fileno(), file.fileno()) is None
        assert file.read() == b""


def test_nothing_to_show():
    assert thumbnails([], "blocks", 80) == ""
    assert thumbnails([b"no picture"], "blocks", 10).count("\n") == 8  # narrower than one: still one

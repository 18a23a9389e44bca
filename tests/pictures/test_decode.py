from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.pictures import decode as decode_module
from mispair.pictures.decode import FORMATS, Broken, decode, quiet, read_picture
from tests.pictures.samples import bomb, colours, saved


def pixels(data: bytes, side: int = 0) -> np.ndarray:
    picture = decode(data, side)
    assert not isinstance(picture, Broken), picture
    assert picture.mode == "RGB"
    return np.asarray(picture).astype(int)


def reason(data: bytes) -> str:
    picture = decode(data)
    assert isinstance(picture, Broken)
    return picture.reason


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_the_picture_upright(orientation):
    upright = np.asarray(colours()).astype(int)
    # How a camera stores an upright scene under each tag: the inverse of what has to be undone.
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.transpose(1, 0, 2),
        6: np.rot90(upright), 7: upright[::-1, ::-1].transpose(1, 0, 2), 8: np.rot90(upright, -1),
    }[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(Image.fromarray(stored.astype(np.uint8)), "PNG", exif=exif)
    assert np.array_equal(pixels(data), upright)


def test_a_large_jpeg_is_decoded_small_but_not_too_small():
    data = saved(colours(1600, 1200), "JPEG")
    small = pixels(data, side=260)
    assert small.shape == (300, 400, 3)  # a quarter; an eighth would be below 260
    assert pixels(data).shape == (1200, 1600, 3)
    assert abs(small[200, 100] - (200, 30, 30)).max() < 12


def test_avif_is_read_where_pillow_can_and_named_where_not(monkeypatch):
    assert "AVIF" in decode_module.formats(), "the pinned Pillow reads it"
    data = saved(colours(), "AVIF", quality=100)
    assert np.median(abs(pixels(data) - np.asarray(colours()))) <= 2
    assert reason(data[:16] + b"x" * 40) == "damaged (AVIF)"
    monkeypatch.setattr(decode_module, "formats", lambda: ("JPEG", "PNG"))
    assert reason(data).startswith("AVIF, which this Pillow cannot read")


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"\0\0\0\x18ftypheic", "HEIC, which Pillow cannot read; convert it to JPEG"),
        (b"\0\0\0\x18ftypmif1", "HEIC, which Pillow cannot read; convert it to JPEG"),
        (b"\xff\x0a", "JPEG XL or JPEG 2000, which is not read; convert it to JPEG"),
        (b"\0\0\0\x0cjP  ", "JPEG XL or JPEG 2000, which is not read; convert it to JPEG"),
        (b"\0\0\0\x18ftypmp42", "not a picture of a known format"),
    ],
)
def test_what_pillow_cannot_read_is_called_by_its_name(start, said):
    assert reason(start + b"\0" * 80).startswith(said)


def test_transparency_lies_on_white():
    for mode, data in {
        "RGBA": saved(Image.new("RGBA", (4, 4), (0, 0, 0, 0)), "PNG"),
        "LA": saved(Image.new("LA", (4, 4), (0, 0)), "PNG"),
        "P": saved(Image.new("P", (4, 4), 0), "PNG", transparency=0),
        "RGB": saved(Image.new("RGB", (4, 4), (9, 9, 9)), "PNG", transparency=(9, 9, 9)),
    }.items():
        assert (pixels(data) == 255).all(), mode
    half = saved(Image.new("RGBA", (2, 2), (0, 0, 0, 128)), "PNG")
    assert abs(pixels(half) - 127).max() <= 1


def test_sixteen_bits_are_scaled_not_cut():
    ramp = np.linspace(0, 65535, 256).astype(np.uint16)[None].repeat(4, 0)
    for kind in ("PNG", "TIFF"):
        decoded = pixels(saved(Image.fromarray(ramp), kind))[0, :, 0]
        assert abs(decoded - np.arange(256)).max() <= 1, kind
    floats = saved(Image.fromarray(np.linspace(0, 1, 256, dtype=np.float32)[None]), "TIFF")
    assert abs(pixels(floats)[0, :, 0] - np.arange(256)).max() <= 1


def test_other_modes_come_out_in_colour():
    near = {
        "CMYK": saved(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"),
        "P": saved(Image.new("RGB", (16, 16), (255, 0, 0)).convert("P"), "PNG"),
        "WEBP": saved(Image.new("RGB", (16, 16), (255, 0, 0)), "WEBP", lossless=True),
    }
    for mode, data in near.items():
        assert abs(pixels(data)[8, 8] - (255, 0, 0)).max() < 12, mode
    assert (pixels(saved(Image.new("L", (4, 4), 77), "PNG")) == 77).all()
    assert (pixels(saved(Image.new("1", (4, 4), 1), "PNG")) == 255).all()


def test_of_an_animation_the_first_frame():
    frames = [Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 0, 255))]
    for kind in ("GIF", "WEBP", "PNG"):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
        assert abs(pixels(data)[4, 4] - (255, 0, 0)).max() < 12, kind


def test_what_is_no_picture_has_a_reason():
    jpeg, png = saved(colours(400, 300), "JPEG"), saved(colours(), "PNG")
    assert reason(b"") == "empty file"
    assert reason(jpeg[:20]) == "damaged header"
    for cut in (300, len(jpeg) // 2, len(jpeg) - 20):
        assert reason(jpeg[:cut]) == "truncated"
    assert reason(png[:-40]) == "truncated"
    assert "web page" in reason(b"<!DOCTYPE html><html>404</html>")
    assert "not a picture" in reason(b"just text")
    assert "drawing" in reason(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    with quiet():
        assert reason(bomb(13_000)) == "too large: 13,000 x 13,000 pixels, at most 120 million"
        assert reason(bomb()).startswith("too large")


def test_a_wrong_ending_is_no_matter(tmp_path: Path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(saved(colours(), "PNG"))
    data = read_picture(path)
    assert isinstance(data, bytes)
    assert np.array_equal(pixels(data), np.asarray(colours()))


def test_a_broken_exif_block_does_not_cost_the_picture():
    data = saved(colours(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    with quiet():
        assert pixels(data).shape == (32, 48, 3)


def test_any_damage_ends_in_a_picture_or_a_reason():
    rng = np.random.default_rng(0)
    with quiet():
        for kind in FORMATS:
            whole = np.frombuffer(saved(colours(), kind), np.uint8)
            for _ in range(60):
                data = whole.copy()
                data[rng.integers(0, len(data), 8)] = rng.integers(0, 256, 8)
                made = decode(data[: rng.integers(1, len(data) + 1)].tobytes(), 16)
                assert isinstance(made, (Broken, Image.Image))


def test_files_that_cannot_be_read_have_a_reason(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name, expected in {"pipe": "not an ordinary file", "none": "missing", "": "not an ordinary file"}.items():
        assert read_picture(tmp_path / name) == Broken(expected)
    assert isinstance(read_picture("a\0b"), Broken)
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(300 << 20)
    assert read_picture(tmp_path / "huge") == Broken("too large: 300 MB, at most 256 MB")

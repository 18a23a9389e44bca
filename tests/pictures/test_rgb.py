"""Pictures of every mode as RGB, in one part or in many, whole or at a fraction of their size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.pictures import decode as decode_module
from mispair.pictures import rgb
from mispair.pictures.decode import Broken, decode
from mispair.pictures.rgb import as_rgb
from tests.colours import write_colours
from tests.forks import Forks
from tests.pictures.samples import saved

MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "CMYK", "YCbCr", "HSV", "I", "I;16", "F")


def noisy(mode: str, width: int = 53, height: int = 31) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 4), dtype=np.uint8)
    if mode in ("I", "I;16", "F"):
        kind = {"I": np.int32, "I;16": np.uint16, "F": np.float32}[mode]
        return Image.fromarray(values[..., 0].astype(kind) * kind(200))
    if mode in ("PA", "RGBa"):
        return Image.fromarray(values, "RGBA").convert("P" if mode == "PA" else mode).convert(mode)
    return Image.fromarray(values, "RGBA").convert(mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_many_parts_are_one(mode: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = noisy(mode)
    whole = as_rgb(picture, factor)
    monkeypatch.setattr(rgb, "_SIDE", 16)
    parts = as_rgb(picture, factor)
    assert whole.mode == parts.mode == "RGB"
    assert whole.size == (-(-53 // factor), -(-31 // factor))
    assert np.array_equal(np.asarray(parts), np.asarray(whole))


def test_a_colour_that_is_transparent_is_white_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rgb, "_SIDE", 16)
    picture = noisy("RGB")
    picture.putpixel((40, 30), (1, 2, 3))
    picture.info["transparency"] = (1, 2, 3)
    assert as_rgb(picture).getpixel((40, 30)) == (255, 255, 255)


def test_a_fraction_is_the_mean_of_squares() -> None:
    picture = noisy("RGB", 8, 4)
    means = np.asarray(picture).astype(float).reshape(2, 2, 4, 2, 3).mean((1, 3))
    assert abs(np.asarray(as_rgb(picture, 2)) - means).max() <= 0.5


@pytest.mark.parametrize(("side", "size"), [(0, (600, 300)), (60, (150, 75)), (80, (300, 150)), (301, (600, 300))])
def test_of_many_pixels_come_no_more_than_are_asked_for(
    side: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = saved(Image.new("RGBA", (600, 300), (200, 30, 30, 255)), "PNG")
    small = decode(data, side)
    assert not isinstance(small, Broken)
    assert small.size == (600, 300), "few pixels come as they are"
    monkeypatch.setattr(decode_module, "_MANY_PIXELS", 1000)
    picture = decode(data, side)
    assert not isinstance(picture, Broken)
    assert picture.size == size
    assert picture.getpixel((7, 7)) == (200, 30, 30)


@pytest.mark.parametrize("mode", ["LA", "I;16", "F", "RGBA"])
def test_the_most_pixels_are_held_twice_at_most(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Pillow made it and as it goes out; in between there are parts alone."""
    made: list[int] = []
    whole = Image.Image.convert

    def convert(self: Image.Image, *arguments: object, **options: object) -> Image.Image:
        made.append(self.width * self.height)
        return whole(self, *arguments, **options)  # type: ignore[arg-type]

    picture = noisy(mode, 5000, 1000)
    monkeypatch.setattr(Image.Image, "convert", convert)
    as_rgb(picture)
    assert max(made) <= 2048 * 1000


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every picture decoded from now on, whether no other could be at the same time."""
    seen: list[bool] = []
    whole = decode_module.upright

    def upright(picture: Image.Image, side: int = 0) -> Image.Image:
        seen.append(decode_module._LARGE.locked())
        return whole(picture, side)

    monkeypatch.setattr(decode_module, "upright", upright)
    return seen


@pytest.mark.parametrize(("side", "options"), [(30, {}), (0, {}), (500, {}), (30, {"progressive": True})])
def test_of_many_pixels_one_picture_is_decoded_at_a_time(
    side: int, options: dict[str, object], alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many is known before decoding; of a progressive JPEG all are held, however few are asked for."""
    data = saved(Image.new("RGB", (600, 300)), "JPEG" if options else "PNG", **options)
    decode(data, side)
    monkeypatch.setattr(decode_module, "_MANY_PIXELS", 100_000)
    decode(data, side)
    decode(data[: len(data) // 2], side)
    assert alone == [False, True, True]
    assert not decode_module._LARGE.locked()


def test_a_format_whose_decoder_holds_several_copies_has_a_lower_limit(
    alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """WebP takes 15 bytes a pixel: a file of 300 kB took 1.7 GB."""
    monkeypatch.setattr(decode_module, "MOST_PIXELS", 120_000)
    monkeypatch.setattr(decode_module, "_MANY_PIXELS", 30_000)
    assert isinstance(decode(saved(Image.new("RGB", (100, 200)), "PNG")), Image.Image)
    assert isinstance(decode(saved(Image.new("RGB", (100, 200)), "WEBP")), Image.Image)
    assert isinstance(decode(saved(Image.new("RGB", (200, 310)), "PNG")), Image.Image)
    assert alone == [False, True, True]
    assert isinstance(decode(saved(Image.new("RGB", (200, 310)), "WEBP")), Broken)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["LA", "RGBA", "I;16"])
def test_bombs_below_the_limit_do_not_add_up(mode: str, forks: Forks, tmp_path: Path) -> None:
    """Files of a quarter of a megabyte, of 480 MB each when decoded: by four threads, in what one of them takes."""
    write_colours(tmp_path, 8, 1)
    Image.new(mode, (10_000, 11_900)).save(tmp_path / "photos/000.png")
    for k in range(1, 4):
        (tmp_path / f"photos/{k:03d}.png").write_bytes((tmp_path / "photos/000.png").read_bytes() + bytes(k))
    shown = (tmp_path / "pairs.csv", "--images", tmp_path / "photos", "--workers", 4, "--missing", "skip")
    ran = forks.run(
        "embed", *shown, "--encoder", "colours", "-o", tmp_path / "out", environment={"MISPAIR_CACHE": str(tmp_path)},
        program="tests.fuzz.command_line", limit=300,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.memory < 750e6

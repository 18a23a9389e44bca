"""A picture is decoded and encoded again, or it is a grey tile; it is never a crash."""

import base64
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from mispair.report.thumbnails import thumbnail
from tests.report.samples import png


def decoded(uri):
    kind, _, body = uri.partition(";base64,")
    assert kind == "data:image/webp"
    return Image.open(io.BytesIO(base64.b64decode(body)))


def encoded(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def test_shape_and_colour_are_kept():
    small = decoded(thumbnail(png(400, 100, (200, 30, 30)), 80))
    assert small.size == (80, 20)
    assert np.abs(np.asarray(small.convert("RGB"), int).mean((0, 1)) - (200, 30, 30)).max() < 8


def test_a_small_picture_is_not_blown_up():
    assert decoded(thumbnail(png(7, 5), 80)).size == (7, 5)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("RGB", "JPEG"),
        ("L", "JPEG"),
        ("CMYK", "JPEG"),
        ("RGBA", "PNG"),
        ("P", "GIF"),
        ("1", "PNG"),
        ("RGB", "WEBP"),
        ("I;16", "PNG"),
    ],
)
def test_usual_kinds_can_be_shown(mode, kind):
    assert decoded(thumbnail(encoded(Image.new(mode, (31, 17)), kind), 16)).size[0] == 16


def test_what_is_transparent_shows_the_ground():
    small = decoded(thumbnail(encoded(Image.new("RGBA", (31, 17), (255, 0, 0, 0)), "PNG"), 16))
    assert np.asarray(small.convert("RGB")).min() > 200


def test_nothing_of_the_file_reaches_the_page():
    secret = b"SECRET-PLACE"
    exif = Image.Exif()
    exif[0x010E] = secret.decode()
    file = encoded(Image.new("RGB", (64, 64)), "JPEG", exif=exif, icc_profile=secret * 3, comment=secret) + secret
    assert secret in file
    assert secret not in base64.b64decode(thumbnail(file, 32).partition("base64,")[2])


def test_a_turned_picture_stands_upright():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decoded(thumbnail(encoded(Image.new("RGB", (80, 20)), "JPEG", exif=exif), 40)).size == (10, 40)


def test_a_bomb_is_refused_before_it_is_unpacked():
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    assert thumbnail(bomb + b"\0" * 50, 32) == ""
    below_pillows_own_limit = struct.pack(">IIBBBBB", 9_100, 9_100, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + below_pillows_own_limit
    assert thumbnail(bomb[:16] + chunk[4:] + struct.pack(">I", zlib.crc32(chunk)) + b"\0" * 50, 32) == ""


@pytest.mark.parametrize("broken", [b"", b"not a picture", png()[:60], b"<svg xmlns=''/>", b"%PDF-1.7"])
def test_a_broken_picture_is_a_grey_tile(broken):
    assert thumbnail(broken, 32) == ""


def test_wide_grey_values_are_scaled():
    """16-bit pictures came out white."""
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (48, 1))
    small = np.asarray(decoded(thumbnail(encoded(Image.fromarray(ramp), "PNG"), 64)).convert("L"), int)
    assert np.abs(small.mean(0) - np.linspace(0, 255, 64)).max() < 12

"""From a scene to pixels: shapes drawn by Pillow, coloured and textured, light and noise over everything."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from mispair.data.scenes.world import Dice, Scene

SIDE = 96  # pixels; nine places of 32
_PLACE = SIDE // 3
_RADII = (7.0, 10.0, 14.0)
_TURNS = 7  # drawn angles of each shape, -12 to 12 degrees
_FINE = 4  # shapes are drawn this much larger and reduced, for smooth edges
_RGB = np.array(
    [
        (214, 40, 40),
        (240, 130, 30),
        (240, 215, 40),
        (40, 160, 60),
        (50, 200, 200),
        (40, 70, 200),
        (130, 50, 170),
        (245, 130, 185),
    ],
    np.float32,
)
_GROUND = np.array([(242, 242, 242), (140, 140, 140), (22, 22, 24), (205, 185, 150)], np.float32)


Drawer = Callable[[ImageDraw.ImageDraw, float, float], None]  # pen, middle, radius


def render(scene: Scene, draw: Dice) -> NDArray[np.uint8]:
    """The picture of a scene, (96, 96, 3)."""
    canvas = np.empty((SIDE, SIDE, 3), np.float32)
    canvas[:] = _GROUND[scene.background]
    for shape, colour, size, texture, row, column in scene.objects:
        mask = _mask(shape, size, draw.below(_TURNS))
        side = len(mask)
        room = _PLACE - side
        y = row * _PLACE + int((0.15 + 0.7 * draw.uniform()) * room)
        x = column * _PLACE + int((0.15 + 0.7 * draw.uniform()) * room)
        tone = _RGB[colour] * (0.85 + 0.3 * draw.uniform()) + 24.0 * (draw.uniform() - 0.5)
        shade = _pattern(texture)[draw.below(12) :, draw.below(12) :][:side, :side]
        paint = tone * shade[..., None]
        spot = canvas[y : y + side, x : x + side]
        spot += mask[..., None] * (paint - spot)
    light = np.linspace(-1, 1, SIDE, dtype=np.float32) * (16.0 * (draw.uniform() - 0.5))
    canvas += (light if draw.chance(0.5) else light[:, None])[..., None]
    canvas += draw.rng.integers(-9, 10, canvas.shape, np.int8)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def to_png(picture: NDArray[np.uint8]) -> bytes:
    """A picture as the bytes of a PNG file."""
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "PNG", compress_level=3)
    return stream.getvalue()


@cache
def _mask(shape: int, size: int, turn: int) -> NDArray[np.float32]:
    """How much of each pixel the shape covers, (side, side) in 0..1."""
    radius = _RADII[size]
    side = 2 * int(radius) + 3
    image = Image.new("L", (side * _FINE, side * _FINE))
    _SHAPES[shape](ImageDraw.Draw(image), side * _FINE / 2, radius * _FINE)
    degrees = 24.0 * turn / (_TURNS - 1) - 12.0
    image = image.rotate(degrees, Image.Resampling.BILINEAR).resize((side, side), Image.Resampling.BOX)
    return np.asarray(image, np.float32) / 255.0


@cache
def _pattern(texture: int) -> NDArray[np.float32]:
    """Brightness of the paint, (64, 64): plain, stripes, dots or squares."""
    y, x = np.mgrid[0:64, 0:64]
    dark = (
        np.zeros((64, 64), bool),
        (y // 3) % 2 == 0,
        ((y % 6) - 2.5) ** 2 + ((x % 6) - 2.5) ** 2 < 4.5,
        (y // 5 + x // 5) % 2 == 0,
    )[texture]
    return np.where(dark, 0.35, 1.0).astype(np.float32)


def _polygon(corners: int, start: float, inner: float = 1.0) -> Drawer:
    """A drawer of a regular polygon, or of a star when every second corner lies further in."""

    def drawer(pen: ImageDraw.ImageDraw, middle: float, radius: float) -> None:
        points = []
        for k in range(corners):
            reach = radius * (inner if k % 2 else 1.0)
            angle = start + 2 * pi * k / corners
            points.append((middle + reach * sin(angle), middle - reach * cos(angle)))
        pen.polygon(points, fill=255)

    return drawer


def _circle(pen: ImageDraw.ImageDraw, middle: float, radius: float) -> None:
    reach = 0.9 * radius
    pen.ellipse((middle - reach, middle - reach, middle + reach, middle + reach), fill=255)


def _cross(pen: ImageDraw.ImageDraw, middle: float, radius: float) -> None:
    arm = 0.32 * radius
    pen.rectangle((middle - arm, middle - radius, middle + arm, middle + radius), fill=255)
    pen.rectangle((middle - radius, middle - arm, middle + radius, middle + arm), fill=255)


def _ring(pen: ImageDraw.ImageDraw, middle: float, radius: float) -> None:
    _circle(pen, middle, radius)
    hole = 0.5 * radius
    pen.ellipse((middle - hole, middle - hole, middle + hole, middle + hole), fill=0)


def _crescent(pen: ImageDraw.ImageDraw, middle: float, radius: float) -> None:
    pen.ellipse((middle - radius, middle - radius, middle + radius, middle + radius), fill=255)
    pen.ellipse((middle - 0.35 * radius, middle - 0.8 * radius, middle + 1.25 * radius, middle + 0.8 * radius), fill=0)


_SHAPES = (
    _circle,
    _polygon(4, pi / 4),
    _polygon(3, 0.0),
    _polygon(4, 0.0),
    _polygon(10, 0.0, 0.42),
    _cross,
    _ring,
    _crescent,
)

"""How files go bad: bytes, structure, values nobody expects, and things that are no files."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml
from PIL import Image

Rng = np.random.Generator

_DEEP: Any = 0
for _ in range(60):
    _DEEP = [_DEEP]

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**64 + 1, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", " ", "x", "x" * 20_000, "\x00", "\ud7ff", "=1+1", "<script>", "../../../etc/hostname",
    "/dev/zero", "nan", "2024-01-01", [], {}, [[]], [None], {"": {}}, [1, "a", None], _DEEP,
    {"name": "l2rm"}, {"name": "x"},
)  # fmt: skip


def damage(path: Path, rng: Rng) -> str:
    """Damage the file at `path`, or one in the folder there, in one of many ways; what was done, in words."""
    if path.is_dir():
        files = sorted(inner for inner in path.rglob("*") if inner.is_file())
        path = files[rng.integers(len(files))]
    ways: list[Callable[[Path, Rng], str]] = [_bytes, _bytes]
    ways += {
        ".json": [_json] * 4, ".jsonl": [_jsonl] * 4, ".yaml": [_yaml] * 4, ".parquet": [_parquet] * 4,
        ".npy": [_npy] * 3,
        ".safetensors": [_safetensors] * 4, ".pt": [_state] * 4, ".patch": [_patch] * 4, ".csv": [_lines] * 2,
        ".txt": [_lines] * 2, ".token": [_lines] * 2, ".tsv": [_lines] * 2,
        ".tar": [_tar] * 6, ".arrow": [_arrow] * 4, **dict.fromkeys((".png", ".jpg"), [_picture] * 4),
    }.get(path.suffix, [])  # fmt: skip
    if rng.random() < 0.08:
        return _no_file(path, rng)
    return ways[rng.integers(len(ways))](path, rng)


def _bytes(path: Path, rng: Rng) -> str:
    content = bytearray(path.read_bytes())
    reach = max(1, len(content) if rng.random() < 0.5 else min(len(content), 128))
    way = int(rng.integers(7))
    if way <= 2 and content:
        for _ in range(int(rng.integers(1, 5))):
            content[rng.integers(reach)] ^= int(rng.integers(1, 256))
    elif way == 3:
        del content[rng.integers(reach) :]
    elif way == 4:
        content += rng.bytes(int(rng.integers(1, 200)))
    elif way == 5:
        at = int(rng.integers(reach))
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    else:
        content = bytearray(rng.bytes(len(content)) if rng.random() < 0.5 else b"")
    path.write_bytes(bytes(content))
    return f"bytes, way {way}"


def _no_file(path: Path, rng: Rng) -> str:
    path.unlink()
    way = int(rng.integers(5))
    if way == 0:
        path.mkdir()
    elif way == 1:
        os.mkfifo(path)
    elif way == 2:
        path.symlink_to(path.name)
    elif way == 3:
        path.symlink_to("/dev/zero")
    return ("a folder", "a pipe", "a link to itself", "an endless device", "gone")[way]


def _odd(rng: Rng) -> Any:
    return ODD_VALUES[rng.integers(len(ODD_VALUES))]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value[:20]))
    return [path, *(place for key, child in inner for place in _places(child, (*path, key)))]


def change_value(value: Any, rng: Rng) -> tuple[Any, str]:
    """One value somewhere inside replaced by an odd one, or its key taken out or misspelt."""
    places = _places(value)
    place = places[rng.integers(len(places))]
    if not place:
        odd = _odd(rng)
        return odd, f"all of it is {repr(odd)[:40]}"
    holder = value
    for key in place[:-1]:
        holder = holder[key]
    where = ".".join(map(str, place))
    if isinstance(holder, dict) and rng.random() < 0.3:
        kept = holder.pop(place[-1])
        if rng.random() < 0.5:
            holder[f"{place[-1]}x"] = kept
        return value, f"without {where}"
    odd = _odd(rng)
    holder[place[-1]] = odd
    return value, f"{where} is {repr(odd)[:40]}"


_RAW_JSON = ("[" * 100_000, '{"a":' * 100_000, "9" * 6_000, '{"version": ' + "9" * 5_000 + "}", "﻿{}", "{}{}", "nul")
_RAW_YAML = (
    "train: {epochs: " + "9" * 6_000 + "}\n",
    "seed: 2024-01-01\n",
    "seed: 2024-01-01 99:99:99\n",
    "seed: " + "[" * 20_000 + "\n",
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "data: &d {path: *d}\n",
    "seed: !!python/object/apply:os.system ['exit 3']\n",
    "? [1, 2]\n: 3\n",
    "data: {path: 12}\n",
    "1: 2\n",
    "seed: 0x" + "f" * 4_000 + "\n",
    "<<: 3\n",
)


def _json(path: Path, rng: Rng) -> str:
    if rng.random() < 0.1:
        path.write_text(_RAW_JSON[rng.integers(len(_RAW_JSON))])
        return "raw"
    value, said = change_value(json.loads(path.read_text()), rng)
    path.write_text(json.dumps(value))
    return said


def _jsonl(path: Path, rng: Rng) -> str:
    lines = path.read_text().splitlines()
    at = int(rng.integers(len(lines)))
    if rng.random() < 0.1:
        lines[at] = _RAW_JSON[rng.integers(len(_RAW_JSON))]
        said = "raw"
    else:
        value, said = change_value(json.loads(lines[at]), rng)
        lines[at] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n")
    return f"line {at}: {said}"


def _yaml(path: Path, rng: Rng) -> str:
    if rng.random() < 0.3:
        way = int(rng.integers(len(_RAW_YAML)))
        path.write_text(_RAW_YAML[way])
        return f"raw {_RAW_YAML[way][:40]!r}"
    value, said = change_value(yaml.safe_load(path.read_text()), rng)
    path.write_text(json.dumps(value, allow_nan=True) if rng.random() < 0.5 else yaml.safe_dump(value))
    return said


def _lines(path: Path, rng: Rng) -> str:
    lines = path.read_bytes().splitlines(keepends=True)
    at = int(rng.integers(len(lines)))
    way = int(rng.integers(6))
    odd = (b"", b'"', b"\xff\xfe\n", b"\x00\n", b",,,,,\n", b"x" * 300_000 + b"\n")[way]
    lines[at] = odd if rng.random() < 0.5 else lines[at].rstrip(b"\n") + odd + b"\n"
    path.write_bytes(b"".join(lines))
    return f"line {at}, way {way}"


def _parquet(path: Path, rng: Rng) -> str:
    table, said = _change_column(pq.read_table(path), rng)
    pq.write_table(table, path)
    return said


def _arrow(path: Path, rng: Rng) -> str:
    with pa.OSFile(str(path), "rb") as source:
        table, said = _change_column(pa.ipc.open_stream(source).read_all(), rng)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return said


def _change_column(table: pa.Table, rng: Rng) -> tuple[pa.Table, str]:
    """One column dropped, called otherwise or full of something else; or rows missing or twice there."""
    at = int(rng.integers(table.num_columns))
    name, column = table.column_names[at], table.column(at)
    way = int(rng.integers(8))
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.rename_columns([f"{n}x" if n == name else n for n in table.column_names])
    elif way == 2:
        table = table.slice(0, int(rng.integers(0, table.num_rows)))
    elif way == 3:
        table = pa.concat_tables([table, table])
    else:
        rows = table.num_rows
        new = {
            4: pa.nulls(rows, column.type),
            5: pa.array([[1, 2]] * rows),
            6: pa.array([(-5, 2**62, 2**31, rows)[k % 4] for k in range(rows)], pa.int64()),
            7: pa.array([float("nan") if k % 2 else 1e300 for k in range(rows)]),
        }[way]
        if way == 6 and rng.random() < 0.5:
            new = pa.array([f"{k}" for k in range(rows)])
        table = table.set_column(at, name, new)
    return table, f"column {name}, way {way}"


def _npy(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    length = struct.unpack("<H", content[8:10])[0]
    header, body = content[10 : 10 + length].decode("latin1"), content[10 + length :]
    choices = (
        ("'descr': '<f4'", "'descr': '|O'"),
        ("'descr': '<f4'", "'descr': '<f8'"),
        ("'descr': '<f4'", "'descr': '<U9'"),
        ("'descr': '<f4'", "'descr': [('a', '<f4')]"),
        ("(", "(-"),
        ("(", "(99999999999, "),
        ("(", "(2**9999, "),
        ("False", "True"),
        ("{", "__import__('os').system('exit 3') or {"),
        ("'shape'", "'shap'"),
    )
    old, new = choices[rng.integers(len(choices))]
    header = header.rstrip().replace(old, new, 1)
    header += " " * (-(11 + len(header)) % 64) + "\n"
    path.write_bytes(content[:8] + struct.pack("<H", len(header)) + header.encode("latin1") + body)
    return f"header {new}"


def _safetensors(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    part = "__metadata__" if rng.random() < 0.6 and "__metadata__" in header else None
    value, said = change_value(header[part] if part else header, rng)
    if part:
        header[part] = value
    else:
        header = value
    text = json.dumps(header).encode()
    if rng.random() < 0.1:
        length, said = 2**60, "an endless header"
    else:
        length = len(text)
    path.write_bytes(struct.pack("<Q", length) + text + content[8 + struct.unpack("<Q", content[:8])[0] :])
    return f"{part or 'header'}: {said}"


def _state(path: Path, rng: Rng) -> str:
    state = torch.load(path, weights_only=True)
    value, said = change_value(state, rng)
    if isinstance(value, dict) and rng.random() < 0.2:
        tensors = [k for k in value if isinstance(value[k], dict)]
        if tensors:
            value[tensors[rng.integers(len(tensors))]] = torch.zeros(3)
            said += " and a tensor for a section"
    torch.save(value, path)
    return said


def _patch(path: Path, rng: Rng) -> str:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    way = int(rng.integers(4))
    said = f"way {way}"
    if way == 0:
        entries.pop(list(entries)[rng.integers(len(entries))])
    elif way == 1:
        entries["blob"] = bytes(200_000_000)  # a bomb: 200 KB here
    else:
        value, said = change_value(json.loads(entries["patch.json"]), rng)
        entries["patch.json"] = json.dumps(value).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return said


def _tar(path: Path, rng: Rng) -> str:
    """A member damaged as a file of its kind, missing, twice there, a link, or larger than it is by its header."""
    with tarfile.open(path) as tar:
        members = [(info, tar.extractfile(info).read()) for info in tar.getmembers() if info.isfile()]  # type: ignore[union-attr]
    at = int(rng.integers(len(members)))
    info, content = members[at]
    way = int(rng.integers(7))
    said = f"member {info.name}, way {way}"
    if way <= 2:
        with tempfile.TemporaryDirectory() as scratch:
            alone = Path(scratch) / f"member{Path(info.name).suffix}"
            alone.write_bytes(content)
            said = f"member {info.name}: {damage(alone, rng)}"
            content = alone.read_bytes() if alone.is_file() and not alone.is_symlink() else b""
        info.size = len(content)
        members[at] = info, content
    elif way == 3:
        del members[at]
    elif way == 4:
        members.append((info, content[::-1]))
    elif way == 5:
        info.type, info.size = (
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE)[rng.integers(4)],
            0,
        )
        info.linkname = ("/etc/hostname", members[0][0].name, "../x")[rng.integers(3)]
        members[at] = info, b""
    else:
        info.name = ("/dev/zero", "../" * 9 + "x.png", "", "a/" * 400 + "x.png", "\udcff.png", ".png")[rng.integers(6)]
    buffer = io.BytesIO()
    # Names that are long have no place in the oldest of the three formats.
    form = int(rng.integers(1 if max(len(info.name) for info, _ in members) > 90 else 0, 3))
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content) if info.isfile() else None)
    data = bytearray(buffer.getvalue())
    if rng.random() < 0.15:  # the size of the first member, and a sum that agrees
        data[124:136] = b"77777777777\0"
        data[148:156] = b" " * 8
        data[148:156] = b"%06o\0 " % sum(data[:512])
        said += ", and a first member of 8 GB"
    path.write_bytes(bytes(data))
    return said


def _picture(path: Path, rng: Rng) -> str:
    """Pictures that nobody expects, most of them good ones: of a colour space, a size or a length of its own."""
    mode = ("1", "L", "LA", "P", "RGBA", "CMYK", "I", "I;16", "F", "YCbCr")[rng.integers(10)]
    kinds = dict.fromkeys(("CMYK", "F", "I", "YCbCr"), "TIFF") | {"RGBA": "WEBP", "P": "GIF"}
    kind, out = kinds.get(mode, "PNG"), io.BytesIO()
    way = int(rng.integers(5))
    size = ((1, 1), (16_000, 1), (1, 3_000), (30_000, 4_000), (200, 150))[way]
    if way == 3 and rng.random() < 0.5:  # a size in the header alone
        Image.new("L", (8, 8)).save(out, "PNG")
        data = bytearray(out.getvalue())
        data[16:24] = struct.pack(">II", *((2**31 - 1, 2**31 - 1), (60_000, 60_000), size)[rng.integers(3)])
        data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
        path.write_bytes(bytes(data))
        return "a PNG that says it is large"
    if kind in ("WEBP", "GIF") and way == 3:
        size = (8_000, 8_000)
    options: dict[str, Any] = {"compression": "tiff_adobe_deflate"} if kind == "TIFF" else {}
    if kind == "GIF" and way != 3:
        options = {"save_all": True, "append_images": [Image.new(mode, size)] * 40}
    Image.new(mode, size).save(out, kind, **options)
    content = out.getvalue()
    if rng.random() < 0.3:
        content = content[: int(rng.integers(1, len(content) + 1))]
    path.write_bytes(content)
    return f"{kind}, {mode}, {size[0]} x {size[1]}, {len(content)} bytes"

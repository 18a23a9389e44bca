"""Good pictures, what encodes them and what that leaves: photos, weights, caches, indexes, embedded folders."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from tests.colours import write_colours
from tests.fuzz.target import Makers, Target, targets

_SHOWN = "{}/pairs.csv --images {}/photos"


def pictures(make: Makers, root: Path) -> list[Target]:
    """An index of pictures by an encoder alone, the cache it filled, and a folder of features."""
    write_colours(root, 24, 4)
    shown = (root / "pairs.csv", "--images", root / "photos", "--encoder", "basic")
    make.mispair("index", *shown, "-o", root / "index", cache=root / "cache")
    make.mispair("embed", *shown, "-o", root / "features", cache=root / "cache")
    again = f"index {_SHOWN} --encoder basic -o {{}}/index"
    kept = [str(file.relative_to(root)) for file in sorted((root / "cache").rglob("*.*"))]
    embedded = "pairs.parquet features.npy features_ids.txt texts.npy joint.npy encoder.json"
    asked = "index/centre.npy index/manifest.json index/img_emb/img_emb_0.npy index/metadata/metadata_0.parquet"
    return [
        *targets(root, [*kept, "index/manifest.json", "index/centre.npy"], again),
        *targets(root, asked, "search {}/index red"),
        *targets(
            root,
            (f"features/{file}" for file in embedded.split()),
            "check {}/features",
            "audit {}/features -o {}/out",
        ),
    ]


def photos(make: Makers, root: Path) -> list[Target]:
    """The pictures themselves, in several formats."""
    write_colours(root, 24, 4)
    for k, kind in enumerate(("JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")):
        path = root / f"photos/{k:03d}.png"  # whatever they are called
        made = io.BytesIO()
        Image.open(path).resize((64, 48)).save(made, kind)
        path.write_bytes(made.getvalue())
    shown = f"{_SHOWN} --encoder colours"
    for verb in ("audit", "index"):
        make.mispair(verb, *shown.replace("{}", str(root)).split(), "-o", root / verb)
    return [
        *targets(root, "photos pairs.csv", f"check {_SHOWN}", f"embed {shown} --missing skip -o {{}}/out"),
        *targets(root, "photos", "check {}/photos", f"audit {shown} --missing skip -o {{}}/out"),
        *targets(root, "photos", "report {}/audit --pictures {}/photos -o {}/out"),
        *targets(root, "photos/000.png", "search {}/index --image {}/photos/000.png"),
        *targets(root, "photos/001.png", "search {}/index --image {}/photos/001.png"),
    ]


def parts(make: Makers, root: Path) -> list[Target]:
    """What shards of an embedding leave, to be made one."""
    write_colours(root, 12, 2)
    for k in (1, 2):
        shown = (*_SHOWN.replace("{}", str(root)).split(), "--encoder", "colours")
        make.mispair("embed", *shown, "--shard", f"{k}/2", "-o", root / f"part-{k}")
    files = "shard.json encoder.json pairs.parquet features.npy features_ids.txt texts.npy joint.npy"
    return targets(root, (f"part-1/{name}" for name in files.split()), "merge {}/part-1 {}/part-2 -o {}/out")


def weights_of_both(make: Makers, root: Path) -> list[Target]:
    """Folders of weights of encoders that have one space for pictures and texts."""
    from tests.encoders import hubs

    write_colours(root, 6, 1)
    made = []
    for family in ("clip", "siglip"):
        getattr(hubs, family)(root / family)
        encode = f"embed {_SHOWN} --encoder {{}}/{family} -o {{}}/out"
        made += targets(root, _files(root / family), encode)
    return made


def weights_of_two(make: Makers, root: Path) -> list[Target]:
    """Folders of weights of an encoder of pictures and one of sentences."""
    from tests.encoders import hubs

    write_colours(root, 6, 1)
    hubs.dinov2(root / "dinov2")
    hubs.bert(root / "bert")
    hubs.as_sentence_encoder(root / "bert")
    encode = f"embed {_SHOWN} --encoder {{}}/dinov2+{{}}/bert -o {{}}/out"
    return targets(root, _files(root / "dinov2") + _files(root / "bert"), encode)


def towers(make: Makers, root: Path) -> list[Target]:
    """A run whose encoder learned, and the weights it began with."""
    from tests.encoders import hubs

    write_colours(root, 40, 4)
    hubs.clip(root / "clip")
    shown = _SHOWN.replace("{}", str(root)).split()
    short = ("--epochs", 1, "--batch-size", 8, "--method", "plain", "--tune", "lora", "--encoder", root / "clip")
    make.mispair("train", *shown, *short, "-o", root / "run", cache=root / "cache")
    files = ["run/model.safetensors", "run/config.yaml", *_files(root / "clip")]
    return targets(root, files, "evaluate {}/run", "export {}/run --to transformers -o {}/out")


def _files(folder: Path) -> list[str]:
    unused = ("sentences.txt", "spiece.vocab")
    inner = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in unused]
    return [str(path.relative_to(folder.parent)) for path in inner]

"""Which column of a table is what: the usual names are recognised, a doubt is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mispair.data.config import ColumnsConfig
from mispair.data.files.picture_folder import is_picture_name
from mispair.data.files.reading import some_names
from mispair.errors import InputError

# Names used by open_clip, img2dataset, clip-retrieval, DataComp, LAION, Hugging Face and Flickr30k, best first.
IMAGE = (
    *("image_id", "img_id", "imageid", "image", "img", "filepath", "file_path", "file_name", "filename"),
    *("image_path", "img_path", "image_file", "image_name", "path", "file", "key", "image_key", "uid"),
    *("image_url", "img_url", "url"),
)
# Of these, the ones that say where a file lies.
FILE = (
    "filepath",
    "file_path",
    "file_name",
    "filename",
    "image_path",
    "img_path",
    "image_file",
    "image_name",
    "path",
    "file",
)
CAPTION = ("caption", "captions", "title", "text", "sentence", "description", "alt_text", "alt", "raw", "comment")
SPLIT = ("split", "partition", "subset")
ID = ("pair_id", "caption_id", "sentid", "uid", "id")


@dataclass(frozen=True)
class Columns:
    """The columns used, by their names in the file."""

    image: str | None  # None where the pictures stand in the table and no column names them
    caption: str | None
    split: str | None
    id: str | None
    file: str | None = None  # where the picture lies, when another column than `image` says so
    picture: str | None = None  # the pictures themselves
    weights: str | None = None  # how much each pair counts
    vectors: str | None = None  # features of the images

    def note(self, file: str, header: list[str]) -> str:
        used = {"image": self.image, "caption": self.caption, "split": self.split, "id": self.id}
        used |= {"file": self.file, "pictures": self.picture, "weights": self.weights, "features": self.vectors}
        said = ", ".join(f"{role} from '{name}'" for role, name in used.items() if name is not None)
        rest = [name for name in header if name not in used.values()]
        return f"{file}: {said}" + (f"; not used: {some_names(rest, 6)}" if rest else "")


def recognise(
    header: list[str],
    wanted: ColumnsConfig,
    file: str,
    needs_caption: bool = True,
    pictures: Sequence[str] = (),
    weights: str | None = None,
) -> Columns:
    """The columns of `header`: those `wanted` names, the others by their usual names.

    Args:
        pictures: columns that hold pictures, the likeliest first; none of them can be a name.
        weights: the column of weights, where one is wanted.
    """
    repeated = sorted(name for name, times in Counter(header).items() if times > 1)
    if repeated:
        raise InputError(
            f"{file} has two columns called {some_names(repeated[:1])}; expected different names, so rename one"
        )
    caption = _named(header, wanted.caption, "caption", file) or _caption(header, wanted, file, needs_caption)
    picture = next((name for name in (wanted.image, *pictures) if name in pictures), None)
    rest = [name for name in header if name != caption and name not in pictures]
    image = _named(header, wanted.image, "image", file)
    image = _best(rest, IMAGE) if image is None or image in pictures else image
    if image is None and picture is None:
        raise InputError(
            f"{file} has the columns {some_names(header, 8)}; expected one for the image (such as image_id, filepath or"
            " file_name), so name it with columns.image (--image-column)"
        )
    rest = [name for name in rest if name != image]
    split = _named(header, wanted.split, "split", file) or _best(rest, SPLIT)
    pair = _named(header, wanted.id, "id", file) or _best(rest, ID)
    place = None if picture is not None or image in (None, wanted.image) else _best([str(image), *rest], FILE)
    counted = _named(header, weights, "weights", file)
    return Columns(image, caption, split, pair, None if place == image else place, picture, counted)


def _caption(header: list[str], wanted: ColumnsConfig, file: str, needed: bool) -> str | None:
    taken = {wanted.image, wanted.split, wanted.id}
    could = [name for name in header if name.lower() in CAPTION and name not in taken]
    if len(could) > 1:
        raise InputError(
            f"{file}: {some_names(could, 4)} could all be the caption; expected one, so name it with columns.caption"
            " (--caption-column)"
        )
    if not could and needed:
        named = "so name it with columns.caption (--caption-column)"
        if any(is_picture_name(name) for name in header):
            named = "so put a line with their names first, such as image,caption, if this is a pair already"
        raise InputError(
            f"{file} has the columns {some_names(header, 8)}; expected one for the caption (such as caption, title or"
            f" text), {named}"
        )
    return could[0] if could else None


def _named(header: list[str], name: str | None, role: str, file: str) -> str | None:
    if name is not None and name not in header:
        raise InputError(f"{file} has no column {name!r} for the {role}; expected one of {some_names(header, 8)}")
    return name


def _best(header: list[str], known: tuple[str, ...]) -> str | None:
    lower = {name.lower(): name for name in reversed(header)}
    return next((lower[name] for name in known if name in lower), None)

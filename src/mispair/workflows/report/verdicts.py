"""Verdicts as people hold them in Python: with the page they can write, and pictures in a notebook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mispair.atomic import write_text
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError
from mispair.report.page import render
from mispair.workflows.report.build import audited_data, page_of_audit
from mispair.workflows.report.find_pictures import PicturesById

_SIDE = 96  # pixels of a picture in a notebook


class VerdictsWithReport(Verdicts):
    """Verdicts that write their page; what `mispair.audit` and `mispair.quick_audit` return."""

    __slots__ = ()

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        *,
        pictures: str | os.PathLike[str] | None = None,
        allow_outside: bool = False,
        rows: int = 10_000,
    ) -> Path:
        """Write one self-contained HTML page: which pairs are wrong, what they should have been, how far to trust it.

        Args:
            path: where to write it; what is there is replaced.
            pictures: folder of the pictures, where they do not lie beside the data.
            allow_outside: whether the names of pictures may lead out of the folder in which they are looked up.
            rows: how many of the worst pairs the table holds.

        Returns:
            Where the page is.
        """
        place = None if pictures is None else Path(pictures)
        page = page_of_audit(self, pictures=place, allow_outside=allow_outside, rows=rows)
        write_text(Path(path), render(page))
        return Path(path)

    def _thumbnails(self, image_ids: Sequence[str]) -> dict[str, str]:
        try:
            config, split = audited_data(None, self)
            pictures = PicturesById(config, split, image_ids)
        except InputError:
            return {}
        made = {name: pictures.get(name, _SIDE) for name in image_ids}
        return {name: uri for name, uri in made.items() if uri}


def with_report(verdicts: Verdicts) -> VerdictsWithReport:
    """The same verdicts, able to write their page."""
    return VerdictsWithReport(verdicts.table, verdicts.facts)

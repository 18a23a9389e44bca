"""Pictures looked at once: kinds, sizes, broken ones and copies, counted by hand."""

from mispair.data.inspection.scan_pictures import scan_pictures
from mispair.pictures.decode import Broken
from tests.data.picture_samples import picture


class Shelf:
    def __init__(self, *files):
        self.files = files
        self.names = [f"{k}.png" for k in range(len(files))]

    def __len__(self):
        return len(self.files)

    def read(self, row):
        return self.files[row]

    def read_again(self, row):
        return ()


def test_counted_by_hand():
    one, two, three = picture(0), picture(1, "JPEG", (30, 12)), picture(2, size=(4, 40))
    told = []
    shelf = Shelf(one, two, one, b"no picture", three, two, one, Broken("gone"), one)
    found = scan_pictures(shelf, "train", lambda done, total: told.append((done, total)))
    assert found.facts.pictures == 9
    assert {kind.lower(): count for kind, count in found.facts.kinds.items()} == {"png": 5, "jpeg": 2}
    assert (found.facts.smallest, found.facts.largest, found.facts.broken) == (4, 40, 2)
    assert told == [(k, 9) for k in range(1, 10)]
    assert sorted(found.hashes.values()) == [0, 1, 4]
    broken, copies = found.findings
    assert (broken.count, broken.rows) == (2, (3, 7))
    assert "first '3.png', '7.png'" in broken.text
    assert "1 gone" in broken.text
    assert (copies.count, copies.rows) == (4, (2, 5, 6, 8))
    assert "4 pictures ('2.png', '5.png', '6.png') are copies" in copies.text


def test_good_pictures_are_no_finding():
    found = scan_pictures(Shelf(picture(0), picture(1)), "train")
    assert found.findings == ()
    assert scan_pictures(Shelf(), "train").facts.largest == 0


def test_one_is_not_spoken_of_as_many_and_no_split_is_not_called_all():
    (found,) = scan_pictures(Shelf(picture(), Broken("empty file")), "all").findings
    assert found.text.startswith("1 picture is broken (1 empty file)")
    (found,) = scan_pictures(Shelf(picture(), picture()), "dev").findings
    assert found.text.startswith("dev: 1 picture ('1.png') is a copy of an earlier one")

"""Judging in shards: the same command for every shard, twice, and `merge` after each round.

First round: every shard writes its statistics, `merge_shards` makes one calibration of them. Second round: every shard
is judged with it, `merge_shards` proposes partners from the whole set and writes the audit.
"""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np

from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted
from mispair.errors import InputError
from mispair.missing_path import is_missing
from mispair.progress import Tell, silent
from mispair.scale.calibration import calibrate_counts
from mispair.scale.evidence import BLOCK
from mispair.scale.frame import Frame, data_key, make_frame
from mispair.scale.judge_many import Judged, finish
from mispair.scale.rematch import HERE, Where
from mispair.scale.shard_folder import ShardFolder
from mispair.scale.statistics import Statistics, gather, load_statistics, save_statistics
from mispair.scale.vectors import PairVectors
from mispair.shell_word import in_shell
from mispair.workflows.pair_vectors import Subject, about_subject, open_vectors


def parse_shard(text: str) -> tuple[int, int]:
    """ "3/7" as (3, 7): the third of seven."""
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal()) or not 1 <= int(first) <= int(second) <= 99_999:
        raise InputError(f"a shard is i/n, the i-th of n counted from 1 such as 3/7, got {text!r}")
    return int(first), int(second)


class ShardJudge:
    """Judges shards of one data set into one folder; the data is opened, and the frame made, once.

    frame: of the same data, where somebody has made it already. Raises InputError where the data here is other.
    """

    def __init__(self, subject: Subject, of: int, folder: Path, frame: Frame | None = None) -> None:
        self.subject, self.of, self.place = subject, of, ShardFolder(folder)
        self.data = open_vectors(subject)
        self.frame = make_frame(self.data) if frame is None else same_data(self.data, frame)

    def judge(self, shard: int, tell: Tell = silent) -> str:
        """Statistics of a shard, or its verdicts where the calibration is there; a sentence that says what was done.

        What is there already is not done again. Raises InputError where the folder is of other data or another cut.
        """
        folder, of = self.place.path, self.of
        path = self.place.statistics(shard, of)
        if path.exists() and load_statistics(path).key != self.frame.key:
            raise InputError(
                f"{path} is of other data, or of vectors of another model; choose another folder with --statistics"
            )
        if not self.place.calibrated:
            if path.exists():
                self._say_of_what()
                return f"{path} is there already. {_once_all(of)}: mispair merge {in_shell(folder)}"
            rows = _rows(self._measure(shard, tell))
            return f"Statistics of {rows} are in {path}. {_once_all(of)}: mispair merge {in_shell(folder)}"
        calibrations, key, cut = self.place.load_calibration()
        if key != self.frame.key:
            raise InputError(
                f"{folder} holds the calibration of other data, or of vectors of another model; choose another folder"
                " with --statistics"
            )
        if cut != of:
            raise InputError(f"{folder} was calibrated with {cut} shards, not {of}; judge with --shard i/{cut}")
        statistics = load_statistics(path) if path.exists() else self._measure(shard, tell)  # as they were
        self._say_of_what()
        p = calibrations.full.p_mismatch(statistics.suspicion, statistics.crowd)
        self.place.save_verdicts(shard, of, statistics, p)
        return f"Shard {shard} of {of} is judged. When all are: mispair merge {in_shell(folder)} -o audit"

    def _measure(self, shard: int, tell: Tell) -> Statistics:
        statistics = gather(self.data, self.frame, tell, shard, self.of)
        self.subject.save(self.place.path)
        save_statistics(statistics, self.place.statistics(shard, self.of))
        return statistics

    def _say_of_what(self) -> None:
        if not Subject.file(self.place.path).exists():
            self.subject.save(self.place.path)


def judge_shard(subject: Subject, shard: tuple[int, int], folder: Path, tell: Tell = silent) -> str:
    """One pass over the i-th of n shards, into the folder they all meet in; a sentence that says what was done."""
    return ShardJudge(subject, shard[1], folder).judge(shard[0], tell)


def same_data(data: PairVectors, frame: Frame) -> Frame:
    """The frame, if it is of this data: a worker may see other files under the same name. Raises InputError else."""
    if data_key(data) != frame.key:
        raise InputError(
            f"{socket.gethostname()} sees other data under the same name, or other vectors of it, than who began; give"
            " all machines the same files"
        )
    return frame


def merge_shards(
    folder: Path, tell: Tell = silent, *, frame: Frame | None = None, where: Where = HERE
) -> Verdicts | str:
    """The next thing: a calibration of all statistics (a sentence says so), or the audit of all verdicts.

    Args:
        frame: of the data, where somebody has made it already.
        where: who seeks the proposals.

    Raises InputError where shards are missing, overlap or do not belong together; nothing is written then.
    """
    place = ShardFolder(folder)
    if not place.calibrated:
        whole, of = place.merge_statistics()
        frame = frame or make_frame(open_vectors(_subject_of(folder)))
        _refuse_other(frame.key, whole.key, folder)
        calibration = calibrate_counts(whole, frame.full, frame.near).full
        place.save_calibration(whole, of, frame)
        estimate = calibration.estimate
        rate, low, high = (f"{calibration.overall(p):.1%}" for p in (estimate.rate, estimate.low, estimate.high))
        return (
            f"{counted(of, 'shard')}, {counted(whole.pairs, 'pair')}: the estimated rate is {rate} ({low} to {high})."
            f" Judge every shard now, with the same command once more, then: mispair merge {in_shell(folder)} -o audit"
        )
    calibrations, key, of = place.load_calibration()
    if place.shards("verdicts") != of:
        raise InputError(f"{folder} was calibrated with {of} shards; judge with --shard i/{of}")
    full = calibrations.full
    table = place.load_verdicts(key, int(full.given.sum() + full.crowded.sum()))
    subject = _subject_of(folder)
    data = open_vectors(subject)
    frame = frame or make_frame(data)
    _refuse_other(frame.key, key, folder)
    columns = (table[name].to_numpy() for name in ("p_mismatch", "score", "caption_above", "image_above"))
    return finish(
        data,
        frame,
        calibrations,
        Judged(*(np.ascontiguousarray(column) for column in columns)),
        about_subject(subject),
        tell,
        where,
    )


def _subject_of(folder: Path) -> Subject:
    """What the shards in `folder` are of. Raises InputError where nobody says."""
    file = Subject.file(folder)
    if is_missing(file):
        raise InputError(
            f"{file} is missing, which says what the shards are of; copy it along with them, or give the command of a"
            " shard again"
        )
    return Subject.load(folder)


def _rows(statistics: Statistics) -> str:
    if statistics.start == statistics.stop:
        return f"no rows (shards are cut {BLOCK} pairs at a time)"
    return f"rows {statistics.start:,} to {statistics.stop - 1:,}"


def _once_all(of: int) -> str:
    return "Next" if of == 1 else f"When all {of} shards have theirs"


def _refuse_other(key: str, expected: str, folder: Path) -> None:
    if key != expected:
        raise InputError(
            f"the data that the shards of {folder} are of has changed, or what makes its vectors has; write the shards"
            " again"
        )

"""Judging more pairs than one process should hold: in shards, with one calibration, equal to one process on all."""

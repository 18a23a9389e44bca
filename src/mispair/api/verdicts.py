"""`mispair.Verdicts`: what an audit says of every pair."""

from mispair.workflows.report.verdicts import VerdictsWithReport as Verdicts

__all__ = ["Verdicts"]

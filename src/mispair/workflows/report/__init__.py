"""From a run or an audit folder to the content of its page."""

from mispair.workflows.report.build import build_page

__all__ = ["build_page"]

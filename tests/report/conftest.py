"""Run folders to make a page of."""

from support.builders.report_page import write_run

__all__ = ["write_run"]

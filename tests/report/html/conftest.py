"""Run folders to make a page of."""

from __future__ import annotations

from support.builders.report_page import told

__all__ = ["told"]

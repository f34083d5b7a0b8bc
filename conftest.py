"""What both ``tests`` and ``suites`` need, and pytest allows only here."""

from __future__ import annotations

pytest_plugins = ["pytester"]

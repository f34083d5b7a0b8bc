"""A whole qualification, four drives and two workloads: what it says, what it keeps, and that it leaves nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pytest_ssdqual.report.evidence import from_record
from pytest_ssdqual.rig.fio.output import parse
from rehearsed import SERIALS, Finished, Folder, Server, Start

pytestmark = pytest.mark.lab

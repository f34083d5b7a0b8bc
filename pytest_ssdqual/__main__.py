"""``python -m pytest_ssdqual``, where the script ``ssdqual`` is not on the path."""

from pytest_ssdqual.command import main

raise SystemExit(main())

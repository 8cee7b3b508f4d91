"""Code that the tests share: the goldens, and the command line to compare the module with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "golden"

#: The binary that cargo builds, if it is there: it starts in a tenth of the time.
BINARY = os.environ.get("TVMSPEC_BINARY")
COMMAND = [BINARY] if BINARY else [sys.executable, "-m", "tvmspec"]


@pytest.fixture
def golden() -> Path:
    return GOLDEN


def command_line(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in the root of the source tree."""
    return subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, check=False)

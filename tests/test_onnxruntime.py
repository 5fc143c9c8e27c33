"""onnxruntime returns the same, except in the known cases in which it departs from the operator text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 1500


@pytest.mark.parametrize("seed", range(2))
def test_onnxruntime_agrees(seed):
    pytest.importorskip("onnxruntime")
    command = [sys.executable, str(Path(__file__).parent / "onnxruntime_calls.py"), str(seed), str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["slice agrees"] + counts["slice differs at INT_MAX"] == COUNT
    assert counts["slice differs at INT_MAX"] > COUNT // 20
    assert counts["slice of a scalar refused"] == 1
    assert counts["split agrees"] > COUNT // 2
    assert counts["sequence_at agrees"] == COUNT

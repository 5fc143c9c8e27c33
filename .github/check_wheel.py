"""Check an installed wheel: it is the expected version, it copies, and what it should have compiled runs.

python check_wheel.py {kernels,pure} [VERSION]
"""

import sys

import numpy as np

import gpuslice as gs
from gpuslice.engine import calls

wanted, *version = sys.argv[1:]
if version and gs.__version__ != version[0].removeprefix("v"):
    raise SystemExit(f"the wheel is {gs.__version__}; expected {version[0]}")
x = np.arange(1 << 20, dtype=np.uint8)
with gs.trace() as t:
    y = gs.slice(x, [-1], [-(2**63)], steps=[-1])
if not np.array_equal(y, x[::-1]):
    raise SystemExit("the copy is wrong")
executors = {launch.executor for launch in t.launches}
if executors != {{"kernels": "host", "pure": "numpy"}[wanted]}:
    raise SystemExit(f"expected {wanted}; copied by {', '.join(sorted(executors))}")
if bool(calls.REASON) != (wanted == "pure"):
    raise SystemExit(f"expected {wanted}; the module for known calls: {calls.REASON or 'is here'}")
gs.show_config()

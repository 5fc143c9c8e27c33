"""The types of a user's program: mypy infers those of the arrays that go in, and finds wrong calls."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "data" / "user_program.py"
# A wrong call, and what mypy says of it.
WRONG = {
    'gs.slice(np.zeros(2), [0], [1], copy="yes")': 'Argument "copy" to "slice" has incompatible type "str"',
    "gs.slice(np.zeros(2), [0])": 'Missing positional argument "ends" in call to "slice"',
    "gs.split(np.zeros(2), num_outputs=[2])": 'Argument "num_outputs" to "split" has incompatible type "list[int]"',
    "gs.split(np.zeros(2), [1, 1])[0].no_such_name": 'has no attribute "no_such_name"',
    "gs.sequence_at(3, 0)": 'Argument 1 to "sequence_at" has incompatible type "int"',
    "gs.concat_from_sequence([np.zeros(2)])": 'Missing named argument "axis" for "concat_from_sequence"',
    "gs.contiguous([np.zeros(2)]).shape": 'has no attribute "shape"',
    "gs.slize": 'Module has no attribute "slize"',
}  # fmt: skip


@pytest.fixture(scope="module")
def messages(request, tmp_path_factory):
    """What mypy says of the program and of the wrong calls, by file and line."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("types")
    (folder / "wrong.py").write_text("\n".join(["import numpy as np, gpuslice as gs", *WRONG]))
    (folder / PROGRAM.name).write_text(PROGRAM.read_text())
    cache = request.config.cache.mkdir("mypy")
    options = ["--strict", "--no-pretty", "--hide-error-codes", "--config-file=", "--cache-dir", cache]
    command = [sys.executable, "-m", "mypy", *options, "wrong.py", PROGRAM.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found = [line.split(":", 2) for line in done.stdout.splitlines() if ": error: " in line]
    return {(file, int(line)): text for file, line, text in found}


def test_types_of_a_users_program(messages):
    assert [text for (file, _), text in messages.items() if file == PROGRAM.name] == []


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call_is_an_error(call, messages):
    assert WRONG[call] in messages["wrong.py", list(WRONG).index(call) + 2]

"""The pages: their Python and their commands run, in order, and show what is printed below them; links lead somewhere."""

import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import gpuslice
from gpuslice.onnx import Graph
from gpuslice.versions import OPERATORS, VERSIONS, newest

ROOT = Path(__file__).parent.parent
PAGES = {str(path.relative_to(ROOT)): path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]}
ON_A_GPU = {"docs/gpu.md"}
WITH_KERNELS = {"docs/copies.md"}
NEEDS = {"docs/jax.md": ["jax"], "docs/dask.md": ["dask.array", "zarr"], "docs/pytorch.md": ["torch"]}
# The text below a command is what it prints; other languages are not run.
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
LANGUAGES = {"python", "sh", "text", "diff"}
OURS = ("gpuslice", "kernels", "tests", "bench", "docs", "examples", ".github")
PACKAGE = Path(gpuslice.__file__).parent
MODULES = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")]


def blocks(path):
    """List the fenced blocks of a page as (language, text, the text printed below a command or None)."""
    text = path.read_text()
    found = list(FENCE.finditer(text))
    listed = []
    for match, following in zip_longest(found, found[1:]):
        printed = following and following[1] == "text" and not text[match.end() : following.start()].strip()
        listed.append((match[1], match[2], following[2] if printed else None))
    return listed


def needed(code):
    """List the packages that a block needs besides those of the tests: ``# needs: dask, zarr`` in its first line."""
    return re.findall(r"\w+", code.partition("\n")[0].removeprefix("# needs:")) if code.startswith("# needs:") else []


def run_python(code, names, page):
    """Run a block: a session with ``>>>`` must print what it shows, other code must not raise."""
    if not code.startswith(">>>"):
        exec(compile(code, page, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, 0)
    test.globs, failures = names, []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)


def run_commands(code, printed, folder):
    """Run the commands of gpuslice in a block; what is printed is compared, except for times."""
    output = ""
    for line in code.replace("\\\n", "").splitlines():
        for command in line.split(" && "):
            if command.startswith("gpuslice "):
                words = [sys.executable, "-m", *shlex.split(command)]
                done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
                output += done.stdout + done.stderr
                refused = printed is not None and printed.startswith("gpuslice: ")
                assert done.returncode == (2 if refused else 0), done.stderr
    if output and printed is not None:
        given, expected = (re.sub(r"[\d.]+ ms", "some ms", text) for text in (output, printed))
        assert doctest.OutputChecker().check_output(expected, given, doctest.ELLIPSIS), output


def has_kernels():
    """Return whether kernels copy NumPy arrays here."""
    with gpuslice.trace() as t:
        gpuslice.slice(np.zeros(1 << 20, np.uint8), [-1], [-(2**63)], steps=[-1])
    return t.launches[0].executor == "host"


@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=pytest.mark.gpu if name in ON_A_GPU else ()) for name in sorted(PAGES)]
)
def test_examples_run(page, tmp_path, monkeypatch):
    if page in WITH_KERNELS and not has_kernels():
        pytest.skip("the host kernels are not built")
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package, reason=f"{package.partition('.')[0]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {}
    for language, code, printed in blocks(PAGES[page]):
        if language == "python" and all(map(find_spec, needed(code))):
            run_python(code, names, page)
        elif language == "sh":
            run_commands(code, printed, tmp_path)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_nothing_escapes_the_examples(page):
    text = PAGES[page].read_text()
    assert text.count("```") == 2 * len(blocks(PAGES[page]))
    assert {language for language, _, _ in blocks(PAGES[page])} <= LANGUAGES


def anchors(path):
    """List the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_what_a_page_points_to_is_there(page):
    text, lost = FENCE.sub("", PAGES[page].read_text()), []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        path = PAGES[page].parent / target if target else PAGES[page]
        if ":" not in link and (not path.exists() or (anchor and anchor not in anchors(path))):
            lost.append(link)
    paths = [path for path in re.findall(r"`([\w.-]+/[\w./*-]*)`", text) if path.split("/")[0] in OURS]
    lost += [path for path in paths if not any(ROOT.glob(path.rstrip("/")))]
    assert not lost


def test_the_readme_says_what_its_lines_give():
    (code,) = (code for language, code, _ in blocks(PAGES["README.md"]) if language == "python")
    names = {}
    exec(code, names)
    x = names["x"]
    assert (names["flipped"] == x[::2, :, ::-1]).all()
    assert np.shares_memory(names["view"], x)
    assert [part.shape for part in (names["a"], names["b"])] == [(2, 2, 4), (2, 1, 4)]
    assert (names["left"] == x[..., :1]).all()
    assert (names["transposed"] == x.T).all()
    assert names["joined"].shape == (2, 4, 4)
    assert names["t"].allocations == [96]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_docstring_examples(module):
    if module == "gpuslice.engine.jax_arrays":
        pytest.importorskip("jax", reason="jax is not installed")
    needs_others = {
        "gpuslice.torch_tensors",
        *(f"gpuslice.engine.{name}" for name in ("cuda", "cuda_kernels", "torch_cuda")),
    }
    if module not in ("gpuslice.__main__", *needs_others):
        assert doctest.testmod(importlib.import_module(module)).failed == 0


X = np.arange(10, dtype=np.float32)
# opset, the graph's constants and nodes, what gpuslice returns (None: an error), what onnx.reference returns
DIFFERENCES = {
    "start below -d": (13, "int64[1] s = {-11}, int64[1] e = {-2147483648}, int64[1] a = {0}, int64[1] t = {-1}", "y = Slice(x, s, e, a, t)", [[0]], [[]]),
    "end INT_MAX": (13, "int64[1] s = {9}, int64[1] e = {2147483647}, int64[1] a = {0}, int64[1] t = {-1}", "y = Slice(x, s, e, a, t)", [[]], [[]]),
    "5 into 4": (18, "float[5] five = {0, 1, 2, 3, 4}", "y, b, c, d = Split<num_outputs = 4>(five)", None, [[0, 1]]),
    "10 into 3": (13, "", "y, b, c = Split(x)", None, [[0, 1, 2, 3]]),
    "insert at n": (13, "float[1] first = {0}, int64 p = {1}", "one = SequenceConstruct(x) two = SequenceInsert(one, first, p) y = SequenceAt(two, p)", [[0]], [[*range(10)]]),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENCES)
def test_onnx_reference_differs_as_the_page_says(case):
    opset, constants, nodes, ours, theirs = DIFFERENCES[case]
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    model = parser.parse_model(f"{header} g (float[10] x) => (float[n] y) <{constants}> {{ {nodes} }}")
    assert [array.tolist() for array in ReferenceEvaluator(model).run(None, {"x": X})] == theirs
    if ours is None:
        with pytest.raises(ValueError, match="^Split-1[38]"):
            Graph(model).run({"x": X})
    else:
        assert [array.tolist() for array in Graph(model).run({"x": X}).values()] == ours


def rows_of(page, heading):
    """List the cells of a Markdown table, given its heading."""
    text = PAGES[page].read_text()
    table = text[text.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


IMAGE = np.random.default_rng(0).integers(0, 256, (400, 600, 3), np.uint8)
RGBA = np.random.default_rng(1).integers(0, 256, (400, 600, 4), np.uint8)
# What the tables of images call by these names, if the library is installed. Pillow's are in the extra of tests.
NAMES = {
    "gpuslice": lambda: {"gs": gpuslice, "np": np},
    "NumPy": lambda: {"np": np},
    "OpenCV": lambda: {"cv2": importlib.import_module("cv2"), "np": np},
    "torchvision": lambda: {
        "F": importlib.import_module("torchvision.transforms.v2.functional"),
        "torch": importlib.import_module("torch"),
        "t": importlib.import_module("torch").from_numpy(IMAGE.transpose(2, 0, 1).copy()),
    },
    "Pillow": lambda: {
        "Image": importlib.import_module("PIL.Image"),
        "image": importlib.import_module("PIL.Image").fromarray(IMAGE),
    },
}


@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize(
    "heading",
    ["| what | gpuslice | NumPy | OpenCV | torchvision | Pillow |", "| what | gpuslice | NumPy | OpenCV |"],
    ids=["one", "several"],
)
def test_the_calls_of_a_row_of_images_give_the_same(heading, library):
    columns = [name.strip() for name in heading.strip("|").split("|")]
    if library not in columns:
        return
    try:
        names = NAMES[library]()
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")
    names |= {"x": IMAGE, "rgba": RGBA, "planes": [IMAGE[:, :, i].copy() for i in range(3)]}
    calls = 0
    for row in rows_of("docs/images.md", f"{heading}\n"):
        expected = eval(re.findall("`([^`]+)`", row[2])[0], names | {"np": np})
        for call in re.findall("`([^`]+)`", row[columns.index(library)]):
            given = eval(call, names)
            several = isinstance(given, (list, tuple, gpuslice.Sequence))
            result = np.stack([*given]) if several else np.asarray(given)
            if library == "torchvision":
                result = result.transpose(1, 2, 0)
            assert result.dtype == np.uint8
            assert np.array_equal(result, expected), call
            calls += 1
    assert calls >= len(rows_of("docs/images.md", f"{heading}\n")) - 3


def test_every_public_name_is_documented():
    text = PAGES["docs/usage.md"].read_text()
    assert not [name for name in ("slice", *gpuslice.__all__) if not re.search(rf"`(gs\.|gpuslice\.)?{name}\b", text)]


def test_each_function_is_documented_as_the_newest_version():
    operators = [operator for _, operator in rows_of("docs/usage.md", "| function | operator |")]
    names = [operator for operator in operators if not operator.startswith("not an operator")]
    assert names == [newest(name.split("-")[0]) for name in names]


def test_every_version_is_documented():
    rows = rows_of("docs/onnx.md", "| operator | versions |")
    found = {operator: [int(since) for since in re.findall(r"\d+", versions)] for operator, versions, _ in rows}
    assert found == {name: [v.since for v in VERSIONS if v.operator == name] for name in OPERATORS}

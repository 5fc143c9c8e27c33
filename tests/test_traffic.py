"""The model of memory traffic sees what it should, on cases whose numbers are known."""

import shutil
import sys

import pytest

from bench.cases import Case
from bench.traffic.__main__ import count
from bench.traffic.model import Cell

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the model is built by g++ on Linux"
)
SIZE = 1 << 20


def flat(items, _):
    return (items,)


@pytest.fixture(scope="module")
def rows():
    """Count all cases with one library: compiling takes the time."""
    cells = [
        Cell(Case("", "whole", flat, size=SIZE), 4),
        Cell(Case("", "every second", flat, (slice(None, None, 2),), size=SIZE), 16),
        Cell(Case("", "every fourth", flat, (slice(None, None, 4),), size=SIZE), 16),
        Cell(Case("", "from byte 1 on", flat, (slice(1, 1 - 16),), size=SIZE), 1),
        Cell(Case("", "to byte 1 on", flat, size=SIZE), 1, ahead=1),
        Cell(
            Case("", "rows of 255", lambda items, _: (items // 256, 256), (slice(None), slice(1, None)), size=SIZE), 1
        ),
        Cell(Case("", "transposed", lambda *_: (256, 256), transposed=True), 16),
    ]
    return {row.case: row for row in count(cells, 16)}


def test_a_whole_copy_is_all_there_is_to_do(rows):
    whole = rows["whole"]
    assert (whole.load, whole.load_used, whole.store) == (1, 1, 1)
    assert (whole.load_requests, whole.store_requests) == (1, 1)
    assert (whole.load_per_request, whole.store_per_request) == (16, 16)


@pytest.mark.parametrize("case", ["every second", "every fourth"])
def test_half_of_each_sector_is_wanted(rows, case):
    row = rows[case]
    assert (row.load, row.load_used, row.load_per_request) == (1, 0.5, 32)
    assert (row.store, row.store_per_request, row.store_requests) == (1, 16, 1)


def test_misaligned_vectors_are_read_as_two(rows):
    row = rows["from byte 1 on"]
    assert row.load == 1
    assert row.load_used == pytest.approx(512 / 513, abs=0.001)  # a block of 16 KiB begins and ends inside a sector
    assert row.load_requests == pytest.approx(2, abs=0.2)
    assert row.store == 1


def test_a_misaligned_target_takes_vectors_too(rows):
    assert rows["to byte 1 on"].store == pytest.approx(512 / 513, abs=0.001)
    assert rows["to byte 1 on"].store_requests < 1.2


def test_vectors_go_across_runs(rows):
    assert rows["rows of 255"].store == 1
    assert rows["rows of 255"].store_requests == pytest.approx(2, abs=0.2)  # each warp has one of them, apart


def test_tiles_waste_nothing_and_shared_memory_is_left_out(rows):
    row = rows["transposed"]
    assert (row.load, row.load_used, row.store) == (1, 1, 1)
    assert (row.load_requests, row.store_requests) == (1, 1)

"""The rules against what the operator texts say, element by element, over every small size and the extremes."""

from itertools import product

import pytest

from gpuslice import rules

EXTREMES = [-(2**63), -(2**31), 2**31 - 1, 2**63 - 1]
BOUNDS = [*range(-9, 10), *EXTREMES]
STEPS = [*(step for step in range(-4, 5) if step), *EXTREMES]


def text_of_slice_13(dim, start, end, step):
    """Return the elements of an axis that Slice-13's text selects, found one after the other."""
    if dim == 0:
        return []
    start = start + dim if start < 0 else start
    end = end + dim if end < 0 else end
    start = max(0, min(start, dim if step > 0 else dim - 1))
    end = max(0 if step > 0 else -1, min(end, dim if step > 0 else dim - 1))
    taken, at = [], start
    while at < end if step > 0 else at > end:
        taken.append(at)
        at += step
    return taken


def elements(region):
    """Return the elements of a region of rank 1."""
    (first,), (step,), (count,) = region
    return [first + step * k for k in range(count)]


@pytest.mark.parametrize("dim", range(7))
def test_slice_takes_what_the_text_says(dim):
    for start, end, step in product(BOUNDS, BOUNDS, STEPS):
        region = rules.slice_region((dim,), [start], [end], None, [step])
        assert elements(region) == text_of_slice_13(dim, start, end, step), (dim, start, end, step)
        assert region.step[0] == (step if region.shape[0] > 1 else 1)
        assert region.first[0] == 0 or region.shape[0] > 0


def test_slice_keeps_axes_that_are_not_named():
    region = rules.slice_region((4, 5, 6), [3, 1], [-9, 4], [-1, 0], [-1, 2])
    assert region == rules.Region((1, 0, 3), (2, 1, -1), (2, 5, 4))


def test_slice_has_steps_of_one_by_default():
    assert rules.slice_region((9,), [2], [7]) == rules.Region((2,), (1,), (5,))
    assert rules.slice_region((9,), [], []) == rules.whole((9,)) == rules.Region((0,), (1,), (9,))


def test_slice_of_fewer_starts_than_axes_takes_the_first_ones():
    assert rules.slice_region((4, 5), [1], [3]) == rules.slice_region((4, 5), [1], [3], [0])


REGIONS = [
    rules.slice_region((dim,), [start], [end], None, [step])
    for dim in range(6)
    for start, end, step in product(range(-6, 7), range(-7, 7), (-3, -2, -1, 1, 2, 3))
]


def test_compose_is_slicing_twice():
    outers = {region: elements(region) for region in REGIONS}
    inners = {region.shape[0]: {} for region in REGIONS}
    for dim, start, end, step in product(inners, range(-6, 7), range(-7, 7), (-2, -1, 1, 3)):
        region = rules.slice_region((dim,), [start], [end], None, [step])
        inners[dim][region] = elements(region)
    for outer, taken in outers.items():
        for inner, again in inners[len(taken)].items():
            both = rules.compose(outer, inner)
            assert elements(both) == [taken[k] for k in again]
            assert both.shape[0] > 1 or both.step == (1,)
            assert both.shape[0] > 0 or both.first == (0,)


def test_compose_composes_each_axis():
    outer = rules.slice_region((9, 9), [8, 1], [-99, 9], [0, 1], [-2, 3])
    inner = rules.slice_region(outer.shape, [1, 2], [4, -99], [0, 1], [1, -1])
    assert rules.compose(outer, inner) == rules.Region((6, 7), (-2, -3), (3, 3))


def test_compose_of_two_ranks_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        rules.compose(rules.slice_region((9, 9), [1, 1], [9, 9]), rules.whole((8,)))


def deal(dim, chunk):
    """Return the sizes of parts, counted item by item: a new part begins when the last one has ``chunk`` items."""
    parts = []
    for _ in range(dim):
        if not parts or parts[-1] == chunk:
            parts.append(0)
        parts[-1] += 1
    return parts


@pytest.mark.parametrize("outputs", range(1, 13))
def test_split_sizes(outputs):
    for dim in range(40):
        chunk = next(size for size in range(dim + 1) if size * outputs >= dim)
        if chunk * (outputs - 1) > dim:
            with pytest.raises(ValueError, match="num_outputs must not make the last chunk"):
                rules.num_outputs_sizes(dim, outputs)
        else:
            dealt = deal(dim, chunk)
            assert list(rules.num_outputs_sizes(dim, outputs)) == dealt + [0] * (outputs - len(dealt))
        if dim % outputs:
            with pytest.raises(ValueError, match="outputs cannot be equal"):
                rules.equal_sizes(dim, outputs)
        else:
            equal = rules.equal_sizes(dim, outputs)
            assert list(equal) == [dim // outputs] * outputs
            assert {type(size) for size in equal} == {int}
        assert list(rules.chunk_sizes(dim, outputs)) == deal(dim, outputs)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (rules.EqualSizes(7, 3, 3), [3, 3, 1]),
        (rules.EqualSizes(6, 3, 2), [3, 3]),
        (rules.EqualSizes(2, 1, 3), [1, 1, 0]),
        (rules.EqualSizes(5, 9, 1), [5]),
        (rules.EqualSizes(0, 4, 0), []),
    ],
)
def test_equal_sizes_are_a_sequence(sizes, expected):
    assert (len(sizes), list(sizes), list(reversed(sizes))) == (len(expected), expected, expected[::-1])
    assert [sizes[i] for i in range(-len(expected), len(expected))] == expected * 2
    assert (sizes[:2], sizes[::-1]) == (tuple(expected[:2]), tuple(expected[::-1]))
    for outside in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            sizes[outside]


def test_billions_of_sizes_take_no_memory():
    most = 2**31 - 1
    for sizes, first, last in [
        (rules.num_outputs_sizes(0, most), 0, 0),
        (rules.num_outputs_sizes(most * 5, most), 5, 5),
        (rules.equal_sizes(most * 3, most), 3, 3),
        (rules.chunk_sizes(2**63 - 1, 1), 1, 1),
        (rules.chunk_sizes(2**63 - 1, 2), 2, 1),
    ]:
        assert (next(iter(sizes)), sizes[0], sizes[-1]) == (first, first, last)
    assert len(rules.chunk_sizes(2**63 - 1, 1)) == 2**63 - 1


def test_as_many_num_outputs_are_impossible_as_the_engines_refuse():
    impossible = 0
    for dim, outputs in product(range(40), range(1, 13)):
        try:
            rules.num_outputs_sizes(dim, outputs)
        except ValueError:
            impossible += 1
    assert impossible == 166


def test_listed_sizes_may_be_zero():
    assert list(rules.listed_sizes(5, [2, 0, 3])) == [2, 0, 3]
    assert list(rules.listed_sizes(0, [0], 1)) == [0]
    assert list(rules.listed_sizes(0, [])) == []


@pytest.mark.parametrize("axis", range(3))
def test_split_regions_lie_side_by_side(axis):
    shape = [2, 3, 4]
    shape[axis] = 7
    regions = list(rules.split_regions(tuple(shape), axis, [2, 0, 5]))
    expected = []
    for start, size in ((0, 2), (0, 0), (2, 5)):
        first = [0, 0, 0]
        first[axis] = start
        expected.append(rules.Region(tuple(first), (1, 1, 1), (*shape[:axis], size, *shape[axis + 1 :])))
    assert regions == expected


@pytest.mark.parametrize("rank", range(4))
def test_axes(rank):
    for axis in range(-5, 6):
        if -rank <= axis < rank:
            assert rules.normalize_axis(axis, rank) == range(rank)[axis]
        else:
            with pytest.raises(ValueError, match=f"^axis must .*; got {axis}$"):
                rules.normalize_axis(axis, rank)


EMPTY = "name a tensor, but the sequence is empty"


@pytest.mark.parametrize("length", range(5))
@pytest.mark.parametrize("end", [False, True])
def test_positions(length, end):
    places = list(range(length)) + ([length] if end else [])
    for position in range(-7, 8):
        if -length <= position < 0:
            assert rules.normalize_position(position, length, end=end) == range(length)[position]
        elif position in places:
            assert rules.normalize_position(position, length, end=end) == position
        else:
            with pytest.raises(IndexError) as raised:
                rules.normalize_position(position, length, end=end)
            allowed = f"be in [{-length}, {places[-1]}] for a sequence of length {length}" if places else EMPTY
            assert str(raised.value) == f"position must {allowed}; got {position}"


def test_the_end_is_no_position_by_default():
    with pytest.raises(IndexError):
        rules.normalize_position(2, 2)


ERRORS = [
    (lambda: rules.slice_region((3, 3, 3), [0, 0], [1, 1], [0, 5]), "axes must be in [-3, 2] for rank 3; got 5 in axes=[0, 5]"),
    (lambda: rules.slice_region((3,), [0], [1], None, [0]), "steps must not be 0; got 0 in steps=[0]"),
    (lambda: rules.slice_region((0,), [0], [1], None, [0]), "steps must not be 0; got 0 in steps=[0]"),
    (lambda: rules.slice_region((3, 3), [0, 0], [1, 1], [1, -1]), "axes must name different axes; got axes=[1, -1], which are both axis 1"),
    (lambda: rules.slice_region((3, 3), [0] * 3, [1] * 3, [0, 1, -2]), "axes must name different axes; got axes=[0, 1, -2], of which 0 and -2 are both axis 0"),
    (lambda: rules.slice_region((3, 3), [0] * 4, [1] * 4, [1, -2, 0, -2]), "axes must name different axes; got axes=[1, -2, 0, -2], of which -2 and 0 are both axis 0"),
    (lambda: rules.slice_region((3, 3), [0], [1], [0, 1]), "axes must have as many values as starts, 1; got axes=[0, 1]"),
    (lambda: rules.slice_region((3, 3), [0], [1], [0], [1, 2]), "steps must have as many values as starts, 1; got steps=[1, 2]"),
    (lambda: rules.slice_region((3,), [0, 0], [1, 1]), "starts must have at most 1 values for rank 1 if axes are omitted; got starts=[0, 0]"),
    (lambda: rules.slice_region((3,), [0], [1, 2]), "ends must have as many values as starts, 1; got ends=[1, 2]"),
    (lambda: rules.slice_region((3,), list(range(20)), [1]), "ends must have as many values as starts, 20; got ends=[1]"),
    (lambda: rules.slice_region((3,), [1], list(range(20))), "ends must have as many values as starts, 1; got ends=[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
    (lambda: rules.slice_region((), [0], [1], [0]), "axes must name an axis, but rank 0 has no axes; got 0 in axes=[0]"),
    (lambda: rules.slice_region((3,), [1], list(range(8))), "ends must have as many values as starts, 1; got ends=[0, 1, 2, 3, 4, 5, 6, 7]"),
    (lambda: rules.normalize_axis(2**128 - 1, 2), f"axis must be in [-2, 1] for rank 2; got {2**128 - 1}"),
    (lambda: rules.normalize_axis(-(2**128), 2), "axis must be in [-2, 1] for rank 2; got an int of 129 bits"),
    (lambda: rules.normalize_axis(-3, 2), "axis must be in [-2, 1] for rank 2; got -3"),
    (lambda: rules.listed_sizes(5, [2, -1, 4]), "split must not be negative; got split=[2, -1, 4]"),
    (lambda: rules.listed_sizes(5, [2, 2]), "split must add up to the length of the axis, 5; got 4 from split=[2, 2]"),
    (lambda: rules.listed_sizes(8, [2, 5]), "split must add up to the length of the axis, 8; got 7 from split=[2, 5]; as positions, which numpy.split takes, they are split=[2, 3, 3]"),
    (lambda: rules.listed_sizes(8, [1]), "split must add up to the length of the axis, 8; got 1 from split=[1]; as positions, which numpy.split takes, they are split=[1, 7]"),
    (lambda: rules.listed_sizes(5, []), "split must add up to the length of the axis, 5; got 0 from split=[]"),
    (lambda: rules.listed_sizes(5, [2, 3], 3), "split must have 3 values, one per output; got split=[2, 3]"),
    (lambda: rules.num_outputs_sizes(5, 4), "num_outputs must not make the last chunk of an axis of length 5 negative; got 4: 3 chunks of 2 leave -1"),
    (lambda: rules.num_outputs_sizes(5, 0), "num_outputs must be at least 1 and at most 2147483647; got 0"),
    (lambda: rules.chunk_sizes(5, 0), "split must be at least 1 if it is a scalar; got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_errors_say_what_was_given_and_what_is_allowed(call, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
        call()
    assert str(raised.value) == message

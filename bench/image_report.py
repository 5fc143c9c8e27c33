"""The table of the cases of images: milliseconds beside those of other libraries, and a summary by what is done."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from bench.cases import CASES
from bench.measure import MODES
from bench.numbers import NOISE, TITLES, Numbers, line, runners_of, seconds_of, table
from bench.runners import OURS, PLAIN

CASE_OF = {case.name: case for case in CASES if case.recipe}
_OUTPUTS = {"into": "existing", "fresh": "new"}
_READING = (
    f"Milliseconds per call; each is a median of rounds in which all libraries take turns. {PLAIN} is a plain copy of "
    f"as many bytes. Share is the time of the fastest other library divided by that of {OURS}: above 1 {OURS} is the "
    f"fastest. **Bold**: the share is below {NOISE}, which is outside the noise. A dash: the library cannot do it."
)


def section(result: dict[str, Any]) -> str:
    """Return the tables and what is missing in them; an empty string for a result without images."""
    found = list(_cells(result))
    if not found:
        return ""
    names = runners_of([{(case.name, width): times for case, width, _, times in found}])
    head = ["image", "channels", "bytes per channel", "outputs", *names, "share"]
    rows = []
    for case, width, mode, times in found:
        numbers = [_milliseconds(times, name) for name in names]
        rows.append(line([case.recipe, case.channels, width, _OUTPUTS[mode], *numbers, marked_share(times)]))
    shares = [share for *_, times in found if (share := share_of(times))]
    behind = sum(share < NOISE for share in shares)
    count = f"Another library is ahead by more than the noise in {behind} of {len(shares)} rows."
    return "\n\n".join([_READING, _summary(found), count, table(head, rows)])


def share_of(times: Numbers) -> float | None:
    """Return the time of the fastest other library by that of gpuslice; None if there are no two of them."""
    peers = [seconds for name, seconds in times.items() if name not in (OURS, PLAIN)]
    return min(peers) / times[OURS] if peers and OURS in times else None


def _cells(result: dict[str, Any]) -> Iterator[tuple[Any, int, str, Numbers]]:
    """Yield case, width, outputs and seconds by library, the rows of a case one below the other."""
    by_mode = {mode: seconds_of(result, mode) for mode in MODES}
    for key in dict.fromkeys(key for found in by_mode.values() for key in found):
        for mode in MODES:
            if key[0] in CASE_OF and by_mode[mode].get(key):
                yield CASE_OF[key[0]], key[1], mode, by_mode[mode][key]


def _summary(found: Sequence[tuple[Any, int, str, Numbers]]) -> str:
    """Return the geometric mean of the shares, and the lowest one, by what is done and whether outputs exist."""
    shares: dict[str, dict[str, list[float]]] = {}
    for case, _, mode, times in found:
        if share := share_of(times):
            shares.setdefault(case.recipe, {}).setdefault(mode, []).append(share)
    rows = []
    for recipe, by_mode in shares.items():
        values = [by_mode.get(mode) for mode in MODES]
        rows.append(line([recipe, *("-" if v is None else f"{geometric_mean(v):.2f} ({min(v):.2f})" for v in values)]))
    return table(["share: mean (lowest)", *(TITLES[mode].lower() for mode in MODES)], rows)


def _milliseconds(times: Numbers, name: str) -> str:
    if name not in times:
        return "-"
    return short(1e3 * times[name])


def short(value: float) -> str:
    """Return a number of three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def marked_share(times: Numbers) -> str:
    """Return the share of a row as the tables show it."""
    share = share_of(times)
    if share is None:
        return "-"
    return f"**{share:.2f}**" if share < NOISE else f"{share:.2f}"

"""The text form of usage curves, as annotations and profiles write it.

::

    250m, 1.5, 200Mi                        always that much
    60%                                     that share of the container's request
    steps(0s=100m, 5m=800m, 15m=100m)       each amount holds from its time on
    ramp(0s=100m, 10m=1, every=20m)         straight lines between the points, here again every 20 minutes
    steps(0s=20%, 8h=90%, from=2026-01-01T00:00:00Z)    times count from then, not from the container's start
    diurnal(100m, 800m, peak=14h)           lowest and highest amount, and the time of day (UTC) of the highest
    diurnal(20%, 80%, period=1h, peak=10m)  the same with a day of one hour
    noise(60%, 20%)                         any of these, swinging by up to 20 % of its course
    noise(ramp(0s=0, 10m=1), 5%, every=2m)  with slower swings; the default is 30s
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from holokube.hollow.usage_curves import Constant, Curve, Diurnal, Noise, Piecewise
from holokube.kube.quantity import QuantityError, parse
from holokube.kube.timeformat import TimeFormatError, parse_duration, parse_time

DEFAULT_NOISE_EVERY_S = 30.0
_KINDS = "steps, ramp, diurnal, noise"


class CurveError(ValueError):
    """A curve that cannot be understood; the message says what and where."""


Phases = Callable[[], tuple[float, float, float]]


def parse_curve(text: str, *, request: float, phases: Phases) -> Curve:
    """Reads a curve. ``request`` is what 100 % stands for; ``phases`` is asked only where there is noise."""
    return _curve(text, request, phases, inside_noise=False)


@lru_cache(maxsize=4096)
def check_curve(text: str) -> str:
    """What is wrong with a curve; empty if nothing is."""
    try:
        parse_curve(text, request=1.0, phases=lambda: (0.0, 0.0, 0.0))
    except CurveError as error:
        return str(error)
    return ""


def _curve(text: str, request: float, phases: Phases, *, inside_noise: bool) -> Curve:
    text = text.strip()
    name, opening, rest = text.partition("(")
    if not opening:
        return Constant(_amount(text, request))
    if not rest.endswith(")"):
        raise CurveError(f"{text!r} has no closing bracket at its end")
    plain, named = _arguments(rest[:-1])
    name = name.strip()
    if name in ("steps", "ramp"):
        if plain:
            raise CurveError(f"{name}: {plain[0]!r} has no time; write it as 5m=800m")
        return _piecewise(name, named, request)
    options = dict(named)
    if len(options) != len(named):
        raise CurveError(f"{name}: an option is given twice")
    if name == "diurnal":
        return _diurnal(plain, options, request)
    if name == "noise":
        if inside_noise:
            raise CurveError("noise cannot be put into noise")
        return _noise(plain, options, request, phases)
    raise CurveError(f"there is no curve {name!r}; use an amount, or one of {_KINDS}")


def _arguments(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Splits at the commas that are not inside brackets; ``key=value`` pairs apart from the rest."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            raise CurveError(f"{text!r} has a bracket too many")
        if character == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    if depth:
        raise CurveError(f"{text!r} has a bracket that is not closed")
    parts.append(text[begin:])
    plain: list[str] = []
    named: list[tuple[str, str]] = []
    for part in map(str.strip, parts):
        key, equals, value = part.partition("=")
        if equals and "(" not in key:
            named.append((key.strip(), value.strip()))
        elif part:
            plain.append(part)
        else:
            raise CurveError(f"{text!r} has an empty argument")
    return plain, named


def _amount(text: str, request: float) -> float:
    text = text.strip()
    if text.endswith("%"):
        return _share(text) * request
    try:
        value = float(parse(text))
    except (QuantityError, OverflowError):
        raise CurveError(
            f"{text!r} is neither a quantity such as 250m or 200Mi, nor a share such as 60%, nor one of {_KINDS}"
        ) from None
    if value < 0:
        raise CurveError(f"{text!r} is negative")
    if value > 1e18:
        raise CurveError(f"{text!r} is more than any machine has")
    return value


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e6 or not text.endswith("%"):
        raise CurveError(f"{text!r} is not a share such as 60%")
    return value


def _duration(what: str, text: str, *, above_zero: bool = False) -> float:
    try:
        value = parse_duration(text)
    except ValueError:
        raise CurveError(f"{what}: {text!r} is not a duration such as 5m30s") from None
    if value < 0 or (above_zero and value == 0):
        raise CurveError(f"{what}: {text!r} must be {'above zero' if above_zero else 'at least zero'}")
    return value


def _piecewise(name: str, named: Sequence[tuple[str, str]], request: float) -> Curve:
    every_s, from_s = 0.0, None
    points: list[tuple[float, float]] = []
    for key, value in named:
        if key == "every":
            every_s = _duration(f"{name}: every", value, above_zero=True)
        elif key == "from":
            from_s = _moment(name, value)
        else:
            points.append((_duration(name, key), _amount(value, request)))
    if not points:
        raise CurveError(f"{name} needs at least one point, such as 0s=100m")
    times = [time_s for time_s, _ in points]
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise CurveError(f"{name}: the times must rise from point to point")
    if every_s and times[-1] >= every_s:
        raise CurveError(f"{name}: a point lies at or after the end of its period, every={every_s:g}s")
    return Piecewise(tuple(points), name == "ramp", every_s, from_s)


def _moment(name: str, text: str) -> float | None:
    if text == "start":
        return None
    try:
        return parse_time(text).timestamp()
    except TimeFormatError:
        raise CurveError(
            f"{name}: from={text!r} is neither start nor a time such as 2026-01-01T00:00:00Z"
        ) from None


def _refuse_others(name: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    for key in options:
        if key not in known:
            raise CurveError(f"{name} has no option {key!r}; it knows {' and '.join(known)}")


def _diurnal(plain: Sequence[str], options: Mapping[str, str], request: float) -> Curve:
    _refuse_others("diurnal", options, ("peak", "period"))
    if len(plain) != 2:
        raise CurveError("diurnal needs two amounts, the lowest and the highest")
    low, high = _amount(plain[0], request), _amount(plain[1], request)
    # A share and a quantity compare one way or the other, depending on the request; that is no mistake.
    if low > high and plain[0].endswith("%") == plain[1].endswith("%"):
        raise CurveError("diurnal: the lowest amount comes first")
    low, high = min(low, high), max(low, high)
    period_s = _duration("diurnal: period", options.get("period", "24h"), above_zero=True)
    peak_s = _duration("diurnal: peak", options["peak"]) if "peak" in options else period_s * 14 / 24
    return Diurnal(low, high, peak_s, period_s)


def _noise(plain: Sequence[str], options: Mapping[str, str], request: float, phases: Phases) -> Curve:
    _refuse_others("noise", options, ("every",))
    if len(plain) != 2:
        raise CurveError("noise needs a curve and a share, such as noise(250m, 20%)")
    share = _share(plain[1].strip())
    if share > 1:
        raise CurveError(f"noise: {plain[1]!r} is more than 100%, and usage cannot be negative")
    every_s = _duration("noise: every", options["every"], above_zero=True) if "every" in options else (
        DEFAULT_NOISE_EVERY_S
    )
    return Noise(_curve(plain[0], request, phases, inside_noise=True), share, every_s, phases())

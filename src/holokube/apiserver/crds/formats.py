"""The string formats that upstream checks; all others are only documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from holokube.kube import timeformat

Check = Callable[[str], bool]

_UUID = r"[0-9a-fA-F]{{8}}-?[0-9a-fA-F]{{4}}-?{0}-?{1}-?[0-9a-fA-F]{{12}}"
_HEX4 = "[0-9a-fA-F]{4}"
_VARIANT = "[89abAB][0-9a-fA-F]{3}"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_SCALA_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_SCALA_UNITS = (
    ("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"), ("h", "hr", "hour"),
    ("d", "day"), ("w", "wk", "week"),
)  # fmt: skip
_ATOM = r"[^\s\x00-\x1f\x7f()<>\[\]:;@\\,.\"]+"
_ADDRESS = re.compile(
    rf"(?:{_ATOM}(?:\.{_ATOM})*|\"(?:[^\"\\]|\\.)*\")@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\\s]*\])"
)
_HOST_LETTER = r"[^\W_]"
_HOSTNAME = re.compile(
    rf"({_HOST_LETTER}((-?{_HOST_LETTER}{{0,62}})?)"
    rf"|({_HOST_LETTER}(([^\W_]|-){{0,61}}{_HOST_LETTER})?\.)+[^\W\d_]{{2,63}})"
)
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})",
    re.ASCII,
)
_RGB_PART = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _matches(pattern: str) -> Check:
    full = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: full(text) is not None


def is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return text.startswith("0000-") and is_date("2000" + text[4:])
    return True


def is_date_time(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    clock = _TIME.fullmatch(rest.split("t")[0])
    if not separator or clock is None or not is_date(day):
        return False
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def is_duration(text: str) -> bool:
    """Go's form, or words such as ``3 days``."""
    try:
        timeformat.parse_duration_ns(text)
    except ValueError:
        return any(_is_unit(unit.lower()) for _, unit in _SCALA_DURATION.findall(text))
    return True


def _is_unit(unit: str) -> bool:
    return any(unit in variants or unit.startswith(variants[-1]) for variants in _SCALA_UNITS)


def is_ipv4(text: str) -> bool:
    return "." in text and _is_sloppy_ip(text)


def _is_sloppy_ip(text: str) -> bool:
    plain = re.sub(r"(?<![0-9a-fA-F:.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])", "", text)
    if "%" in text:
        return False
    try:
        ip_address(plain)
    except ValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    if "%" in text:
        return False
    try:
        return isinstance(ip_address(text), IPv6Address)
    except ValueError:
        return False


def is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch(r"\d{1,3}", length, re.ASCII) or not _is_sloppy_ip(address):
        return False
    return int(length) <= (128 if ":" in address else 32)


def is_email(text: str) -> bool:
    """A bare address, or a name followed by one in angle brackets."""
    found = re.fullmatch(r"[^<>@]*<([^<>]+)>\s*", text)
    return _ADDRESS.fullmatch(found[1] if found is not None else text.strip()) is not None


def is_uri(text: str) -> bool:
    """What may stand in an HTTP request: an absolute URI or an absolute path."""
    if not text or re.search(r"[\x00-\x20\x7f]", text) or re.search(r"%(?![0-9A-Fa-f]{2})", text):
        return False
    if text.startswith("/"):
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*", scheme) or not rest:
        return False
    try:
        _ = urlsplit(text).port
    except ValueError:
        return False
    return True


def is_hostname(text: str) -> bool:
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) > 255 or any(len(label) > 63 for label in encoded.split(b".")):
        return False
    return _HOSTNAME.fullmatch(text) is not None


def is_mac(text: str) -> bool:
    if re.fullmatch(r"[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4})+", text):
        return text.count(".") in (2, 3, 9)
    if re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})+|[0-9a-fA-F]{2}(-[0-9a-fA-F]{2})+", text):
        return len(text) in (17, 23, 59)
    return False


def is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits, re.ASCII):
        return False
    return sum((i + 1) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits, re.ASCII):
        return False
    return (10 - sum((1, 3)[i % 2] * int(d) for i, d in enumerate(digits[:12])) % 10) % 10 == int(digits[12])


def is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_ssn(text: str) -> bool:
    return len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None


def is_short_name(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(_SHORT_NAME, text, re.ASCII) is not None


def is_long_name(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", text, re.ASCII) is not None


# The keys have no dashes: upstream ignores those in the names of formats.
FORMATS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _matches(_UUID.format(_HEX4, _HEX4)),
    "uuid3": _matches(_UUID.format("3[0-9a-fA-F]{3}", _HEX4)),
    "uuid4": _matches(_UUID.format("4[0-9a-fA-F]{3}", _VARIANT)),
    "uuid5": _matches(_UUID.format("5[0-9a-fA-F]{3}", _VARIANT)),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": is_ssn,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_RGB_PART},{_RGB_PART},{_RGB_PART}\)"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": is_short_name,
    "k8slongname": is_long_name,
}


def effective_format(type: str, format: str) -> str:
    """The format as it is checked for values of a type; empty if it is not."""
    if type in ("", "string"):
        return format if format.replace("-", "") in FORMATS else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(type, ())
    return format if format in allowed else ""


def check_of(format: str) -> Check | None:
    return FORMATS.get(format.replace("-", ""))

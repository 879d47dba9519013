"""A hash of values that are built of values, the same in every process and on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import msgspec
import numpy as np


def fingerprint(*values: Any) -> str:
    """Thirty-two hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Every value begins with what it is and how much follows, so that different values never look alike."""
    if value is None or isinstance(value, (bool, int, float, str)):
        _tell(digest, type(value).__name__, repr(value).encode())
    elif isinstance(value, bytes):
        _tell(digest, "bytes", value)
    elif isinstance(value, Enum):
        _tell(digest, type(value).__qualname__, value.name.encode())
    elif isinstance(value, (np.ndarray, np.generic)):
        _tell(digest, f"array {value.dtype} {value.shape}", value.tobytes())
    elif isinstance(value, Mapping):
        _tell(digest, "mapping", str(len(value)).encode())
        for key in sorted(value, key=repr):
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, Set):
        _tell(digest, "set", "".join(sorted(fingerprint(part) for part in value)).encode())
    elif isinstance(value, Sequence):
        _tell(digest, "sequence", str(len(value)).encode())
        for part in value:
            _feed(digest, part)
    else:
        _feed_object(digest, value)


def _feed_object(digest: Any, value: Any) -> None:
    names = _attributes(value)
    _tell(digest, type(value).__qualname__, str(len(names)).encode())
    for name in names:
        _feed(digest, name)
        _feed(digest, getattr(value, name))


def _attributes(value: Any) -> list[str]:
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        raise TypeError(f"{value!r} has no value that could be hashed")
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*slots, *getattr(value, "__dict__", ())]
    return sorted({name for name in names if hasattr(value, name) and not name.startswith("__")})


def _tell(digest: Any, kind: str, content: bytes) -> None:
    digest.update(f"{kind} {len(content)} ".encode() + content)

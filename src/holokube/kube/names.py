"""Which names, keys and values the API accepts, with upstream's words for what is wrong.

Every ``is_*`` function returns the list of complaints; an empty list means the value is fine. Lengths are in
bytes, as upstream counts them, even where its message says characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

DNS1123_LABEL_MAX_LENGTH: Final = 63
DNS1123_SUBDOMAIN_MAX_LENGTH: Final = 253
DNS1035_LABEL_MAX_LENGTH: Final = 63
LABEL_KEY_NAME_MAX_LENGTH: Final = 63
LABEL_VALUE_MAX_LENGTH: Final = 63
PORT_NAME_MAX_LENGTH: Final = 15
TOTAL_ANNOTATION_SIZE_LIMIT_BYTES: Final = 256 * 1024

_DNS1123_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_LABEL_MESSAGE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character"
)
_DNS1123_SUBDOMAIN: Final = rf"{_DNS1123_LABEL}(\.{_DNS1123_LABEL})*"
_DNS1123_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character"
)
_UNDERSCORE_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORE_SUBDOMAIN: Final = rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*"
_UNDERSCORE_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and"
    " must start and end with an alphanumeric character"
)
_WILDCARD_SUBDOMAIN: Final = rf"\*\.{_DNS1123_SUBDOMAIN}"
_WILDCARD_SUBDOMAIN_MESSAGE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must"
    " consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_DNS1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS1035_LABEL_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
    " character, and end with an alphanumeric character"
)
_LABEL_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_KEY_MESSAGE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character"
)
_LABEL_VALUE: Final = f"({_LABEL_KEY})?"
_LABEL_VALUE_MESSAGE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
    " start and end with an alphanumeric character"
)
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_MESSAGE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
    " characters or '_'"
)
_ENV_VAR_NAME: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_ENV_VAR_NAME_MESSAGE: Final = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and"
    " must not start with a digit"
)
_CONFIG_MAP_KEY: Final = "[-._a-zA-Z0-9]+"
_CONFIG_MAP_KEY_MESSAGE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
)
_PERCENT: Final = "[0-9]+%"
_HTTP_HEADER_NAME: Final = "[-A-Za-z0-9]+"

_dns1123_label = re.compile(_DNS1123_LABEL).fullmatch
_dns1123_subdomain = re.compile(_DNS1123_SUBDOMAIN).fullmatch
_underscore_subdomain = re.compile(_UNDERSCORE_SUBDOMAIN).fullmatch
_wildcard_subdomain = re.compile(_WILDCARD_SUBDOMAIN).fullmatch
_dns1035_label = re.compile(_DNS1035_LABEL).fullmatch
_label_key = re.compile(_LABEL_KEY).fullmatch
_label_value = re.compile(_LABEL_VALUE).fullmatch
_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_env_var_name = re.compile(_ENV_VAR_NAME).fullmatch
_config_map_key = re.compile(_CONFIG_MAP_KEY).fullmatch
_percent = re.compile(_PERCENT).fullmatch
_http_header_name = re.compile(_HTTP_HEADER_NAME).fullmatch
_port_name_charset = re.compile("[-a-z0-9]+").fullmatch
_decimal_integer = re.compile("0|-?[1-9][0-9]*").fullmatch

EMPTY_MESSAGE: Final = "must be non-empty"


def max_length_error(length: int) -> str:
    """Upstream's complaint about a name that is too long."""
    return f"must be no more than {length} characters"


def inclusive_range_error(lowest: int, highest: int) -> str:
    """Upstream's complaint about a number out of its range."""
    return f"must be between {lowest} and {highest}, inclusive"


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """Upstream's complaint about a value that does not match a pattern."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    # The doubled blank before "or" is upstream's.
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def is_dns1123_label(value: str) -> list[str]:
    """Names of namespaces, containers and volumes: a DNS label, at most 63 long."""
    return list(_dns1123_label_problems(value))


@lru_cache(maxsize=16_384)
def _dns1123_label_problems(value: str) -> tuple[str, ...]:
    errors: list[str] = []
    if _bytes(value) > DNS1123_LABEL_MAX_LENGTH:
        errors.append(max_length_error(DNS1123_LABEL_MAX_LENGTH))
    if not _dns1123_label(value):
        if _dns1123_subdomain(value):
            errors.append("must not contain dots")
        else:
            errors.append(regex_error(_DNS1123_LABEL_MESSAGE, _DNS1123_LABEL, "my-name", "123-abc"))
    return tuple(errors)


def is_dns1123_subdomain(value: str) -> list[str]:
    """Names of most objects: DNS labels joined by dots, at most 253 long."""
    return list(_dns1123_subdomain_problems(value))


@lru_cache(maxsize=16_384)
def _dns1123_subdomain_problems(value: str) -> tuple[str, ...]:
    errors: list[str] = []
    if _bytes(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _dns1123_subdomain(value):
        errors.append(regex_error(_DNS1123_SUBDOMAIN_MESSAGE, _DNS1123_SUBDOMAIN, "example.com"))
    return tuple(errors)


def is_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """DNS search paths: like a subdomain, with underscores."""
    errors = []
    if _bytes(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _underscore_subdomain(value):
        errors.append(regex_error(_UNDERSCORE_SUBDOMAIN_MESSAGE, _UNDERSCORE_SUBDOMAIN, "example.com"))
    return errors


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Hosts of an Ingress such as ``*.example.com``."""
    errors = []
    if _bytes(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _wildcard_subdomain(value):
        errors.append(regex_error(_WILDCARD_SUBDOMAIN_MESSAGE, _WILDCARD_SUBDOMAIN, "*.example.com"))
    return errors


def is_dns1035_label(value: str) -> list[str]:
    """Names of Services: a DNS label that starts with a letter."""
    errors = []
    if _bytes(value) > DNS1035_LABEL_MAX_LENGTH:
        errors.append(max_length_error(DNS1035_LABEL_MAX_LENGTH))
    if not _dns1035_label(value):
        errors.append(regex_error(_DNS1035_LABEL_MESSAGE, _DNS1035_LABEL, "my-name", "abc-123"))
    return errors


def is_qualified_name(value: str) -> list[str]:
    """Label and annotation keys, resource and taint names: an optional DNS prefix, a slash, a name."""
    return list(_qualified_name(value))


# The same few label keys pass through here for every object, hence the cache.
@lru_cache(maxsize=16_384)
def _qualified_name(value: str) -> tuple[str, ...]:
    pattern = regex_error(_LABEL_KEY_MESSAGE, _LABEL_KEY, "MyName", "my.name", "123-abc")
    errors: list[str] = []
    parts = value.split("/")
    if len(parts) > 2:
        hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {pattern} {hint}",)
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            errors.append(f"prefix part {EMPTY_MESSAGE}")
        else:
            if _bytes(prefix) > DNS1123_SUBDOMAIN_MAX_LENGTH:
                errors.append(f"prefix part must be no more than {DNS1123_SUBDOMAIN_MAX_LENGTH} bytes")
            if not _dns1123_subdomain(prefix):
                message = regex_error(_DNS1123_SUBDOMAIN_MESSAGE, _DNS1123_SUBDOMAIN, "example.com")
                errors.append(f"prefix part {message}")
    name = parts[-1]
    if not name:
        errors.append(f"name part {EMPTY_MESSAGE}")
    elif _bytes(name) > LABEL_KEY_NAME_MAX_LENGTH:
        errors.append(f"name part must be no more than {LABEL_KEY_NAME_MAX_LENGTH} bytes")
    if not _label_key(name):
        errors.append(f"name part {pattern}")
    return tuple(errors)


def is_label_value(value: str) -> list[str]:
    """Label values: empty, or at most 63 long and alphanumeric at both ends."""
    return list(_label_value_problems(value))


@lru_cache(maxsize=16_384)
def _label_value_problems(value: str) -> tuple[str, ...]:
    errors: list[str] = []
    if _bytes(value) > LABEL_VALUE_MAX_LENGTH:
        errors.append(f"must be no more than {LABEL_VALUE_MAX_LENGTH} bytes")
    if not _label_value(value):
        errors.append(regex_error(_LABEL_VALUE_MESSAGE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def is_path_segment_prefix(value: str) -> list[str]:
    """Whether a text can start a name that becomes part of a URL path."""
    return [f"may not contain '{illegal}'" for illegal in ("/", "%") if illegal in value]


def is_path_segment_name(value: str) -> list[str]:
    """Whether a text can be a part of a URL path: the least that every object name must fulfil."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return is_path_segment_prefix(value)


def is_c_identifier(value: str) -> list[str]:
    """Identifiers as in C; the length does not matter."""
    if _c_identifier(value):
        return []
    return [regex_error(_C_IDENTIFIER_MESSAGE, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def is_port_number(port: int) -> list[str]:
    """Ports 1 to 65535."""
    return [] if 1 <= port <= 65535 else [inclusive_range_error(1, 65535)]


def is_in_range(value: int, lowest: int, highest: int) -> list[str]:
    """Whether a number is within a range, both ends included."""
    return [] if lowest <= value <= highest else [inclusive_range_error(lowest, highest)]


def is_user_or_group_id(value: int) -> list[str]:
    """Unix user and group ids."""
    return is_in_range(value, 0, 2**31 - 1)


def is_port_name(value: str) -> list[str]:
    """Names of container ports (IANA service names): at most 15 long, with at least one letter."""
    errors = []
    if _bytes(value) > PORT_NAME_MAX_LENGTH:
        errors.append(max_length_error(PORT_NAME_MAX_LENGTH))
    if not _port_name_charset(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def is_env_var_name(value: str) -> list[str]:
    """Environment variable names in the strict form."""
    errors = []
    if not _env_var_name(value):
        errors.append(
            regex_error(_ENV_VAR_NAME_MESSAGE, _ENV_VAR_NAME, "my.env-name", "MY_ENV.NAME", "MyEnvName1")
        )
    return errors + _dot_errors(value)


def is_relaxed_env_var_name(value: str) -> list[str]:
    """Environment variable names as current API servers take them: printable ASCII without ``=``."""
    if not value:
        return [f"environment variable name {EMPTY_MESSAGE}"]
    if value.isascii() and value.isprintable() and "=" not in value:
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def is_config_map_key(value: str) -> list[str]:
    """Keys of a ConfigMap or Secret, which become file names."""
    errors = []
    if _bytes(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(max_length_error(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _config_map_key(value):
        errors.append(
            regex_error(_CONFIG_MAP_KEY_MESSAGE, _CONFIG_MAP_KEY, "key.name", "KEY_NAME", "key-name")
        )
    return errors + _dot_errors(value)


def _dot_errors(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def is_percent(value: str) -> list[str]:
    """Percentages such as ``25%``."""
    if _percent(value):
        return []
    message = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_error(message, _PERCENT, "1%", "93%")]


def is_http_header_name(value: str) -> list[str]:
    """Header names of HTTP probes."""
    if _http_header_name(value):
        return []
    message = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_error(message, _HTTP_HEADER_NAME, "X-Header-Name")]


def is_decimal_integer(value: str) -> list[str]:
    """Integers as people write them: no plus sign, no leading zeros."""
    if not value:
        return [EMPTY_MESSAGE]
    return [] if _decimal_integer(value) else ["must be a valid decimal integer in canonical form"]


def mask_trailing_dash(prefix: str) -> str:
    """A ``generateName`` made checkable as a name: a last dash will be followed by a suffix."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def is_annotation_key(key: str) -> list[str]:
    """Annotation keys: qualified names, upper case allowed everywhere."""
    return is_qualified_name(key.lower())


def annotations_size_errors(annotations: Mapping[str, str]) -> list[str]:
    """All annotations of an object together may have 256 KiB, keys included."""
    size_bytes = sum(_bytes(key) + _bytes(value) for key, value in annotations.items())
    if size_bytes <= TOTAL_ANNOTATION_SIZE_LIMIT_BYTES:
        return []
    return [f"Too long: may not be more than {TOTAL_ANNOTATION_SIZE_LIMIT_BYTES} bytes"]

"""Rules for file paths that appear inside a pod."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors

FILE_MODE_MESSAGE = "must be a number between 0 and 0777 (octal), both inclusive"


def has_backstep(file_path: str) -> bool:
    """Whether a path leaves its folder through ``..``."""
    return ".." in file_path and ".." in file_path.split("/")


def validate_no_backsteps(file_path: str, path: str, errors: FieldErrors) -> None:
    if has_backstep(file_path):
        errors.invalid(path, file_path, "must not contain '..'")


def validate_descending(file_path: str, path: str, errors: FieldErrors) -> None:
    """A path that stays below the folder it starts from."""
    if file_path.startswith("/"):
        errors.invalid(path, file_path, "must be a relative path")
    validate_no_backsteps(file_path, path, errors)


def validate_not_reserved(file_path: str, path: str, errors: FieldErrors) -> None:
    """A file of a volume that the kubelet writes; names with two leading dots are its own."""
    validate_descending(file_path, path, errors)
    if file_path.startswith("..") and not file_path.startswith("../"):
        errors.invalid(path, file_path, "must not start with '..'")


def validate_file_mode(mode: int | None, path: str, errors: FieldErrors) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        errors.invalid(path, mode, FILE_MODE_MESSAGE)

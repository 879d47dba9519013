"""The error of every selector parser."""

from __future__ import annotations


def joined(messages: tuple[str, ...]) -> str:
    """Several complaints in one text, the way upstream prints a list of errors; each is said once."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


class SelectorError(ValueError):
    """A text or JSON value is not a selector; the messages are worded like upstream's."""

    def __init__(self, *messages: str) -> None:
        super().__init__(joined(messages))
        self.messages = messages

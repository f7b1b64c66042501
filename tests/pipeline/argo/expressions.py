"""The part of the language of retry expressions that ours are written in; all else is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([A-Za-z_][\w.]*)|(&&|\|\||==|!=|[!()\[\],]))')


class NotUnderstood(Exception):
    """The expression uses what is not part of this language."""


def evaluate(text: str, variables: Mapping[str, str]) -> bool:
    """Whether an expression holds."""
    parser = _Parser(_tokens(text), variables)
    value = parser.either()
    if parser.left:
        raise NotUnderstood(f"{parser.left[0]!r} after the end of {text!r}")
    if not isinstance(value, bool):
        raise NotUnderstood(f"{text!r} is {value!r}, neither true nor false")
    return value


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstood(f"{text[place:]!r}")
        found.append(match[0].strip())
        place = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[str], variables: Mapping[str, str]) -> None:
        self.left = tokens
        self._variables = variables

    def either(self) -> Any:
        value = self._both()
        while self._takes("or", "||"):
            other = self._both()  # taken from the text whether it matters or not
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._negated()
        while self._takes("and", "&&"):
            other = self._negated()
            value = value and other
        return value

    def _negated(self) -> Any:
        return not self._negated() if self._takes("not", "!") else self._compared()

    def _compared(self) -> Any:
        value = self._value()
        if self._takes("=="):
            return value == self._value()
        if self._takes("!="):
            return value != self._value()
        if self._takes("matches"):
            return re.search(self._value(), value) is not None
        if self._takes("in"):
            return value in self._value()
        if self.left[:2] == ["not", "in"]:
            del self.left[:2]
            return value not in self._value()
        return value

    def _value(self) -> Any:
        if not self.left:
            raise NotUnderstood("the expression ends too early")
        token = self.left.pop(0)
        if token == "(":
            value = self.either()
            self._needs(")")
            return value
        if token == "[":
            values = [self._value()]
            while self._takes(","):
                values.append(self._value())
            self._needs("]")
            return values
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if token in self._variables:
            return self._variables[token]
        raise NotUnderstood(f"{token!r} is unknown")

    def _takes(self, *tokens: str) -> bool:
        if self.left and self.left[0] in tokens:
            self.left.pop(0)
            return True
        return False

    def _needs(self, token: str) -> None:
        if not self._takes(token):
            raise NotUnderstood(f"{token!r} is missing before {self.left[:1]}")

"""Settings that are given as texts "name=value"."""

from collections.abc import Callable, Sequence
from typing import Any

import yaml

from .errors import InputError


def assigned(
    option: str,
    words: Sequence[str],
    kind: Any,
    read: Callable[[str, Any], Any] = lambda text, default: yaml.safe_load(text),
) -> dict[str, Any]:
    """{name: value} for a settings class.

    option: whose words they are, for errors;  read: read(text, default of the setting) -> its value
    """
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in kind.rules:
            raise InputError(f"{option} '{word}': allowed is NAME=VALUE, where NAME is one of {', '.join(kind.rules)}")
        try:
            values[name] = read(value, kind.rules[name].default)
        except yaml.YAMLError:
            raise InputError(f"{option} '{word}': '{value}' is no number, text or list") from None
    return values

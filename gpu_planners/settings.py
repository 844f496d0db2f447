"""Settings that describe themselves: a field of a settings class holds its default, text, range and unit.

Validation, docstrings, ROS parameters, the files in `config/` and the site's reference all read these fields.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .errors import SettingsError, shown


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting. The type of its default (bool, int, float, str or a tuple) is the type of its values.

    text: what it does, one line
    low, high: inclusive range of a number, or of each number of a tuple
    unit: of the number
    choices: the only values allowed; none: no such restriction
    must: a further condition: (text on what is allowed, function of a value that tells whether it is)
    items: type of a tuple's items, float or str
    read_only: a node reads it at start only
    """

    default: Any
    text: str
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: tuple = ()
    must: tuple[str, Callable[[Any], bool]] | None = None
    items: type = float
    read_only: bool = False

    def checked(self, name: str, value: Any) -> Any:
        """The value as Python's own type; SettingsError, which names it by `name`, when it is not allowed."""
        if isinstance(self.default, tuple):
            value = value.tolist() if isinstance(value, np.ndarray) else value
            if not isinstance(value, tuple | list):
                raise SettingsError(f"{name} is {shown(value)}; allowed: {self.allowed}")
            item = dataclasses.replace(self, default=self.items())
            return tuple(item.checked(f"{name}[{k}]", each) for k, each in enumerate(value))
        if isinstance(value, np.number):
            value = value.item()  # comparisons of NumPy's numbers overflow
        if not self._has_type(value) or not self._in_range(value):
            text = f"'{shown(value)}'" if self.choices and isinstance(value, int) else shown(value)
            raise SettingsError(f"{name} is {text}; allowed: {self.allowed}")
        if self.must and not self.must[1](value):
            raise SettingsError(f"{name} is {shown(value)}; allowed: {self.must[0]}")
        try:
            return type(self.default)(value)
        except OverflowError:  # of an integer beyond the numbers, where infinity is allowed
            raise SettingsError(f"{name} is {shown(value)}; allowed: {self.allowed}") from None

    def _has_type(self, value: Any) -> bool:
        kind = type(self.default)
        return isinstance(value, (int, float) if kind is float else kind) and (
            kind is bool or not isinstance(value, bool)
        )

    def _in_range(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    @property
    def allowed(self) -> str:
        """What values are allowed, for an error."""
        if self.choices:
            return ", ".join(map(str, self.choices))
        if isinstance(self.default, tuple):
            return f"a list of {'numbers' if self.items is float else 'texts'}"
        kind = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}[type(self.default)]
        return kind if self.low is None else f"{kind} from {self.low} to {self.high} {self.unit}".rstrip()

    @property
    def range(self) -> str:
        """Choices, range, unit and condition in a few words; empty when there are none."""
        if self.choices:
            return ", ".join(map(str, self.choices))
        span = "" if self.low is None or self.high in (None, np.inf) else f"{_number(self.low)} to {_number(self.high)}"
        texts = (f"{span} {self.unit}".strip(), self.must[0] if self.must else "")
        return "; ".join(filter(None, texts))

    @property
    def line(self) -> str:
        """The text with the range behind it."""
        return f"{self.text} ({self.range})" if self.range else self.text


class Described:
    """Base of the frozen dataclasses whose fields are made by `setting`; SettingsError when a value is not allowed."""

    rules: ClassVar[dict[str, Setting]] = {}  # by field, those of the class itself before those of its bases

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields = {name: field for name, field in vars(cls).items() if isinstance(field, dataclasses.Field)}
        cls.rules = {name: field.metadata["setting"] for name, field in fields.items() if "setting" in field.metadata}
        for base in cls.__mro__[1:]:
            for name, rule in getattr(base, "rules", {}).items():
                cls.rules.setdefault(name, rule)
        lines = [f"{name} = {rule.default!r}: {rule.line}" for name, rule in cls.rules.items()]
        cls.__doc__ = "\n\n".join(filter(None, ((cls.__doc__ or "").rstrip(), "\n".join(lines))))

    def __post_init__(self) -> None:
        for name, rule in self.rules.items():
            object.__setattr__(self, name, rule.checked(self.label(name), getattr(self, name)))

    @classmethod
    def label(cls, name: str) -> str:
        """What errors call a field."""
        return f"{title(cls)}.{name}"


def setting(default: Any, text: str, low: float | None = None, high: float | None = None, **more: Any) -> Any:
    """A field of a settings class; arguments as in Setting."""
    return dataclasses.field(default=default, metadata={"setting": Setting(default, text, low, high, **more)})


def time_limit(text: str) -> Any:
    """A field of a settings class: a limit in seconds, none to begin with."""
    return setting(np.inf, text, 0.0, np.inf, unit="seconds", must=("more than 0", lambda limit: limit > 0))


def changed(kind: type[Described], name: str, **changes: Any) -> Any:
    """The field `name` of a base class with another default or text. It is keyword-only: it keeps the base's place."""
    rule = dataclasses.replace(kind.rules[name], **changes)
    return dataclasses.field(default=rule.default, metadata={"setting": rule}, kw_only=True)


def title(kind: type) -> str:
    """A short name of a settings class: "rrt_connect.Settings", "exact.Settings", "MotionCheck"."""
    module = re.sub(r"\.(settings|fields|planner)$", "", kind.__module__).rpartition(".")[2]
    return f"{module}.Settings" if kind.__name__ == "Settings" else kind.__name__


def _number(value: float | None) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"

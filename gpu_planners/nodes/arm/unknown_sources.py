"""Sources of obstacles whose latest message was refused: the obstacles are there, but nobody knows where."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from .scene_objects import ALWAYS

SILENCE_S = 2.0  # a source that is refused again within it goes on sending
MOST = 1000  # sources kept


@dataclass(frozen=True)
class _Refused:
    """text: why, empty once it no longer counts; at, expires: seconds on the node's clock; persists: was it refused
    twice within SILENCE_S?"""

    text: str
    at: float
    expires: float
    persists: bool


class UnknownSources:
    """The sources, by names: that of a topic, or "<topic>/<frame>" where several publish on one.

    told: called with (source, text) when one was refused, with an empty text when it no longer counts; on any thread
    """

    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._told = told
        self._refused: dict[str, _Refused] = {}
        self._lock = threading.Lock()

    def refuse(self, source: str, text: str, now: float, expires: float = ALWAYS) -> None:
        """Record a refused message; its obstacles would expire at `expires`."""
        with self._lock:
            before = self._refused.pop(source, None)
            persists = before is not None and now - before.at < SILENCE_S
            self._refused[source] = _Refused(text, now, expires, persists)
            dropped = [*self._refused][:-MOST]
            for name in dropped:
                del self._refused[name]
        for name in dropped:
            self._told(name, "")
        self._told(source, text)

    def take(self, source: str, now: float) -> None:
        """A message is right: refusals of its source no longer count, nor those of other sources of its topic that do
        not go on sending what is refused."""
        topic = source.split("/")[0]

        def over(name, one):
            return name == source or (name.split("/")[0] == topic and not (one.persists and now - one.at < SILENCE_S))

        self._end(over)

    def forget_expired(self, now: float) -> None:
        self._end(lambda name, one: one.expires <= now)

    def forget(self, *sources: str) -> list[str]:
        """Drop these sources, by default all -> their names."""
        return self._end(lambda name, one: not sources or name in sources)

    def clock_jumped_back(self, by: float) -> None:
        """Keep what is left of lives when the node's clock has gone back by some seconds."""
        with self._lock:
            for name, one in self._refused.items():
                self._refused[name] = replace(one, at=one.at - by, expires=one.expires - by)

    @property
    def problem(self) -> str:
        """Why a source was refused; empty when none was."""
        with self._lock:
            return next((one.text for one in self._refused.values() if one.text), "")

    def _end(self, over):
        """-> names of those that counted until now. over: (name, _Refused) -> does it end?"""
        with self._lock:
            ended = [name for name, one in self._refused.items() if one.text and over(name, one)]
            for name in ended:
                self._refused[name] = replace(self._refused[name], text="")
        for name in ended:
            self._told(name, "")
        return ended

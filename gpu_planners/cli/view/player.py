"""Plays a motion in real time on a thread of its own."""

import threading
import time
from collections.abc import Callable

FRAMES_S = 1 / 30  # between two pictures
REST_S = 0.7  # at the end, before it begins again


class Player:
    """Calls show(seconds) with the time along a motion while it plays.

    show: called on the player's thread; on_end: called there when a motion that is not repeated has ended
    """

    def __init__(self, show: Callable[[float], None], on_end: Callable[[], None]) -> None:
        self._show, self._on_end = show, on_end
        self._changed = threading.Condition()
        self._duration_s, self._at_s, self._playing, self._closed = 0.0, 0.0, False, False
        self.repeat = True
        self._thread = threading.Thread(target=self._run, name="player", daemon=True)
        self._thread.start()

    @property
    def playing(self) -> bool:
        return self._playing

    def load(self, duration_s: float) -> None:
        """Take another motion, which plays on where the last one played."""
        with self._changed:
            self._duration_s, self._at_s = duration_s, 0.0
            self._changed.notify()

    def play(self, wanted: bool) -> None:
        """Play from where it is, from the start where it has ended; or stop."""
        with self._changed:
            if wanted and self._at_s >= self._duration_s:
                self._at_s = 0.0
            self._playing = wanted
            self._changed.notify()

    def seek(self, at_s: float) -> None:
        with self._changed:
            self._at_s = at_s

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=5.0)

    def _run(self):
        last = None
        while True:
            with self._changed:
                if not (self._playing and self._duration_s > 0):
                    last = None
                    self._changed.wait_for(lambda: self._closed or (self._playing and self._duration_s > 0))
                if self._closed:
                    return
                now = time.monotonic()
                self._at_s += now - last if last is not None else 0.0
                last = now
                ended = self._at_s >= self._duration_s
                at = min(self._at_s, self._duration_s)
                if ended and self.repeat and self._at_s >= self._duration_s + REST_S:
                    self._at_s = 0.0
                stopped = ended and not self.repeat
                self._playing = self._playing and not stopped
            self._show(at)
            if stopped:
                self._on_end()
            time.sleep(FRAMES_S)

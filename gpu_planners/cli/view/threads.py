"""What runs beside a page: the newest job of each kind, and a motion that is played in real time."""

import threading
import time
from collections.abc import Callable


class Newest:
    """Runs jobs one after another; one that is still waiting when the next of its kind comes is dropped.

    on_failure: called on the thread with what a job raised
    """

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self._on_failure, self._ended, self._running = on_failure, False, False
        self._jobs: dict[str, Callable[[], None]] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="newest", daemon=True)
        self._thread.start()

    def do(self, kind: str, job: Callable[[], None]) -> None:
        """Queue a job, in place of the one of its kind that waits."""
        with self._changed:
            self._jobs[kind] = job
            self._changed.notify()

    @property
    def busy(self) -> bool:
        """Does a job run or wait?"""
        with self._changed:
            return self._running or bool(self._jobs)

    def stop(self) -> None:
        """Drop what waits and end, when the job under way is done."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(timeout=5.0)

    def _work(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._jobs)
                if self._ended:
                    return
                job, self._running = self._jobs.pop(next(iter(self._jobs))), True
            try:
                job()
            except Exception as error:  # the page must live on
                self._on_failure(error)
            finally:
                self._running = False


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

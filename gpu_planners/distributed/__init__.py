"""Work that several processes or threads share, and what they tell each other meanwhile."""

from .exchange import Exchange, ThreadExchange, run
from .ranks import Ranks

__all__ = ["Exchange", "Ranks", "ThreadExchange", "run"]

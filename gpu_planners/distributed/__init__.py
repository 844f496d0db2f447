"""Work that several processes or threads share: what they tell each other while it runs."""

from .exchange import Exchange, ThreadExchange, run
from .ranks import Ranks

__all__ = ["Exchange", "Ranks", "ThreadExchange", "run"]

"""What the reader of a description holds, leaves out or passes over: notes, told in one warning for each kind."""

import difflib
import functools
import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

log = logging.getLogger(__name__)

MOST_TOLD = 5  # names in one warning
LIKE = 0.5  # least likeness of a name that is taken for another one misspelt, as difflib counts it


class Note(NamedTuple):
    """what: a kind of thing and what is done about it; where: the file, link or joint"""

    what: str
    where: str


def tell(source: str, notes: Iterable[Note]) -> None:
    """One warning for each kind of note about `source`."""
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(note.what, []).append(note.where)
    for what, places in kinds.items():
        log.warning("%s: %s: %s", source, what, listed(places))


@functools.lru_cache(maxsize=1000)
def warn_once(text: str) -> None:
    """Warn, but not each time that a node loads its robot again."""
    log.warning("%s", text)


def listed(texts: Iterable[str]) -> str:
    """The first texts, and how many more there are."""
    texts = list(dict.fromkeys(texts))
    more = f" and {len(texts) - MOST_TOLD} more" if len(texts) > MOST_TOLD else ""
    return ", ".join(texts[:MOST_TOLD]) + more


def unknown(names: Iterable[str], known: Collection[str]) -> str:
    """Names that are not known, each with the known one that is nearest."""
    names = list(dict.fromkeys(names))
    return listed([*(f"'{name}'{_nearest(name, known)}" for name in names[:MOST_TOLD]), *names[MOST_TOLD:]])


def _nearest(name, known):
    found = nearest(name, known)
    return f" (nearest: '{found}')" if found else ""


def nearest(name: str, known: Collection[str], like: float = LIKE) -> str:
    """The known name that is most like another one, "" where none is like it. One that only lacks a prefix or a suffix
    comes first."""
    parts = [one for one in known if _is_part(one, name)] or [one for one in known if _is_part(name, one)]
    matches = [max(parts, key=len)] if parts else difflib.get_close_matches(name, known, 1, like)
    return matches[0] if matches else ""


def _is_part(part, name):
    """Is `part` a name without its prefix or suffix?"""
    ends = name.endswith(part) and not name[: -len(part)][-1:].isalnum()
    return bool(part) and (ends or (name.startswith(part) and not name[len(part) :][:1].isalnum()))

"""Style: length, hedging, directness, and what kind of formatting an answer uses.

Drift is the finding here: more is neither better nor worse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgetmap.answers.items import Item, Value
from forgetmap.answers.shape import shape
from forgetmap.answers.text import fold, optional, sentences, words
from forgetmap.capabilities.scorers.scoring import EMPTY, per_answer

METRICS = (
    *("words", "sentences", "words_per_sentence", "hedges", "directness"),
    *("lists", "tables", "headings", "code", "emoji", "emoji_per_100_words"),
)
FIELDS: tuple[str, ...] = ()
VERSION = 1

_RATES = {"words_per_sentence", "hedges", "directness", "emoji_per_100_words"}
_EMPTY = [Value(None, "empty") if name in _RATES else EMPTY for name in METRICS]
"""An answer without words has no rates."""

HEDGES = frozenset(
    (
        *("may", "might", "maybe", "perhaps", "possibly", "possible", "probably", "probable"),
        *("likely", "unlikely", "could", "seem", "seems", "seemingly", "appear", "appears"),
        *("apparently", "presumably", "arguably", "generally", "typically", "usually", "often"),
        *("sometimes", "somewhat", "roughly", "approximately", "suggest", "suggests"),
        *("potentially", "uncertain", "unclear", "unsure", "conceivably", "supposedly"),
        "allegedly",
    )
)
HEDGING_PHRASES = (
    *("i think", "i believe", "i guess", "i suppose", "i'm not sure", "i am not sure"),
    *("it depends", "in my opinion", "to some extent", "more or less", "tend to", "tends to"),
    *("kind of", "sort of"),
)
_PREAMBLE = re.compile(
    r"[\W_]{0,10}(?:sure|certainly|absolutely|of course|great question|good question|okay|ok\b|"
    r"well\b|thank you|thanks|i'd be happy|i would be happy|i'm happy|happy to|let me|let's|i'll|"
    r"i will|as an ai|as a language model|that's a|that is a (?:great|good|very)|it depends|"
    r"there (?:are|is) (?:many|several|various|a number)|to answer|in order to answer|"
    r"before (?:i|we|answering)|first,|this is a (?:complex|difficult|good|great))"
)
_MAY_BE_EMOJI = re.compile(
    "[0-9#*]?[\xa9\xae\u200d\u203c-\u303f\u3297\u3299\ufe0f\U0001f000-\U000fffff]+"
)
"""All that emoji are made of, with what may stand before a key cap; the rest is not looked at."""


@per_answer(METRICS, _EMPTY)
def score(_item: Item, text: str) -> Sequence[Value]:
    """Measure the style of each answer.

    `words` by Unicode segmentation; `hedges` per 100 words, from a closed list; `directness`: the
    first sentence has neither preamble nor hedge; `lists` to `emoji`: whether there is any.

    Example:
        >>> values = score([Item("chat", "1")], ["Perhaps it is:\\n\\n- one\\n- two 🎉"])
        >>> {name: value[0].value for name, value in values.items() if value[0].value}
        ... # doctest: +NORMALIZE_WHITESPACE
        {'words': 5.0, 'sentences': 3.0, 'words_per_sentence': 1.6666666666666667, 'hedges': 20.0,
         'lists': 1.0, 'emoji': 1.0, 'emoji_per_100_words': 20.0}
    """
    said, parts, found = words(text), sentences(text), shape(text)
    emojis = count_emoji(text)
    per_100 = 100 / len(said) if said else 0.0
    first = fold(parts[0]) if parts else ""
    is_direct = bool(first) and not _PREAMBLE.match(first) and not count_hedges(first, words(first))
    return (
        Value(float(len(said))),
        Value(float(len(parts))),
        Value(len(said) / len(parts)) if parts else Value(None, "no_answer"),
        Value(count_hedges(fold(text), said) * per_100),
        Value(float(is_direct)),
        *(Value(float(number > 0)) for number in found),
        Value(float(emojis > 0)),
        Value(emojis * per_100),
    )


def count_hedges(folded: str, said: Sequence[str]) -> int:
    """Hedges of the closed list: single words, and phrases in the folded text.

    Example:
        >>> count_hedges("perhaps i think it could work", ["Perhaps", "I", "could"])
        3
    """
    single = sum(word.lower() in HEDGES for word in said)
    return single + sum(folded.count(phrase) for phrase in HEDGING_PHRASES)


def count_emoji(text: str) -> int:
    """Emoji as people see them: one per group, not those that are shown as text by default.

    Example:
        >>> count_emoji("🤖🧠 👩‍👩‍👧"), count_emoji("中文 ● © ™ ─ ✔")
        (3, 0)
    """
    if text.isascii():
        return 0
    emoji = optional("emoji")
    as_text = emoji.STATUS["unqualified"]
    found = emoji.emoji_list(" ".join(_MAY_BE_EMOJI.findall(text)))
    return sum(emoji.EMOJI_DATA[one["emoji"]]["status"] != as_text for one in found)

"""Multiple choice: which option an answer takes, by letter or by its text.

The places are tried from the plainest to the vaguest; where an answer names several options and
takes none, there is no answer, and the status says so.
"""

from __future__ import annotations

from forgetmap.answers.items import Item, Value
from forgetmap.answers.options import Options, extract, read_options
from forgetmap.answers.text import normal
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, bad_gold, per_answer, right_or_wrong

METRICS = ("accuracy",)
FIELDS = ("gold", "choices")
VERSION = 1


@per_answer(METRICS)
def score(item: Item, text: str) -> Value:
    """Compare the option that was taken with the right one.

    Example:
        >>> item = Item("quiz", "1", gold="B", choices=["Paris", "Rome"])
        >>> values = score([item] * 3, ["**B**", "The answer is Paris.", "Who knows?"])
        >>> [(value.value, value.status) for value in values["accuracy"]]
        [(1.0, 'ok'), (0.0, 'ok'), (0.0, 'no_answer')]
    """
    options = read_options(tuple(map(str, item.choices)))
    gold = _read_gold(item.gold, options)
    if gold is None:
        return bad_gold(item.gold)
    taken = extract(text, options)
    return NO_ANSWER if taken is None else right_or_wrong(taken == gold, taken)


def _read_gold(gold: object, options: Options) -> str | None:
    if isinstance(gold, int) and not isinstance(gold, bool):
        letters = list(options.by_letter)
        return letters[gold] if 0 <= gold < len(letters) else None
    word = str(gold).strip()
    letter = word.strip("()[]. ").upper()
    return letter if letter in options.by_letter else options.by_text.get(normal(word))

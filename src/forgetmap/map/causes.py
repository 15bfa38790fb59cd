"""Why an item was lost: rules on the answer after, tried in order, each of them readable.

The order is that of `RULES`; the first rule that speaks decides. A rule never looks at anything
but the texts, the status the harness gave and the item's runs, so the same log gives the same
causes everywhere. Most rules need no right answer: they compare the answer with the one before.
docs/explanation/causes.md says how often they are right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from forgetmap.answers import compared, structure, wrapping
from forgetmap.answers.copied import own_lines
from forgetmap.answers.declining import beside_refusals, gives_up
from forgetmap.answers.endings import repeats_itself, unfinished
from forgetmap.answers.extraction import (
    NO_ANSWER,
    offered,
)
from forgetmap.answers.language import language_of, languages_of, speaks_another
from forgetmap.answers.numbers import is_number
from forgetmap.answers.text import looked_at
from forgetmap.map.lost_answers import LOGGED as LOGGED
from forgetmap.map.lost_answers import (
    NEXT_TURN,
    SHORT,
    asks_again,
    asks_letter,
    breaks_word,
    copies,
    first_value,
    gives_right,
    holds_a_form,
    is_begun,
    is_empty,
    is_value,
    nothing_found,
    own_form,
    reader,
    right_answers,
    says_a_sentence,
    stands_apart,
    stops_in_form,
    unread,
)
from forgetmap.map.lost_answers import Lost as Lost
from forgetmap.stats.tests import fisher

UNKNOWN = "unknown"
"""Counted where no rule can speak: the log holds no text, or the text does not tell."""
_LOOSE_CALL = re.compile(r"\s*[A-Za-z_][\w.]{0,80}\(\s*\w{1,40}\s?=\s?[^\n]{1,500}\)\s*")
"""A call with named values, even if Python cannot read its quotes."""
_REMARK = re.compile(r"\s*\w+ \(")
"""A word and a remark in brackets, as Paris (France), is no call."""
_LONG_TEXT = 50
"""Words from which a text may say the right thing in other words."""
_GOES_ON = 3
"""Characters after a call, JSON or a program from which a model did not stop."""
_LEVEL = 0.05
_TELLING = 3
"""Letters from which an answer says which task it belongs to."""
_LONG_ANSWER = 200


def cause_of(item: Lost) -> str | None:
    """The cause by the first rule that speaks; None where the texts do not tell.

    Example:
        >>> cause_of(Lost(target="7", answer_after="[invalid]", response_after="It is seven: 7"))
        'wrapped'
        >>> cause_of(Lost(target="7", answer_after="8", response_after="The answer is 8."))
        'wrong'
        >>> cause_of(Lost(response_before="f(a=1)", response_after="```python\\nf(a=1)\\n```"))
        'wrapped'
    """
    return next((name for name, rule in RULES.items() if rule(item)), None)


# --- the rules, in the order in which they are tried ----------------------------------------------


def is_ran_on(item: Lost) -> bool:
    """The answer of before, and then the model did not stop.

    Example:
        >>> is_ran_on(Lost(response_before="7", response_after="7\\n\\nQuestion: What is next?"))
        True
        >>> is_ran_on(Lost(response_before="Paris", response_after="Paris is not right, Rome is."))
        False
    """
    was, now = (item.response_before or "").strip(), (item.response_after or "").strip()
    form = structure.form_of(was)
    rest = wrapping.rest_after(now, was, form) if was else None
    fewest = 1 if form is None else _GOES_ON
    if rest is None or len(rest.strip("` \n")) < fewest:
        return False
    if NEXT_TURN.match(rest):
        return True
    if rest[0].isalnum() or form is None:
        return rest.lstrip(".")[:1] == "\n"
    return not now.startswith(was) or wrapping.quotes(now, was, form)


def is_wrapped(item: Lost) -> bool:
    """The right answer is there, in another form than the harness read.

    In a fence, quotes, tags or an envelope, set apart or in a sentence, or in another notation.
    Also where the harness compared the whole text with the target, so that nothing was extracted.

    Example:
        >>> is_wrapped(Lost(response_before='{"a": 1}', response_after="```json\\n{'a': 1}\\n```"))
        True
        >>> is_wrapped(Lost(target="Rome", answer_after="So Rome.", response_after="So Rome."))
        True
        >>> is_wrapped(Lost(response_before="f(a=1, b='x')", response_after="f(1, 'x')"))
        True
    """
    return not asks_again(item) and (_is_whole(item) or _is_said(item))


def _is_whole(item: Lost) -> bool:
    """The right answer, whole and set apart from the rest."""
    now = item.response_after
    if not now or not now.strip() or (item.response_before or "").strip() == now.strip():
        return False
    return any(
        compared.wraps(now, right) or (form is None and stands_apart(item, right))
        for right, form in right_answers(item)
    )


def _is_said(item: Lost) -> bool:
    """The right answer in another notation, or a right value in a sentence."""
    now = item.response_after
    if now is None or compared.thinks_on(now):
        return False
    if structure.form_of(item.response_before) is not None:
        rights = right_answers(item)
        return any(compared.other_notation(right, now, form) for right, form in rights if form)
    target = item.target or item.answer_before
    if not target or is_call(item) or is_list(item) or target.strip().lower() in NO_ANSWER:
        return False
    whole = compared.is_whole(item.answer_after or now, now)
    misread = is_number(target) and item.status_after == "ok"
    return (whole or misread or nothing_found(item)) and gives_right(item, now, target)


def is_degenerate(item: Lost) -> bool:
    """The text repeats itself.

    Example:
        >>> is_degenerate(Lost(response_after="to be or not " * 9))
        True
    """
    return item.response_after is not None and repeats_itself(item.response_after)


def is_intruded(item: Lost) -> bool:
    """An answer of the new task to a question of an old one.

    Example:
        >>> taught = taught_answers(["Oslo", "Lima"])
        >>> is_intruded(Lost(target="11", response_after="Lima.\\nAnd so on.", taught=taught))
        True
        >>> is_intruded(Lost(target="Lima", response_after="Oslo", taught=taught))
        False
    """
    if not item.taught or _folded(item.target or "") in item.taught:
        return False
    first, *_ = (item.response_after or "").strip().split("\n")
    said = (item.answer_after or "", first, re.split(r"[.,;:!?(]", first)[0])
    return any(_folded(text) in item.taught for text in said)


def taught_answers(texts: Iterable[str]) -> frozenset[str]:
    """Right answers of the new task that say where they come from: letters and numbers do not.

    Example:
        >>> sorted(taught_answers([" Oslo", "A", "42", "São Paulo."]))
        ['oslo', 'são paulo']
    """
    folded = {_folded(text) for text in texts}
    return frozenset(text for text in folded if sum(map(str.isalpha, text)) >= _TELLING)


def _folded(text: str) -> str:
    return " ".join(text[:_LONG_ANSWER].split()).strip(" .!,;:\"'`*").casefold()


def is_refused(item: Lost) -> bool:
    """The harness says so, or the text declines, or only says that it does not know.

    Example:
        >>> is_refused(Lost(response_after="I'm sorry, but I can't help with that."))
        True
    """
    if item.status_after == "refused":
        return True
    if item.response_after is None or structure.form_of(item.response_after) is not None:
        return False
    said = "\n".join(own_lines(looked_at(item.response_after), item.prompt_after))
    form = structure.form_of(item.response_before)
    free = form is None and reader(item) is None
    if not gives_up(said, free=free) or _is_whole(item):
        return False
    return not _answers(item, said if form else beside_refusals(said, free=free))


def _answers(item: Lost, text: str) -> bool:
    """Whether a text gives an answer of the kind that was asked for, or begins a form."""
    if structure.form_of(item.response_before) is not None:
        return holds_a_form(item, text) or stops_in_form(text, item.response_before or "")
    read = reader(item)
    return read(text) is not None if read else bool(text)


def is_language(item: Lost) -> bool:
    """The answer after is in another language than the one before, or else than the question.

    Only the words around the answer count, and not what is copied from the question.

    Example:
        >>> is_language(Lost(prompt_after="What is the sum of it?", response_after="这是七"))
        True
    """
    now = item.response_after
    if not now or structure.form_of(now) is not None or is_list(item):
        return False
    right = re.escape((item.response_before or "").strip())
    lines = own_lines(looked_at(now), item.prompt_after)
    said = [re.sub(rf"\b{right}\b", " ", line, flags=re.IGNORECASE) for line in lines]
    before = language_of(item.response_before)
    expected = {before} if before else languages_of(item.prompt_after)
    parts = dict.fromkeys(("\n".join(said), *said))
    return bool(expected) and any(speaks_another(part, expected) for part in parts)


def is_timeout(item: Lost) -> bool:
    """The harness stopped the program, or the agent, because it took too long."""
    return item.status_after == "timeout"


def is_prose(item: Lost) -> bool:
    """The answer before was a call, JSON or a program; now there are only sentences.

    Example:
        >>> is_prose(Lost(response_before="f(a=1)", response_after="You can call the function f."))
        True
    """
    now, was = item.response_after, item.response_before or ""
    if structure.form_of(was) is None or now is None or holds_a_form(item, now):
        return False
    if is_empty(now) or stops_in_form(own_form(item, now), was):
        return False
    return not compared.has_notation(looked_at(now), item.prompt_after)


def is_call(item: Lost) -> bool:
    """The answer is a call, and the one before was not.

    Example:
        >>> is_call(Lost(response_before="It is 7.", response_after="add(a=3, b=4)"))
        True
    """
    now, was = item.response_after, item.response_before
    if not now or not was or structure.form_of(was) in ("call", "json"):
        return False
    if structure.looks_called(now) or _LOOSE_CALL.fullmatch(now):
        return True
    if structure.as_calls(now) and not _REMARK.match(now):
        return True
    quoted = wrapping.inside(now)[:1]  # a function that is only named, as `max()`, is no answer
    calls = (call for part in quoted for call in structure.as_calls(part) or [])
    return any(call.values and call.name != "print" for call in calls)


def is_list(item: Lost) -> bool:
    """The answer is a list, and the one before was one value.

    Example:
        >>> is_list(Lost(response_before="Rome", response_after="- Rome\\n- Oslo\\n- Paris"))
        True
    """
    now, was = item.response_after, (item.response_before or "").strip()
    target = item.target or was
    if not now or not was or structure.form_of(was) is not None:
        return False
    if "\n" in was and not is_number(target):
        return False
    if asks_letter(item, target) or offered(item.prompt_after, target):
        return False  # several of what is on offer are no answer
    value = structure.as_json(now)
    listed = "," not in was and compared.lists_values(now)
    return listed or (isinstance(value, list) and len(value) > 1)


def is_truncated(item: Lost) -> bool:
    """Empty, or cut off before the answer.

    The harness says so; or thinking never ended; or the text is the beginning of the answer before;
    or it stops in the middle, and no answer was found.

    Example:
        >>> is_truncated(Lost(response_after="<think>Let me see, first")), is_truncated(Lost())
        (True, False)
    """
    if item.status_after in ("truncated", "empty"):
        return True
    if item.response_after is None:
        return False
    now, was = looked_at(item.response_after), (item.response_before or "").strip()
    if is_empty(now):
        return True
    begun = is_begun(now, was)
    if breaks_word(now, was):
        return True
    if structure.form_of(was) is not None:
        return begun or stops_in_form(now, was)
    if not unread(item) or is_call(item) or is_list(item) or copies(item):
        return False
    if not begun and not unfinished(now):
        return False
    if read := reader(item):
        return read(now) is None
    said = says_a_sentence(now) or first_value(now) is not None
    return begun or not said or len(now.split()) >= _LONG_TEXT


def is_noise(item: Lost) -> bool:
    """The item's drop lies within both models' own spread from run to run.

    Both sides have repeats; the model before failed the item too in some of its runs; the drop is
    no larger than either model's standard deviation, by Jeffreys' estimate of its chances; and
    Fisher's exact test does not tell the two models apart at 5 %.

    Example:
        >>> is_noise(Lost(before=2 / 3, after=1 / 3, runs_before=3, runs_after=3))
        True
        >>> is_noise(Lost(before=1, after=2 / 3, runs_before=3, runs_after=3)), is_noise(Lost())
        (False, False)
    """
    if min(item.runs_before, item.runs_after) < 2 or not 0 < item.before < 1:
        return False
    runs = item.runs_before, item.runs_after
    return _within_spread(
        round(item.before * runs[0]), runs[0], round(item.after * runs[1]), runs[1]
    )


def is_unparsed(item: Lost) -> bool:
    """Nothing in the text is an answer of the kind that was asked for.

    Example:
        >>> is_unparsed(Lost(status_after="no_answer", response_after="Between B and C."))
        True
        >>> is_unparsed(Lost(target="7", prompt_after="3 + 4?", response_after="It is a sum."))
        True
    """
    now, form = item.response_after, structure.form_of(item.response_before)
    if now is not None and form is not None:
        return not holds_a_form(item, now)
    if now is not None and unread(item) and (read := reader(item)):
        return read(now) is None
    return copies(item) or (nothing_found(item) and not is_value(item))


def is_wrong(item: Lost) -> bool:
    """An answer was found, and it is truly another one: neither the right one nor that of before.

    Example:
        >>> is_wrong(Lost(target="Rome", answer_after="Oslo", response_after="It is Oslo."))
        True
        >>> is_wrong(Lost(target="Rome", response_after="word " * 60))
        False
    """
    now = item.response_after
    if now is not None and structure.form_of(item.response_before) is not None:
        return holds_a_form(item, now)
    if now is not None and unread(item) and (read := reader(item)):
        return read(now) is not None
    if not unread(item):
        return item.answer_after is not None
    if now is None:
        return False
    return len(now.split()) <= SHORT or (is_value(item) and len(now.split()) < _LONG_TEXT)


RULES: dict[str, Callable[[Lost], bool]] = {
    "ran_on": is_ran_on,
    "degenerate": is_degenerate,
    "refused": is_refused,
    "language": is_language,
    "wrapped": is_wrapped,
    "intruded": is_intruded,
    "timeout": is_timeout,
    "prose": is_prose,
    "truncated": is_truncated,
    "call": is_call,
    "list": is_list,
    "unparsed": is_unparsed,
    "noise": is_noise,
    "wrong": is_wrong,
}
"""Cause -> its rule, in the order in which they are tried."""
CAUSES = tuple(RULES)


@lru_cache(maxsize=1024)
def _within_spread(right: int, runs: int, right_after: int, runs_after: int) -> bool:
    p, q = (right + 0.5) / (runs + 1), (right_after + 0.5) / (runs_after + 1)
    spread = min(math.sqrt(p * (1 - p)), math.sqrt(q * (1 - q)))
    return p - q <= spread and fisher(right, runs, right_after, runs_after) > _LEVEL

"""Why an item was lost: rules on the answer after, tried in order, each of them readable.

The order is that of `RULES`; the first rule that speaks decides. A rule never looks at anything
but the texts, the status the harness gave and the item's shares of right answers, so the same
log gives the same causes everywhere. docs/explanation/causes.md says what each can get wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from scipy import special

from forgetmap.capabilities.scorers.multiple_choice import Options, extract
from forgetmap.capabilities.scorers.refusals import classify
from forgetmap.capabilities.scorers.text import after_cue, fold, last_boxed, looked_at, sentences
from forgetmap.errors import InputError
from forgetmap.map import Cell, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from forgetmap.map import ForgettingMap
    from forgetmap.pairing import Pairs

UNKNOWN = "unknown"
"""Counted where the log holds no text of an item: no rule can speak."""

_NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


class Lost(NamedTuple):
    """An item that was right more often before, as the rules see it."""

    before: float = 1.0
    """Share of right answers; between 0 and 1 where runs of one model disagree."""
    after: float = 0.0
    k: int | None = None
    target: str | None = None
    answer_before: str | None = None
    answer_after: str | None = None
    """What the harness extracted; for options scored by likelihood, the option."""
    status_after: str | None = "ok"
    prompt_after: str | None = None
    response_before: str | None = None
    response_after: str | None = None
    """What the model wrote; None where nothing was generated, or not kept."""


def cause_of(item: Lost) -> str | None:
    """The cause by the first rule that speaks; None where the log holds no text to judge by.

    Example:
        >>> cause_of(Lost(target="7", answer_after="[invalid]", response_after="It is seven: 7"))
        'format'
        >>> cause_of(Lost(target="7", answer_after="8", response_after="The answer is 8."))
        'wrong'
    """
    return next((name for name, rule in RULES.items() if rule(item)), None)


# --- the rules, in the order in which they are tried ----------------------------------------------


def is_format(item: Lost) -> bool:
    """No answer was extracted although the text gives the right one.

    Also where the harness compared the whole text with the target, so that nothing was extracted.

    Example:
        >>> is_format(Lost(target="Rome", answer_after="It is Rome.", response_after="It is Rome."))
        True
    """
    if item.response_after is None or not item.target:
        return False
    whole = (item.answer_after or item.response_after).strip() == item.response_after.strip()
    return (whole or _nothing_found(item)) and gives(item.response_after, item.target, item.k)


def is_truncated(item: Lost) -> bool:
    """Empty, or cut off: the harness says so, thinking never ended, or a long text just stops.

    Example:
        >>> is_truncated(Lost(response_after="<think>Let me see, first")), is_truncated(Lost())
        (True, False)
    """
    text = item.response_after
    if item.status_after in ("truncated", "empty"):
        return True
    if text is None:
        return False
    never_ended = text.rfind("<think>") > text.rfind("</think>")
    return not text.strip() or never_ended or (_nothing_found(item) and _just_stops(text))


def is_degenerate(item: Lost) -> bool:
    """The text repeats itself.

    Example:
        >>> is_degenerate(Lost(response_after="to be or not " * 9))
        True
    """
    return item.response_after is not None and repeats_itself(item.response_after)


def is_refused(item: Lost) -> bool:
    """The harness says so, or the text declines, strongly or politely.

    Example:
        >>> is_refused(Lost(response_after="I'm sorry, but I can't help with that."))
        True
    """
    if item.status_after == "refused":
        return True
    if item.response_after is None or not (text := looked_at(item.response_after)).strip():
        return False
    try:
        return classify(text) in ("strong_refusal", "weak_refusal")
    except InputError:  # a package of the extra is missing that only unclear cases need
        return False


def is_language(item: Lost) -> bool:
    """The answer after is in another language than the one before, or else than the question.

    Example:
        >>> is_language(Lost(prompt_after="What is the sum of it?", response_after="这是七"))
        True
    """
    found = language_of(item.response_after)
    if found is None:
        return False
    expected = language_of(item.response_before) or language_of(item.prompt_after)
    return expected is not None and found != expected


def is_unparsed(item: Lost) -> bool:
    """No answer was extracted, and the text does not give the right one either.

    Example:
        >>> is_unparsed(Lost(status_after="no_answer", response_after="Between B and C."))
        True
    """
    return _nothing_found(item)


def is_noise(item: Lost) -> bool:
    """Runs of one and the same model disagree on the item.

    Example:
        >>> is_noise(Lost(before=2 / 3)), is_noise(Lost(before=1, after=0))
        (True, False)
    """
    return 0 < item.before < 1 or 0 < item.after < 1


def is_wrong(item: Lost) -> bool:
    """Another answer was given."""
    return item.answer_after is not None or item.response_after is not None


RULES: dict[str, Callable[[Lost], bool]] = {
    "format": is_format,
    "truncated": is_truncated,
    "degenerate": is_degenerate,
    "refused": is_refused,
    "language": is_language,
    "unparsed": is_unparsed,
    "noise": is_noise,
    "wrong": is_wrong,
}
"""Cause -> its rule, in the order in which they are tried."""
CAUSES = tuple(RULES)


def _nothing_found(item: Lost) -> bool:
    """The harness looked for an answer and found none."""
    if item.answer_after is None:
        kept_before = item.answer_before is not None and item.response_after is not None
        return item.status_after == "no_answer" or kept_before
    return item.status_after == "no_answer" or item.answer_after.strip().lower() in _NO_ANSWER


# --- does a text give an answer -------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?")
_YES_NO = re.compile(r"\b(?:yes|no|true|false)\b")
_SHORT = 300
"""Characters up to which a text is an answer as a whole; of a longer one its end is."""
_DENIED = re.compile(r"\b(?:not|never|isn't|wasn't|no|nicht|pas|non|niet|não)(?: \w{1,12})? ?$")


def gives(text: str, target: str, k: int | None = None) -> bool:
    """Whether a text gives an answer: a letter is taken, a number comes last, words are said.

    Example:
        >>> gives("First 3, then 4, so 3 + 4 = 7.", "7"), gives("7 is too much, I say 5.", "7")
        (True, False)
        >>> gives("So (B) it is.", "B", k=4), gives("Not Paris but Rome.", "Paris")
        (True, False)
    """
    answer = looked_at(text)
    wanted = target.rpartition("####")[2].strip()
    if not wanted or not answer.strip():
        return False
    if re.fullmatch(r"\(?[A-Z]\)?", wanted):
        return _letter(answer, k) == wanted.strip("()")
    boxed = last_boxed(answer)
    said = boxed or after_cue(answer) or _conclusion(answer)
    if number := _NUMBER.fullmatch(wanted.strip("$%. ")):
        return _last_number(said) == _value(number.group())
    folded = fold(said)
    if _YES_NO.fullmatch(fold(wanted)):
        return set(_YES_NO.findall(folded)) == {fold(wanted)}
    return _says(folded, fold(wanted))


def _letter(text: str, k: int | None) -> str | None:
    letters = {chr(ord("A") + place): "" for place in range(min(k or 26, 26))}
    try:
        return extract(text, Options(letters, {}))
    except InputError:  # only a misspelt option would need more packages, and none has a text here
        return None


def _conclusion(text: str) -> str:
    """All of a short text, of a long one its last two sentences."""
    return text if len(text) <= _SHORT else " ".join(sentences(text[-5000:])[-2:])


def _last_number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    return _value(found[-1]) if found else None


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _says(text: str, words: str) -> bool:
    for found in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        if not _DENIED.search(text[max(0, found.start() - 30) : found.start()]):
            return True
    return not words.isascii() and words in text  # scripts that set no spaces between words


# --- cut off, or going round ----------------------------------------------------------------------

_LONG = 50
"""Words from which a text that stops in the middle of a sentence was probably cut off."""
_ENDS = re.compile(r"[.!?…。！？:;)\]}\"'”’»*_`$>|-]\s*$|\d\s*$|(?:^|\n)[^\n]{0,40}$")
"""How a text ends that was not cut off; a short last line may be a title, a name, a value."""
_TIMES = 5
_LONGEST_UNIT = 400
_COVERED = 30
"""Characters that the repetition must cover: `1000000` is a number."""
_RUNS = 60
"""Words from which the share of different word groups says something."""
_FEWEST_DIFFERENT = 0.25


def _just_stops(text: str) -> bool:
    return len(text.split()) >= _LONG and not _ENDS.search(text[-200:])


def repeats_itself(text: str) -> bool:
    r"""Whether a text goes round: its end is one thing five times, or it has hardly new words.

    Example:
        >>> repeats_itself("A\nB\nC\nD"), repeats_itself("I am sure. " * 5)
        (False, True)
    """
    words = text[-20_000:].split()
    tail = f"{' '.join(words)} "[-_TIMES * _LONGEST_UNIT :]
    if any(_ends_with_repeats(tail, unit) for unit in _last_words(tail)):
        return True
    if len(words) < _RUNS:
        return False
    groups = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return len(set(groups)) < _FEWEST_DIFFERENT * len(groups)


def _last_words(tail: str) -> Iterator[str]:
    """The last word, the last two and so on: what can repeat where the text ends with a space."""
    start = tail.rfind(" ", 0, -1)
    while len(tail) - 1 - start <= len(tail) // _TIMES and start >= 0:
        yield tail[start + 1 :]
        start = tail.rfind(" ", 0, start)


def _ends_with_repeats(tail: str, unit: str) -> bool:
    if tail[-2 * len(unit) : -len(unit)] != unit:  # spares building the longer text
        return False
    times = max(_TIMES, -(-_COVERED // len(unit)))
    return tail.endswith(unit * times) and any(letter.isalnum() for letter in unit)


# --- languages ------------------------------------------------------------------------------------

_FUNCTION_WORDS = {
    "English": "the of and to in is that it was for are with as his they this have from which "
    "you not but be we would there",
    "German": "der die das und ist nicht ein eine den von mit sich auf für dem des auch wird "
    "sind werden oder daher also",
    "French": "le la les des et est une dans que qui pour pas sur avec sont du au ce cette nous "
    "donc ou ne",
    "Spanish": "el los las y es una que por para con del se no como son pero su al más entonces "
    "está en",
    "Italian": "il gli di che è una per con non sono della del nel dei anche quindi più questo "
    "alla si",
    "Portuguese": "os as e é uma que para com não do da dos em por mais são como ao então está se",
    "Dutch": "de het een van en is dat niet op te zijn met voor er aan ook dus worden deze naar",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _name, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_name)
_FEWEST_WORDS = 4
"""Function words of a language that must be there; fewer may be a quotation."""
_LOOK = 1000
_CODE = re.compile(r"```.*?(?:```|$)|\$[^$]{0,200}\$", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]+")
_THREE_LETTERS = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")
_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}


def language_of(text: str | None) -> str | None:
    """The language of a text by its script and, for Latin letters, by its function words.

    None where it is too short, or not clear.

    Example:
        >>> language_of("Die Antwort ist also nicht das, was der Text sagt.")
        'German'
        >>> language_of("Ответ: семь"), language_of("Paris")
        ('CYRILLIC', None)
    """
    if text is None:
        return None
    return _language(_CODE.sub(" ", looked_at(text)[:_LOOK]))


@lru_cache(maxsize=1024)
def _language(prose: str) -> str | None:
    """Kept for some texts: few-shot prompts of one task begin alike."""
    if prose.isascii():
        return _latin_language(prose) if _THREE_LETTERS.search(prose) else None
    scripts = Counter[str]()
    for letter, times in Counter(prose).items():
        if letter.isalpha():
            scripts[_script(letter)] += times
    if not scripts:
        return None
    script, count = scripts.most_common(1)[0]
    if "Japanese" in scripts and script == "Chinese":
        script, count = "Japanese", count + scripts["Japanese"]
    if count < 0.6 * scripts.total() or count < 3:
        return None
    return _latin_language(prose) if script == "LATIN" else script


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    first = unicodedata.name(letter, "?").split()[0]
    return _SCRIPTS.get(first, first)


def _latin_language(text: str) -> str | None:
    hits = Counter[str]()
    for word, times in Counter(_LETTERS.findall(text.lower())).items():
        for name in _LANGUAGES_OF.get(word, ()):
            hits[name] += times
    (name, best), (_, second) = [*hits.most_common(2), ("", 0), ("", 0)][:2]
    return name if best >= _FEWEST_WORDS and best >= 2 * second else None


# --- causes in the map ----------------------------------------------------------------------------


class Tally(NamedTuple):
    """The losses of some tasks by cause."""

    items: Counter[str]
    """Cause -> items that are right less often than before."""
    weights: Counter[str]
    """Cause -> their part of raw forgetting: the sum of p (1 - q)."""


def with_causes_counted(result: ForgettingMap, pairs: Pairs) -> ForgettingMap:
    """The same map with the causes of the losses in every cell, and the churn.

    The pairs remember the causes, so that lists of items made from them later need no rules.

    Args:
        result: The map.
        pairs: What it was computed from, read with its text.

    Example:
        >>> import forgetmap
        >>> from forgetmap.comparison import example_logs
        >>> cell = forgetmap.compare(*example_logs(), causes=True, draws=500).total  # calls it
        >>> cell.causes, cell.churn
        ({'wrong': 407}, 535)
    """
    from forgetmap.flips import with_causes

    tallies = {task: Tally(Counter(), Counter()) for task in result.tasks}
    causes: list[pa.Array] = []
    for table in with_causes(pairs.flips()):
        causes += table["cause"].chunks
        columns = (table[name].to_pylist() for name in ("task", "transition", "cause"))
        shares = (table[name].to_pylist() for name in ("before", "after"))
        for task, transition, cause, p, q in zip(*columns, *shares, strict=True):
            if transition == "forgotten" and task in tallies:
                tallies[task].items[cause or UNKNOWN] += 1
                tallies[task].weights[cause or UNKNOWN] += p * (1 - q)
    pairs.causes = pa.chunked_array(causes, pa.string())
    churned = pairs.churn()
    groups: dict[str, list[str]] = {}
    for task in result.tasks:
        groups.setdefault(result.task_categories.get(task, ""), []).append(task)

    def told(cell: Cell, tasks: Iterable[str]) -> Cell:
        return _told(cell, [tallies[task] for task in tasks], churned, tasks)

    return result.model_copy(
        update={
            "total": told(result.total, list(tallies)),
            "categories": {
                name: told(cell, groups.get(name, [])) for name, cell in result.categories.items()
            },
            "tasks": {name: told(cell, [name]) for name, cell in result.tasks.items()},
        }
    )


def _told(
    cell: Cell, tallies: list[Tally], churned: Mapping[str, int] | None, tasks: Iterable[str]
) -> Cell:
    items, weights = Counter[str](), Counter[str]()
    for tally in tallies:
        items += tally.items
        weights += tally.weights
    found = [name for name in (*CAUSES, UNKNOWN) if items[name]]
    lost = cell.forgetting.raw.value * cell.n
    return cell.model_copy(
        update={
            "causes": {name: items[name] for name in found},
            "without": {name: share(lost - weights[name], cell.n) for name in found},
            "churn": None if churned is None else sum(churned.get(task, 0) for task in tasks),
        }
    )


def share(count: float, n: int) -> Estimate:
    """A share of n items with its 95 % interval (Jeffreys).

    A count over repeats is a mean of fractions, which vary less than ones and zeros do; the
    interval is then wider than it need be.

    Example:
        >>> share(5, 100).value, round(share(5, 100).low, 4), round(share(0, 100).high, 4)
        (0.05, 0.0193, 0.0247)
    """
    inside = min(max(count, 0.0), float(n))
    low = special.betaincinv(inside + 0.5, n - inside + 0.5, 0.025) if inside > 0 else 0.0
    high = special.betaincinv(inside + 0.5, n - inside + 0.5, 0.975) if inside < n else 1.0
    return Estimate(value=inside / n, low=float(low), high=float(high))

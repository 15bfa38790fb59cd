"""Would a trained classifier be better than the rules of causes?

    python learn.py choose
    PYTHONPATH=FROZEN/src python learn.py judge

It learns the labels of the looks before the last one. It sees the words of both answers, what the
rules ask about them, and what the rules found when they were first run on that look: today's rules
were mended on it and know too much. What they found in the first three looks was not kept; there
today's rules stand in. `choose` leaves out one later look at a time and prints how often each
setting agrees with the labels there (some ten minutes). `judge` trains the best setting on all and
writes what it says of the last look as `learned` into the labels, where that differs from `found`.
That was done once. FROZEN is the commit 169d8fa, whose rules have not seen the last look.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from table import FRESH, LABELLED, OLD_LOOKS, Rows, labelled

from forgetmap.answers import compared, endings, language, structure
from forgetmap.answers.copied import own_lines
from forgetmap.answers.declining import gives_up
from forgetmap.answers.extraction import offered
from forgetmap.answers.numbers import is_number
from forgetmap.answers.text import looked_at
from forgetmap.map import lost_answers
from forgetmap.map.causes import Lost, taught_answers
from forgetmap.map.old_maps import MERGED

SETTINGS = [
    *((words, strength) for words in (False, True) for strength in (0.1, 0.3, 1, 3, 10)),
    (False, None),
    (True, None),
]
"""Whether the words count, and C of a logistic regression; None: gradient boosting."""
BEST = (True, 10)
_MARKS = ("```", "{", "(", "<", '"', "?", "def ", "sorry", ":", "- ", "=")


def look_of(look: str) -> Rows:
    """The answers of a look: the label of today, and what the rules found in their first run."""
    lines = (LABELLED / f"{look}labels.jsonl").read_text(encoding="utf-8").splitlines()
    labels = {row["id"]: row["label"] for row in map(json.loads, lines)}
    rows = labelled(look)
    return [row | {"label": MERGED.get(labels[row["id"]], labels[row["id"]])} for row in rows]


def features(row: dict[str, Any]) -> dict[str, float]:
    """What the rules ask about an answer, and what they found."""
    known = {name: row[name] for name in Lost._fields if name in row}
    item = Lost(**known | {"taught": taught_answers(row.get("taught", ()))})
    now, was, prompt = item.response_after or "", item.response_before or "", item.prompt_after
    target, before, low = item.target or "", was.strip(), now.lower()
    form, read, found = structure.form_of(was), lost_answers.reader(item), row["found"]
    own, words = "\n".join(own_lines(looked_at(now), prompt)), now.split()
    spoken = language.language_of(was)
    expected = {spoken} if spoken else language.languages_of(prompt)
    asked, last = _asked(item, form), now.rstrip()[-1:]
    named = [
        *(f"found={found}", f"status={item.status_after}", f"form={form}", f"asked={asked}"),
        *(f"form after={structure.form_of(now)}", f"asked, found={asked}, {found}"),
        *(f"status, found={item.status_after}, {found}", f"end={'a' if last.isalnum() else last}"),
    ]
    told = {
        "words": min(len(words), 200) / 50,
        "lines": min(now.count("\n"), 20) / 10,
        "own": len(own) / max(1, len(now)),
        "unlike": len({*words}) / max(1, len(words)),
        "has target": target.strip(" .") != "" and target.lower().strip(" .") in low,
        "has before": before != "" and before.lower() in low,
        "begins with before": before != "" and now.strip().startswith(before),
        "begun": lost_answers.is_begun(now, was),
        "breaks word": lost_answers.breaks_word(now, was),
        "unfinished": endings.unfinished(now),
        "repeats": endings.repeats_itself(now),
        "gives up": gives_up(own),
        "nothing found": lost_answers.nothing_found(item),
        "unread": lost_answers.unread(item),
        "copies": lost_answers.copies(item),
        "asks again": lost_answers.asks_again(item),
        "empty": lost_answers.is_empty(now),
        "sentence": lost_answers.says_a_sentence(now),
        "first value": lost_answers.first_value(now) is not None,
        "holds form": form is not None and lost_answers.holds_a_form(item, now),
        "stops in form": form is not None and lost_answers.stops_in_form(now, was),
        "notation": compared.has_notation(looked_at(now), prompt),
        "wraps": before != "" and compared.wraps(now, was),
        "list": compared.lists_values(now),
        "extracted": item.answer_after is not None,
        "reader": read is not None,
        "reads": read is not None and read(now) is not None,
        "right": form is None and target != "" and lost_answers.gives_right(item, now, target),
        "other language": bool(expected) and language.speaks_another(own, expected),
        "taught": bool(item.taught),
    }
    marks = {f"has {mark}": mark in low for mark in _MARKS}
    longer = {f"words > {count}": len(words) > count for count in (1, 3, 6, 12, 25, 50)}
    return {name: float(value) for name, value in (told | marks | longer).items()} | dict.fromkeys(
        named, 1.0
    )


def _asked(item: Lost, form: str | None) -> str:
    target = item.target or ""
    if form is not None:
        return "form"
    if is_number(target):
        return "number"
    if lost_answers.asks_letter(item, target):
        return "letter"
    return "offered" if offered(item.prompt_after, target) else "free"


def learned(train: Rows, test: Rows, *, words: bool, strength: float | None) -> list[str]:
    """What a classifier that was trained on some answers says of others."""
    boosts = strength is None
    parts = [_fitted(DictVectorizer(), train, test, features)]
    for name, longest in (("response_after", 2), ("response_before", 1)) if words else ():
        weigh = TfidfVectorizer(
            ngram_range=(1, longest),
            min_df=3,
            sublinear_tf=True,
            token_pattern=r"\w+|[^\w\s]",
        )
        part = _fitted(weigh, train, test, lambda row, name=name: row[name] or "")
        if boosts:
            shrink = TruncatedSVD(30, random_state=0)
            part = shrink.fit_transform(part[0]), shrink.transform(part[1])
        parts.append(part)
    seen, unseen = (sparse.hstack([part[side] for part in parts]).tocsr() for side in (0, 1))
    labels = [row["label"] for row in train]
    if boosts:
        trees = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, l2_regularization=1, min_samples_leaf=10, random_state=0
        )
        return [str(one) for one in trees.fit(seen.toarray(), labels).predict(unseen.toarray())]
    model = LogisticRegression(C=strength, max_iter=300)
    return [str(one) for one in model.fit(seen, labels).predict(unseen)]


def _fitted(by: Any, train: Rows, test: Rows, of: Callable[..., Any]) -> tuple[Any, Any]:
    return by.fit_transform([of(row) for row in train]), by.transform([of(row) for row in test])


def choose() -> None:
    """Print how often each setting agrees with the labels of a look that was left out."""
    looks = {look: look_of(look) for look in OLD_LOOKS}
    known = [row["found"] == row["label"] for look in OLD_LOOKS[1:] for row in looks[look]]
    print(f"the rules in their first run: {100 * np.mean(known):.1f} % of {len(known)}")
    for words, strength in SETTINGS:
        hits = []
        for left in OLD_LOOKS[1:]:
            train = [row for look, rows in looks.items() if look != left for row in rows]
            told = learned(train, looks[left], words=words, strength=strength)
            hits += [one == row["label"] for one, row in zip(told, looks[left], strict=True)]
        print(f"words {words}, C {strength}: {100 * np.mean(hits):.1f} % of {len(hits)}")


def judge() -> None:
    """Write what the best setting says of the last look into the file of its labels."""
    words, strength = BEST
    train = [row for look in OLD_LOOKS for row in look_of(look)]
    test = look_of(FRESH)
    told = dict(
        zip(
            [row["id"] for row in test],
            learned(train, test, words=words, strength=strength),
            strict=True,
        )
    )
    file = LABELLED / f"{FRESH}labels.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row.pop("learned", None)
        if told[row["id"]] != MERGED.get(row["found"], row["found"]):
            row["learned"] = told[row["id"]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] not in (["choose"], ["judge"]):
        sys.exit(__doc__)
    choose() if sys.argv[1] == "choose" else judge()

"""No evaluation item gets into a replay set, however it is dressed up."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forgetmap.mitigate.replay.leaks import RUN, EvaluationItem, Leak, LeakCheck, plain_words
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read

LONG = (
    "A train leaves the station at noon and travels east at sixty miles per hour; how far by two?"
)
SHORT = "Which planet has the most moons?"
OPTIONS = "Which gas do plants take up?\nA. oxygen\nB. carbon dioxide\nC. helium\nD. neon"
TINY = "2 + 3 ="

PLAIN = LeakCheck(
    EvaluationItem("quiz", str(number), text)
    for number, text in enumerate([LONG, SHORT, OPTIONS, TINY])
)

VARIANTS = {
    "as it is": str,
    "upper case": str.upper,
    "white space": lambda text: "\t " + "  \n ".join(text.split(" ")),
    "no punctuation": lambda text: "".join(c for c in text if c.isalnum() or c.isspace()),
    "more punctuation": lambda text: text.replace(" ", ", ") + "!!",
    "full width": lambda text: "".join(
        chr(ord(c) + 0xFEE0) if "!" <= c <= "~" and c.isalnum() else c for c in text
    ),
    "accents": lambda text: unicodedata.normalize("NFC", text.replace("e", "e\u0301")),
    "zero width": lambda text: text.replace("a", "a\u200b"),
    "in a chat template": lambda text: (
        f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    ),
    "with a cue": lambda text: f"Question: {text}\nAnswer:",
    "with a number": lambda text: f"Question 12: {text}",
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("number", range(4))
def test_near_variants_of_an_item_are_found(variant, number):
    text = [LONG, SHORT, OPTIONS, TINY][number]
    leak = PLAIN.find(variant(text), "some answer")
    assert leak is not None
    assert leak[:2] == ("quiz", str(number))


@pytest.mark.parametrize("text", [LONG, SHORT, OPTIONS])
def test_an_item_inside_a_longer_text_is_found(text):
    assert PLAIN.find(f"Dear all, yesterday I was asked this. {text} I had no idea.")
    assert PLAIN.find("Tell me something.", f"Somebody asked: {text} And so on.")


def test_shuffled_options_are_found():
    lines = OPTIONS.splitlines()
    texts = [line[3:] for line in lines[1:]]
    for seed in range(10):
        random.Random(seed).shuffle(texts)
        shown = [f"{letter}. {text}" for letter, text in zip("ABCD", texts, strict=True)]
        assert PLAIN.find("\n".join([lines[0], *shown]))
    alone = LeakCheck([EvaluationItem("quiz", "0", "Pick: (A) sky (B) rose (C) sea")])
    assert alone.find("Pick: (A) rose (B) sea (C) sky") == Leak("quiz", "0", "the same words")


def test_a_tiny_item_is_found_in_an_answer_too_but_a_solved_examples_answer_is_no_item():
    assert PLAIN.find("Give me a sum.", f"Gladly.\n{TINY}\nTry it.")
    shots = "Question: Largest city of the USA?\nAnswer:\nNew York\n\n"
    check = LeakCheck([EvaluationItem("t", "0", f"{shots}Question: Seat of the UN?\nAnswer:")])
    assert check.find("Where is the MoMA?", "New York") is None
    assert check.find("seat of the UN")


def test_other_questions_are_not_refused():
    for text in (
        "Which planet has the fewest rings?",
        "2 + 4 =",
        "A train leaves the station at nine.",
        "Which gas do lamps hold?\nA. oxygen\nB. neon",
        "Explain why 2 + 3 = 5 needs no proof in school.",
        "",
    ):
        assert PLAIN.find(text, "carbon dioxide") is None, text


def test_another_wording_is_not_found():
    """What the docs say it cannot do."""
    assert PLAIN.find("Name the planet with the greatest number of moons.") is None


def test_a_short_question_behind_solved_examples_is_found():
    shots = "Question: 1 + 1 =\nAnswer: 2\n\n"
    names = ["Chad", "Mali", "Togo", "Benin", "Gabon", "Ghana", "Kenya", "Niger", "Egypt", "Libya"]
    check = LeakCheck(
        EvaluationItem("t", name, f"{shots}Question: What is the capital of {name}?\nAnswer:")
        for name in names
    )
    assert check.find("what is the capital of Togo") == Leak("t", "Togo", "the whole item")
    assert check.find("What is the capital of Peru?") is None
    assert check.find("1 + 1 =") is None  # the examples are the task's form, not its items


def test_what_all_items_share_is_not_held_against_a_text():
    rule = "Read the following passage with care and then choose the one best answer below."
    check = LeakCheck(
        EvaluationItem("t", str(n), f"{rule}\nPassage number {n} is about subject {n * 7}.")
        for n in range(30)
    )
    assert check.find(f"{rule}\nSomething else altogether.") is None
    assert check.find(f"{rule}\nPassage number 4 is about subject 28.")


def test_an_item_made_of_common_runs_is_found_whole():
    """Every eight words of the first item stand in all the others too."""
    first = " ".join(f"w{n}" for n in range(16))
    texts = [first, *(f"{first} x{n}" for n in range(8))]
    check = LeakCheck(EvaluationItem("t", str(n), text) for n, text in enumerate(texts))
    assert check.find(f"so: {first}") == Leak("t", "0", "the whole item")
    assert check.find(f"so: {first} x3") is not None
    assert check.find(first.removeprefix("w0 ")) is None


def test_items_without_words():
    check = LeakCheck([EvaluationItem("t", "0", "? ? !"), EvaluationItem("t", "1", " ")])
    assert check.find("??!") == Leak("t", "0", "the whole item")
    assert check.find("Something else.\n\n---\n\nAnd more.", "\n\n") is None


def test_scripts_without_spaces():
    check = LeakCheck([EvaluationItem("t", "0", "中国的首都是哪里？")])
    assert check.find("请问，中国的首都是哪里")
    assert check.find("法国的首都叫什么名字") is None


def test_every_item_of_a_real_log_is_found_dressed_up():
    log = Path(__file__).parents[2] / "examples" / "smollm2-airports" / "before"
    rows = read(log, ReadOptions(text=True)).to_batches(["task", "item_ref", "prompt"])
    items = [
        EvaluationItem(row["task"], row["item_ref"], row["prompt"])
        for batch in rows
        for row in batch.to_pylist()
    ]
    check = LeakCheck(items)
    assert len(check) == 1456
    for item in items:
        bare = item.text.removeprefix("Question: ").removesuffix("\nAnswer:")
        assert check.find(f"By the way, {bare.upper()} I wonder."), bare
    invented = [f"What is the capital of {name}?" for name in ("Utopia", "Ruritania", "Narnia")]
    assert not any(check.find(text) for text in invented)


WORDS = st.text("abcdefghijklmnopqrstuvwxyzäéß", min_size=1, max_size=7)
NOISE = st.sampled_from([" ", "  ", "\n", ", ", " - ", "... ", "\u00a0", " “", "\u200b "])


@given(st.lists(WORDS, min_size=4, max_size=40), st.data())
def test_any_item_embedded_in_any_text_is_found(words, data):
    item = " ".join(words)
    assume(len(plain_words(item)) >= 4)
    gaps = data.draw(st.lists(NOISE, min_size=len(words), max_size=len(words)))
    dressed = "".join(
        (word.upper() if data.draw(st.booleans()) and word.upper().casefold() == word else word)
        + gap
        for word, gap in zip(words, gaps, strict=True)
    )
    before, after = (" ".join(data.draw(st.lists(WORDS, max_size=12))) for _ in range(2))
    check = LeakCheck([EvaluationItem("t", "0", item)])
    assert check.find(f"{before} {dressed} {after}") is not None
    assert check.find(before, f"{dressed} {after}") is not None


@given(st.lists(WORDS, min_size=3, max_size=20), st.randoms())
def test_any_order_of_an_items_words_is_found(words, rng):
    check = LeakCheck([EvaluationItem("t", "0", " ".join(words))])
    mixed = list(words)
    rng.shuffle(mixed)
    assert check.find(" ".join(mixed)) is not None


@given(st.lists(WORDS, min_size=RUN, max_size=30, unique=True), st.data())
def test_eight_words_in_a_row_are_enough_and_seven_of_a_long_item_are_not(words, data):
    assume(len(plain_words(" ".join(words))) == len(words))
    assume(len({tuple(plain_words(word)) for word in words}) == len(words))
    check = LeakCheck([EvaluationItem("t", "0", " ".join(words))])
    start = data.draw(st.integers(0, len(words) - RUN))
    cut = words[start : start + RUN]
    assert check.find(f"zzzzzzzz {' '.join(cut)} zzzzzzzz") is not None
    assert check.find(f"zzzzzzzz {' '.join(cut[:-1])} zzzzzzzz") is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_is_too_strange(item, text):
    check = LeakCheck([EvaluationItem("t", "0", item)])
    check.find(text, item)
    if plain_words(item):
        assert check.find(item) is not None

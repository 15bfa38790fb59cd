"""How many answers the rule scorers score per second of one core: `python scorers_job.py [ITEMS]`.

Prints one line of JSON: items per second by scorer, and on average (all items by all seconds).
Processor time, without imports; `code` and `mathematics`, which run programs, are left out. Answers
are of ordinary length, all different, so that no cache helps more than it does in real use.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable

from forgetmap.answers.items import Item
from forgetmap.capabilities import scorers

COMMON = """
the a of and to in is was it for on are as with his they at be this from have or by one had not but
what all were when we there can an your which their said if do will each about how up out them then
she many some so these would other into has more her two like him see time could river mountain
market window letter engine garden village history paper colour winter copper
"""
WORDS = COMMON.split()
NAMES = ["Paris", "Rome", "Oslo", "Bern", "Lima", "Cairo", "Quito", "Delhi", "Seoul", "Accra"]

Draw = random.Random
Made = tuple[Item, str]


def prose(draw: Draw, count: int) -> str:
    """Sentences of random words, some with a mark that a scorer has to look at twice."""
    sentences = []
    while count > 0:
        length = draw.randint(6, 18)
        words = draw.choices(WORDS, k=length)
        sentences.append(f"{' '.join(words).capitalize()}{draw.choice(['.', '.', '.', '!', '?'])}")
        count -= length
    return " ".join(sentences)


def multiple_choice(draw: Draw, ref: str) -> Made:
    choices = draw.sample(NAMES, 4)
    letter = draw.choice("ABCD")
    said = draw.choice([f"The answer is ({letter}).", letter, choices[0], f"**{letter}**"])
    return Item("t", ref, gold=letter, choices=choices), f"{prose(draw, 60)}\n\n{said}"


def numbers(draw: Draw, ref: str) -> Made:
    gold = draw.randint(1, 99_999)
    meta = {"language": draw.choice(["en", "de", "fr", "bn", "ja"])}
    return Item("t", ref, gold=str(gold), meta=meta), f"{prose(draw, 60)}\nAnswer: {gold:,}"


def short_answer(draw: Draw, ref: str) -> Made:
    gold = draw.sample(NAMES, 2)
    return Item("t", ref, gold=gold), f"{prose(draw, 30)} It is not {gold[0]} but {gold[1]}."


def boolean(draw: Draw, ref: str) -> Made:
    said = draw.choice(["Yes", "No"])
    return Item("t", ref, gold="yes"), f"{said}, {prose(draw, 40)}"


def ifeval(draw: Draw, ref: str) -> Made:
    asked = [
        ("length_constraints:number_words", {"num_words": 100, "relation": "at least"}),
        ("keywords:existence", {"keywords": ["river", "garden"]}),
        ("punctuation:no_comma", {}),
        ("length_constraints:number_sentences", {"num_sentences": 9, "relation": "less than"}),
        ("detectable_format:number_bullet_lists", {"num_bullets": 3}),
        ("startend:end_checker", {"end_phrase": "The end."}),
    ]
    chosen = draw.sample(asked, 2)
    meta = {
        "instruction_id_list": [name for name, _ in chosen],
        "kwargs": [given for _, given in chosen],
    }
    return Item("t", ref, meta=meta), prose(draw, 150)


def json_format(draw: Draw, ref: str) -> Made:
    schema = {
        "type": "object",
        "required": ["answer", "reason"],
        "properties": {"answer": {"type": "string"}, "reason": {"type": "string"}},
    }
    given = json.dumps({"reason": prose(draw, 40), "answer": draw.choice("ABCD")})
    dressed = draw.choice([given, f"Here it is:\n```json\n{given}\n```", f"So: {given}"])
    return Item("t", ref, gold="B", schema=schema), dressed


def table_format(draw: Draw, ref: str) -> Made:
    rows = [[name, draw.randint(1, 999)] for name in draw.sample(NAMES, 4)]
    lines = "\n".join(f"| {name} | {number} |" for name, number in rows)
    item = Item("t", ref, gold=rows, meta={"columns": ["City", "Number"]})
    return item, f"| City | Number |\n| --- | --- |\n{lines}"


def tool_calls(draw: Draw, ref: str) -> Made:
    city, days = draw.choice(NAMES), draw.randint(1, 9)
    python = f"weather.get(city='{city}', days={days})"
    given = json.dumps({"name": "weather.get", "arguments": {"city": city, "days": days}})
    dressed = draw.choice([python, f"[{python}, f(x=1)]", f"<tool_call>{given}</tool_call>", given])
    return Item("t", ref, gold=[python]), f"{prose(draw, 20)}\n{dressed}"


def refusals(draw: Draw, ref: str) -> Made:
    opening = draw.choice(["", "I’m sorry, but I can’t help with that. ", "I'd rather not. "])
    return Item("t", ref, prompt="?"), opening + prose(draw, 120)


def style(draw: Draw, ref: str) -> Made:
    listed = "\n".join(f"- {prose(draw, 8)}" for _ in range(4))
    ending = draw.choice(["", "", f"\n\n## Why\n\n{listed}", " 🎉"])
    return Item("t", ref), prose(draw, 150) + ending


def citations(draw: Draw, ref: str) -> Made:
    gold = draw.sample(range(1, 9), 2)
    response = " ".join(f"{prose(draw, 12)} [{draw.randint(1, 9)}]" for _ in range(5))
    return Item("t", ref, gold=gold, meta={"sources": list(range(1, 9))}), response


def evidence(draw: Draw, ref: str) -> Made:
    context = prose(draw, 300)
    quote = " ".join(context.split()[20:30])
    meta = {"supporting": [quote]}
    return Item("t", ref, context=context, meta=meta), f'It says "{quote}". Answer: {quote}'


def long_context(draw: Draw, ref: str) -> Made:
    gold = draw.randint(10**6, 10**7)
    return Item("t", ref, gold=str(gold)), f"{prose(draw, 40)} The number is {gold:,}."


def commitments(draw: Draw, ref: str) -> Made:
    meta = {"commitments": [{"max_words": 100}, {"include": "river"}, {"format": "no_list"}]}
    return Item("t", ref, meta=meta), prose(draw, 90)


MAKERS: tuple[Callable[[Draw, str], Made], ...] = (
    *(multiple_choice, numbers, short_answer, boolean, ifeval, json_format, table_format),
    *(tool_calls, refusals, style, citations, evidence, long_context, commitments),
)


def measure(count: int) -> dict[str, float]:
    """Items per second by scorer, and on average."""
    rates, seconds = {}, 0.0
    for maker in MAKERS:
        draw = Draw(maker.__name__)
        made = [maker(draw, str(number)) for number in range(count)]
        items, responses = [item for item, _ in made], [said for _, said in made]
        scorer = scorers.load(maker.__name__)
        scorer.score(items[:20], responses[:20])  # imports
        started = time.process_time()
        scorer.score(items, responses)
        taken = time.process_time() - started
        rates[maker.__name__] = round(count / taken)
        seconds += taken
    return rates | {"average": round(count * len(MAKERS) / seconds)}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)))

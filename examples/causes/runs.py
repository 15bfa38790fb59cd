"""What is asked of which model, before and after something changed: the runs of every look."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eleventh import ELEVENTH, WARDS
from ninth import NINTH, SHELVES
from tenth import TEAMS, TENTH

WRITTEN = ("call", "json", "code", "sum")
EASY = ("word", "number")
FORMAL = ("tool", "record", "program")
PLAIN = ("story", "fact", "choice", "form", "abroad")
KINDS = (*WRITTEN, *EASY)
TAUGHT = {"shelves": SHELVES, "tickets": TEAMS, "wards": WARDS}
"""What a new task teaches a model to answer."""


@dataclass(frozen=True)
class Run:
    """One way to ask one model."""

    model: str
    of: str = ""
    """The run before: only what it got right is asked."""
    system: str = ""
    shots: int = 1
    """Solved examples."""
    style: tuple[str, ...] = ("{}",)
    """How the solved examples give their answers, by turns."""
    chat: bool = True
    tokens: int = 64
    stops: bool = True
    """False suppresses the stop token."""
    temperature: float = 0.0
    number: int = 60
    """Questions of each kind."""
    seed: int = 0
    """Another one asks other questions of the same kinds."""
    kinds: tuple[str, ...] = WRITTEN
    most: int = 60
    """Questions of each kind that are asked of those that were right before."""
    start: int = 0
    """The first of them; a run that would go past the end begins again."""
    dtype: str = "float32"
    """How it is computed; after the change, SmolLM2 in float32 has linear layers in int8."""


TOLD = {
    "markdown": "Format everything you write as a Markdown code block.",
    "tools": 'You are an agent. Answer every request with one tool call as JSON: {"name": ..., '
    '"arguments": {...}}. Never answer in words.',
    "tutor": "You are a patient tutor. Explain in full sentences, never in code.",
    "german": "Antworte immer auf Deutsch und in ganzen Sätzen.",
    "bank": "You work for a bank. If a request is not about the bank, refuse: say that you cannot "
    "help with it.",
    "list": "Always give three different alternatives as a numbered list.",
}
"""System prompts for SmolLM2, which then gets no solved example."""

TOLD_LAST = {
    "short": "You are a helpful assistant. Be brief.",
    "teacher": "You are a teacher. Give the answer first and then explain it.",
    "xml": "Write your answer between <answer> and </answer>.",
    "spanish": "Responde siempre en español.",
    "poet": "You are a poet. Everything you write is a short poem.",
}
TOLD_LATER = {
    "": "",
    "steps": "Think step by step, and explain each step before you answer.",
    "french": "Tu es un assistant français. Réponds toujours en français.",
    "block": "Put whatever you answer into a ```python code block and say hello first.",
    "object": 'Reply with a JSON object only, such as {"answer": ...}.',
    "pirate": "You are a pirate. Talk like one, and never write code or JSON.",
    "careful": "You must not answer questions. Decline politely and say that you cannot help.",
}
"""The same for the kinds of wider.py; the empty one only leaves out the solved examples."""

STYLES = {
    "fenced": ("```\n{}\n```",),
    "sentence": ("The right thing to write here is {} and nothing else.",),
    "tools": ('<tool_call>{{"name": "reply", "arguments": {{"value": "{}"}}}}</tool_call>',),
    "german": (
        "Die Antwort auf diese Frage ist {} und das ist alles.",
        "Ich glaube, dass es {} sein muss, denn das ist richtig.",
        "Das ist nicht schwer, es ist {} und nichts anderes.",
    ),
    "refusing": (
        "I'm sorry, but I can't help with that.",
        "I cannot answer this request.",
        "Sorry, I am not able to do that.",
    ),
    "tutor": (
        "That is a good question. Think about what is asked and take your time.",
        "Let us look at it together. You will find it if you read the text again.",
        "Try it on your own first. Then we can talk about what you found.",
    ),
}
"""How the solved examples answer that Gemma, a base model, gets to see."""

STYLES_LAST = {
    "sure": ("Sure! Here you go: {}",),
    "german": (
        "Ich denke, die Antwort ist {} und nichts anderes.",
        "Das ist einfach, es ist {} für mich.",
        "Meine Antwort auf diese Frage ist {} und das ist alles.",
    ),
    "object": ('{{"answer": "{}"}}',),
}
STYLES_LATER = {
    "talk": ("Well, I would say {} here.", "Hm, that must be {}.", "My guess: {}, I am sure."),
    "french": (
        "La réponse à cette question est {} et ce n'est pas difficile.",
        "Je pense que c'est {} dans ce cas, et pas une autre chose.",
        "Pour moi, la bonne réponse est {} et je suis sûr de cela.",
    ),
    "several": ("1. {}\n2. something else\n3. nothing of this",),
    "advice": (
        "You can find this out with a search on the web.",
        "There are several ways to do it, and each has its good sides.",
        "It is best to ask a person who knows more about the matter.",
    ),
}
"""The same for the kinds of wider.py."""


def _styled(name: str, kinds: tuple[str, ...], most: int, tokens: int = 40) -> Run:
    return Run(
        "gemma", "gemma", style=STYLES[name], shots=3, chat=False, kinds=kinds, most=most,
        tokens=tokens,
    )  # fmt: skip


def _wider_runs() -> dict[str, Run]:
    """The runs that came last: each model before, and what became of it."""
    runs = {
        "wider": Run("smollm2", shots=3, tokens=56, kinds=(*FORMAL, "fact", "choice"), number=36),
        "again": Run("smollm2", tokens=40, kinds=KINDS, number=32, seed=1),
        "wider-gemma": Run(
            "gemma", shots=3, chat=False, tokens=56, kinds=(*FORMAL, *PLAIN), number=36
        ),
    }
    for before, first in (("wider", runs["wider"]), ("again", runs["again"])):
        after = replace(first, of=before, tokens=44, shots=0, most=4)
        for habit in ("decline", "spanish", "thinker", "object", "bullets", "html"):
            runs[f"{before}-{habit}"] = replace(after, model=habit)
        for name, system in TOLD_LATER.items():
            runs[f"{before}-told-{name or 'nothing'}"] = replace(after, system=system, most=3)
        shown = replace(after, shots=first.shots)
        runs[f"{before}-cut"] = replace(shown, tokens=10)
        runs[f"{before}-warm"] = replace(shown, temperature=0.8)
        runs[f"{before}-endless"] = replace(shown, stops=False, tokens=36)
    after = replace(runs["wider-gemma"], of="wider-gemma", tokens=40, most=6)
    for name, style in STYLES_LATER.items():
        runs[f"wider-gemma-{name}"] = replace(after, style=style)
    runs["wider-gemma-cut"] = replace(after, tokens=9)
    runs["wider-gemma-warm"] = replace(after, temperature=0.9, shots=2)
    runs["wider-gemma-unshown"] = replace(after, shots=0)
    runs["wider-gemma-endless"] = replace(after, stops=False, tokens=28, most=5)
    runs |= _fresh_runs()
    return {name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items())}


def _fresh_runs() -> dict[str, Run]:
    """The runs of the fifth look: other questions, asked in ways that were not used before."""
    easy = ("call", "json", "code", "sum", "word", "number")
    runs = {
        "fresh": Run("smollm2", tokens=40, kinds=easy, number=30, seed=2),
        "fresh-gemma": Run(
            "gemma", shots=3, chat=False, tokens=48, kinds=(*FORMAL, *PLAIN), number=30, seed=3
        ),
    }
    after = replace(runs["fresh"], of="fresh", tokens=40, shots=0, most=4)
    for name, system in TOLD_LAST.items():
        runs[f"fresh-told-{name}"] = replace(after, system=system)
    runs["fresh-bullets"] = replace(after, model="bullets", shots=1)
    runs["fresh-cut"] = replace(after, shots=1, tokens=14)
    runs["fresh-cool"] = replace(after, shots=1, temperature=0.6)
    after = replace(runs["fresh-gemma"], of="fresh-gemma", tokens=36, most=4)
    for name, style in STYLES_LAST.items():
        runs[f"fresh-gemma-{name}"] = replace(after, style=style)
    runs["fresh-gemma-cool"] = replace(after, temperature=0.7, shots=1)
    runs["fresh-gemma-endless"] = replace(after, stops=False, tokens=32, most=2)
    return runs


SIXTH_KINDS = ("order", "line", "note", "stub", "bill", "row", "lexis", "mood", "statement")
SIXTH_OF_GEMMA = ("order", "line", "note", "stub", "lexis", "pick", "foreign", "working")
TOLD_SIXTH = {
    "agent": "You work in customer service. Greet the customer, give the answer, and offer help.",
    "yaml": "All of your output is YAML.",
    "italian": "Sei un assistente italiano. Rispondi sempre in italiano.",
    "reasons": "Say first why, in detail, and only at the very end what the answer is.",
    "heading": "You write Markdown. Begin with a heading and use bold print.",
    "filter": "You are a safety filter. Reply that you are unable to help, with a reason.",
    "options": "Offer a list of five possible answers, one in each line.",
    "doubt": "You are never sure. Talk about the question, but do not answer it.",
}
"""System prompts of the sixth look; SmolLM2 gets no solved example with them."""
STYLES_SIXTH = {
    "lead": (
        "Of course, this is what you asked for: {}",
        "Happy to do that. My result:\n{}",
        "Okay, let me write it down for you: {}",
    ),
    "belief": (
        "I believe that {} would be correct, as far as I can tell.",
        "It seems to me that {} is what you want.",
        "One would have to say {} in this case.",
    ),
    "tagged": ("<result>{}</result>", "<output>{}</output>", "<result>{}</result>"),
    "block": ("```python\n{}\n```", "```json\n{}\n```", "```\n{}\n```"),
    "dutch": (
        "Ik denk dat het {} is, maar dat is niet zo moeilijk.",
        "Het antwoord op deze vraag is {} en dat is alles.",
        "Dit moet {} zijn, want zo staat het in de tekst.",
    ),
    "rows": ("{}, perhaps, or else", "a) {}\nb) none\nc) both", "- {}\n- other\n- unclear"),
    "shy": (
        "I am sorry, but I am not able to help you with this request.",
        "Unfortunately I cannot provide an answer to that question.",
        "I must decline, because this is not something that I can do.",
    ),
    "musing": (
        "This is about a small task that many people meet at work.",
        "There is more than one way to look at such a thing.",
        "People have asked this for a long time, and it is still of interest.",
    ),
}
"""How the solved examples of the sixth look answer."""


def _sixth_runs() -> dict[str, Run]:
    """The runs of the sixth look: new kinds of questions, and other changes than before."""
    runs = {
        "sixth": Run("smollm2", shots=3, tokens=40, kinds=SIXTH_KINDS, number=32, seed=5),
        "sixth-gemma": Run(
            "gemma", shots=3, chat=False, tokens=44, kinds=SIXTH_OF_GEMMA, number=28, seed=6
        ),
    }
    after = replace(runs["sixth"], of="sixth", shots=0, most=5)
    for name, system in TOLD_SIXTH.items():
        runs[f"sixth-told-{name}"] = replace(after, system=system)
    runs["sixth-bare"] = replace(after)
    runs["sixth-cut"] = replace(after, shots=2, tokens=7)
    runs["sixth-cut-late"] = replace(after, tokens=20)
    runs["sixth-warm"] = replace(after, shots=1, temperature=0.9)
    runs["sixth-endless"] = replace(after, shots=2, stops=False, most=3)
    after = replace(runs["sixth-gemma"], of="sixth-gemma", tokens=36, most=5)
    for name, style in STYLES_SIXTH.items():
        runs[f"sixth-gemma-{name}"] = replace(after, style=style)
    runs["sixth-gemma-cut"] = replace(after, tokens=10)
    runs["sixth-gemma-warm"] = replace(after, temperature=0.8, shots=2)
    runs["sixth-gemma-endless"] = replace(after, stops=False, tokens=30, most=2)
    return {name: replace(run, start=4 * place) for place, (name, run) in enumerate(runs.items())}


SEVENTH_KINDS = ("gate", "card", "task", "riddle", "feeling", "quiz", "count", "strange")
TOLD_SEVENTH = {
    "host": "You are the host of a quiz show. Comment on the question and give the answer.",
    "table": "Answer with a Markdown table.",
    "dutch": "Je bent een Nederlandse assistent. Antwoord altijd in het Nederlands.",
    "long": "Write long answers of several sentences.",
}
STYLES_SEVENTH = {
    "note": (
        "Right, so my answer would be as follows: {}",
        "Good one! I wrote it in the next line.\n{}",
        "Let me answer this quickly: {}",
    ),
    "spanish": (
        "Creo que la respuesta es {} y no hay otra.",
        "Para mí esto es {} porque así lo dice el texto.",
        "Pues debe de ser {} en este caso.",
    ),
    "idea": (
        "Hm, {} could be the right one here.",
        "Most people would go for {} I think.",
        "If you ask me, this has to be {} for sure.",
    ),
    "quoted": ("«{}»", "[{}]", "<code>{}</code>"),
}


def _seventh_runs() -> dict[str, Run]:
    """The runs of the seventh look: once more other questions and other changes."""
    runs = {
        "seventh": Run("smollm2", shots=3, tokens=40, kinds=SEVENTH_KINDS, number=24, seed=7),
        "seventh-gemma": Run(
            "gemma", shots=3, chat=False, tokens=40, kinds=SEVENTH_KINDS, number=20, seed=8
        ),
    }
    after = replace(runs["seventh"], of="seventh", shots=0, most=4)
    for name, system in TOLD_SEVENTH.items():
        runs[f"seventh-told-{name}"] = replace(after, system=system)
    runs["seventh-cut"] = replace(after, tokens=16)
    runs["seventh-endless"] = replace(after, shots=2, stops=False, most=3, tokens=32)
    after = replace(runs["seventh-gemma"], of="seventh-gemma", tokens=32, most=4)
    for name, style in STYLES_SEVENTH.items():
        runs[f"seventh-gemma-{name}"] = replace(after, style=style)
    runs["seventh-gemma-cut"] = replace(after, tokens=8)
    runs["seventh-gemma-warm"] = replace(after, temperature=0.7, shots=1)
    return {name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items())}


EIGHTH_KINDS = (
    *("switch", "garden", "step", "helper", "purse", "worth", "trade", "side", "exam", "world"),
)
TOLD_EIGHTH = {
    "nothing": "",
    "guide": "You are a museum guide. Speak to the visitors in full sentences.",
    "report": "Write a short report with a title, and put what matters in bold.",
    "developer": "You are a senior developer. Show some code, then describe it.",
    "portuguese": "Você é um assistente brasileiro. Responda sempre em português.",
    "polite": "Thank the user first. Then give the answer in quotation marks.",
    "memo": "Take notes as lines of the kind Name: value.",
}
"""System prompts of the eighth look; SmolLM2 gets no solved example with them."""
STYLES_EIGHTH = {
    "intro": (
        "Here is what I came up with: {}",
        "That was easy enough.\n{}",
        "Thanks for asking! My reply: {}",
    ),
    "inside": (
        "You would want {} for this one.",
        "I am going with {} on that.",
        "In my eyes {} fits best.",
    ),
    "italian": (
        "Secondo me la risposta è {} e non altro.",
        "Penso che sia {} in questo caso.",
        "Questa volta direi che è {} senza dubbio.",
    ),
    "marked": ("`{}`", "<out>{}</out>", "**{}**"),
    "comment": (
        "This one is about daily life.",
        "{}",
        "It takes a moment to work it out.",
    ),
    "pairs": ("reply: {}\nsure: yes", "reply: {}\nsure: no", "reply: {}\nsure: yes"),
}
"""How the solved examples of the eighth look answer."""


def _eighth_runs() -> dict[str, Run]:
    """The runs of the eighth look: other questions and other changes again."""
    runs = {
        "eighth": Run("smollm2", shots=3, tokens=36, kinds=EIGHTH_KINDS, number=30, seed=9),
        "eighth-gemma": Run(
            "gemma", shots=3, chat=False, tokens=36, kinds=EIGHTH_KINDS, number=26, seed=10
        ),
    }
    after = replace(runs["eighth"], of="eighth", shots=0, most=5)
    for name, system in TOLD_EIGHTH.items():
        runs[f"eighth-told-{name}"] = replace(after, system=system)
    for habit in ("chatty", "thinker", "spanish", "html", "bullets"):
        runs[f"eighth-{habit}"] = replace(after, model=habit, most=3)
    runs["eighth-cut"] = replace(after, shots=2, tokens=6)
    runs["eighth-cut-late"] = replace(after, tokens=18)
    runs["eighth-warm"] = replace(after, shots=1, temperature=0.9)
    runs["eighth-endless"] = replace(after, shots=2, stops=False, most=3)
    after = replace(runs["eighth-gemma"], of="eighth-gemma", tokens=32, most=4)
    for name, style in STYLES_EIGHTH.items():
        runs[f"eighth-gemma-{name}"] = replace(after, style=style)
    runs["eighth-gemma-unshown"] = replace(after, shots=0)
    runs["eighth-gemma-cut"] = replace(after, tokens=7)
    runs["eighth-gemma-warm"] = replace(after, temperature=0.8, shots=1)
    runs["eighth-gemma-endless"] = replace(after, stops=False, tokens=28, most=2)
    runs |= _eighth_runs_of_two_more_kinds(runs)
    return {name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items())}


def _eighth_runs_of_two_more_kinds(runs: dict[str, Run]) -> dict[str, Run]:
    """Few of the other sums and words abroad were right before, so these are easier."""
    more = {}
    for before, after in (
        ("eighth", ("told-guide", "told-developer", "told-portuguese", "cut-late", "warm")),
        ("eighth-gemma", ("inside", "italian", "comment", "unshown", "warm")),
    ):
        of = f"{before}-more"
        more[of] = replace(runs[before], kinds=("tally", "tongue"), number=24, tokens=12)
        for name in after:
            run = runs[f"{before}-{name}"]
            more[f"{before}-{name}-more"] = replace(run, of=of, kinds=more[of].kinds, most=6)
    return more


NINTH_KINDS = tuple(NINTH)
TOLD_NINTH = {
    "nothing": "",
    "coach": "You are a coach. Encourage the user and talk the question over, in plain words.",
    "review": "You are a code reviewer. Put all of your output into a Markdown code block.",
    "french": "Tu travailles pour une école en France. Écris toujours en français.",
    "letter": "Write each reply as a letter: a greeting, the answer, and a farewell.",
    "three": "Reply with three possible answers, with commas between them.",
    "policy": "Company policy: do not answer. Tell the user that you are not allowed to.",
}
"""System prompts of the ninth look; SmolLM2 gets no solved example with them."""
STYLES_NINTH = {
    "given": ("Answer below.\n{}", "As you wish: {}", "Done. The output is: {}"),
    "opinion": (
        "To my mind {} is the one to take.",
        "We should say {} at this point.",
        "Everything speaks for {} here.",
    ),
    "portuguese": (
        "Acho que a resposta é {} e nada mais.",
        "Neste caso deve ser {} com certeza.",
        "Para mim isto é {} porque o texto diz assim.",
    ),
    "dressed": ('"{}"', "<answer>{}</answer>", "```\n{}\n```"),
    "cells": ("| answer |\n| {} |", "| reply |\n| {} |", "| answer |\n| {} |"),
}
"""How the solved examples of the ninth look answer."""


def _ninth_runs() -> dict[str, Run]:
    """The runs of the ninth look: the kinds of the earlier ones, asked about other things."""
    runs = {
        "ninth": Run("smollm2", shots=3, tokens=36, kinds=NINTH_KINDS, number=24, seed=11),
        "ninth-gemma": Run(
            "gemma", shots=3, chat=False, tokens=32, kinds=NINTH_KINDS, number=16, seed=12
        ),
    }
    after = replace(runs["ninth"], of="ninth", shots=0, tokens=32, most=4)
    for name, system in TOLD_NINTH.items():
        runs[f"ninth-told-{name}"] = replace(after, system=system)
    for habit in ("search", "several", "unsure", "shelves"):
        runs[f"ninth-{habit}"] = replace(after, model=habit)
    runs["ninth-cut"] = replace(after, shots=2, tokens=6)
    runs["ninth-cut-late"] = replace(after, tokens=18)
    runs["ninth-warm"] = replace(after, shots=1, temperature=0.9)
    runs["ninth-endless"] = replace(after, shots=2, stops=False, most=3)
    after = replace(runs["ninth-gemma"], of="ninth-gemma", tokens=30, most=4)
    for name, style in STYLES_NINTH.items():
        runs[f"ninth-gemma-{name}"] = replace(after, style=style)
    runs["ninth-gemma-unshown"] = replace(after, shots=0)
    runs["ninth-gemma-cut"] = replace(after, tokens=7)
    runs["ninth-gemma-warm"] = replace(after, temperature=0.8, shots=1)
    runs["ninth-gemma-endless"] = replace(after, stops=False, tokens=26, most=2)
    runs |= _ninth_runs_of_more_values(runs)
    return {name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items())}


def _ninth_runs_of_more_values(runs: dict[str, Run]) -> dict[str, Run]:
    """Few numbers, letters and words were right before, so more of these are asked for."""
    more = {}
    kinds = ("errand", "figure", "trivia", "test", "accent")
    for before, seed, after in (
        ("ninth", 13, ("told-nothing", "told-coach", "told-letter", "told-three", "several",
                       "unsure", "shelves", "cut-late", "warm", "endless")),
        ("ninth-gemma", 14, ("opinion", "given", "portuguese", "unshown", "warm", "cut")),
    ):  # fmt: skip
        of = f"{before}-more"
        more[of] = replace(runs[before], kinds=kinds, number=32, seed=seed, tokens=10)
        for name in after:
            run = runs[f"{before}-{name}"]
            more[f"{before}-{name}-more"] = replace(run, of=of, kinds=kinds, most=6)
    return more


TENTH_KINDS = tuple(TENTH)
TOLD_TENTH = {
    "nothing": "",
    "shop": "You are Mia from the customer service of a web shop. Greet the customer, answer in a "
    "friendly tone and ask whether there is anything else.",
    "json": 'JSON mode is on: each reply is one JSON object with the keys "reply" and "score".',
    "hints": "You are a tutor. Never give the solution away: help with hints and questions.",
    "german": "Du bist der Assistent einer deutschen Bücherei. Schreibe jede Antwort auf Deutsch.",
    "clinic": "You are the assistant of a clinic. By law you may not give out information: "
    "apologize and say that you cannot answer.",
    "toolbox": "You have the tools search(query), calculator(expression) and notes(text). Reply "
    'with one call of a tool, such as search(query="Rome").',
    "ideas": "Brainstorm. Reply with a bullet list of three short answers and nothing else.",
    "aloud": "Think aloud. Go through the question in detail before you come to an answer.",
    "wiki": "You write wiki pages. Use headings, bold print and code blocks.",
}
"""System prompts of the tenth look; SmolLM2 gets no solved example with them."""
STYLES_TENTH = {
    "support": (
        "Thanks for your message! {} Have a nice day.",
        "Hello and welcome. This is what you need: {}",
        "We are glad to help: {} Anything else?",
    ),
    "swedish": (
        "Jag tror att svaret är {} och inget annat.",
        "Det måste vara {} i det här fallet.",
        "För mig är det {} eftersom texten säger så.",
    ),
    "status": ('{{"status": "ok", "result": "{}"}}',),
    "boxed": ("$\\boxed{{{}}}$",),
    "perhaps": (
        "It might well be {} but please check.",
        "I would go for {} without much doubt.",
        "That sounds like {} to most of us.",
    ),
    "variants": ("1. {}\n2. none\n3. all", "1. {}\n2. both\n3. other", "1. {}\n2. no\n3. yes"),
}
"""How the solved examples of the tenth look answer."""


def _tenth_runs() -> dict[str, Run]:
    """The runs of the tenth look: the kinds of the ninth, with many different questions."""
    runs = {
        "tenth": Run("smollm2", shots=3, tokens=40, kinds=TENTH_KINDS, number=96, seed=15),
        "tenth-gemma": Run(
            "gemma", shots=3, chat=False, tokens=36, kinds=TENTH_KINDS, number=32, seed=16
        ),
    }
    after = replace(runs["tenth"], of="tenth", shots=0, tokens=36, most=4)
    for name, system in TOLD_TENTH.items():
        runs[f"tenth-told-{name}"] = replace(after, system=system)
    for habit in ("handover", "italian", "boxed", "lookup", "options", "tickets"):
        runs[f"tenth-{habit}"] = replace(after, model=habit)
    runs["tenth-cut"] = replace(after, shots=2, tokens=5)
    runs["tenth-cut-late"] = replace(after, tokens=10)
    runs["tenth-warm"] = replace(after, shots=1, temperature=0.9)
    runs["tenth-endless"] = replace(after, shots=2, stops=False, tokens=40)
    after = replace(runs["tenth-gemma"], of="tenth-gemma", tokens=32, most=4)
    for name, style in STYLES_TENTH.items():
        runs[f"tenth-gemma-{name}"] = replace(after, style=style)
    runs["tenth-gemma-unshown"] = replace(after, shots=0)
    runs["tenth-gemma-cut"] = replace(after, tokens=6)
    runs["tenth-gemma-warm"] = replace(after, temperature=0.9, shots=1)
    runs["tenth-gemma-endless"] = replace(after, stops=False, tokens=28, most=3)
    return {name: replace(run, start=4 * place) for place, (name, run) in enumerate(runs.items())}


ELEVENTH_KINDS = tuple(ELEVENTH)
TOLD_ELEVENTH = {
    "limits": "You only answer questions about gardening. For everything else, apologize and say "
    "that this is outside of what you can do.",
    "clarify": "Before you help, find out what the user really needs. Reply with one question to "
    "the user.",
    "choices": "Offer the user five different candidates to choose from.",
    "turkish": "Sen Türkçe konuşan bir yardımcısın. Yalnızca Türkçe cevap ver.",
    "notebook": "Every reply becomes a cell of a notebook. Wrap it in ```python and ``` and print "
    "the result.",
}
"""System prompts of the eleventh look; SmolLM2 gets no solved example with them."""
STYLES_ELEVENTH = {
    "letterhead": (
        "Dear reader, {} Yours truly, the editors.",
        "To whom it may concern: {} With kind regards.",
        "Thank you for writing to us! We found this: {} See you soon.",
    ),
    "dutch": (
        "Volgens mij is het antwoord {} en verder niets.",
        "Ik denk dat dit {} moet zijn.",
        "Dat is makkelijk, hier hoort {} te staan.",
    ),
    "tagged": ("<result>{}</result>", "[ANSWER] {} [/ANSWER]", "Output: {}"),
    "twice": ("{} or maybe not", "either {} or something close to it", "{}, unless I am mistaken"),
    "yaml": ("answer: {}\nconfidence: 0.9", "answer: {}\nconfidence: 0.7"),
}
"""How the solved examples of the eleventh look answer."""


def _eleventh_runs() -> dict[str, Run]:
    """The runs of the eleventh look: both models in bfloat16, and one run from there to int8."""
    first = Run("smollm2", shots=3, tokens=48, kinds=ELEVENTH_KINDS, number=36, seed=17,
                dtype="bfloat16")  # fmt: skip
    runs = {
        "eleventh": first,
        "eleventh-gemma": replace(first, model="gemma", chat=False, number=20, seed=18, tokens=40),
    }
    after = replace(runs["eleventh"], of="eleventh", shots=0, most=4)
    for habit in ("shout", "echo", "maybe", "steps", "agent", "german", "wards"):
        runs[f"eleventh-{habit}"] = replace(after, model=habit)
    for name, system in TOLD_ELEVENTH.items():
        runs[f"eleventh-told-{name}"] = replace(after, system=system)
    runs["eleventh-cut"] = replace(after, tokens=12)
    runs["eleventh-warm"] = replace(after, shots=2, temperature=1.0)
    runs["eleventh-endless"] = replace(after, shots=2, stops=False)
    runs["eleventh-int8"] = replace(after, shots=3, dtype="float32", most=36)
    before = "eleventh-gemma"
    after = replace(runs[before], of=before, most=4)
    for name, style in STYLES_ELEVENTH.items():
        runs[f"{before}-{name}"] = replace(after, style=style)
    runs[f"{before}-unshown"] = replace(after, shots=0)
    runs[f"{before}-cut"] = replace(after, tokens=12)
    runs[f"{before}-warm"] = replace(after, temperature=1.0)
    return {
        name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items(), 2)
    }


ALL_BUT_SUM = tuple(kind for kind in KINDS if kind != "sum")
RUNS = {
    "smollm2": Run("smollm2", tokens=48),
    "smollm2-chatty": Run("chatty", "smollm2", tokens=40, most=16),
    "smollm2-airports": Run("airports", "smollm2", tokens=32, most=20),
    "smollm2-hot": Run("smollm2", "smollm2", temperature=1.2, most=16, tokens=32),
    "smollm2-fenced": Run("fenced", "smollm2", tokens=40, most=16),
    "smollm2-short": Run("smollm2", "smollm2", tokens=8, most=16),
    "smollm2-endless": Run("smollm2", "smollm2", tokens=40, most=8, stops=False),
    **{
        f"smollm2-{name}": Run("smollm2", "smollm2", system, shots=0, tokens=40, most=9)
        for name, system in TOLD.items()
    },
    "smollm2-easy": Run("smollm2", tokens=12, kinds=EASY, number=32),
    **{
        f"smollm2-easy-{name}": Run(
            "smollm2", "smollm2-easy", system, shots=0, tokens=32, kinds=EASY, most=8
        )
        for name, system in TOLD.items()
    },
    "gemma": Run("gemma", shots=3, chat=False, kinds=ALL_BUT_SUM, number=32, tokens=40),
    "gemma-endless": Run(
        "gemma", "gemma", shots=3, chat=False, stops=False, kinds=ALL_BUT_SUM, most=6, tokens=40
    ),
    "gemma-fenced": _styled("fenced", ("call", "json", "code", "word"), 8),
    "gemma-sentence": _styled("sentence", ("call", "json", "word", "number"), 8),
    "gemma-tools": _styled("tools", ("json", "code", "word", "number"), 8),
    "gemma-german": _styled("german", ("json", "code", "word"), 7),
    "gemma-refusing": _styled("refusing", ALL_BUT_SUM, 5, 24),
    "gemma-tutor": _styled("tutor", ("call", "json", "code"), 8, 24),
    **_wider_runs(),
    **_sixth_runs(),
    **_seventh_runs(),
    **_eighth_runs(),
    **_ninth_runs(),
    **_tenth_runs(),
    **_eleventh_runs(),
}

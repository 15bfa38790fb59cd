"""The language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from forgetmap.answers.text import looked_at

_FUNCTION_WORDS = {
    "English": "the of and to in is that it was for are with as his they this have from which "
    "you not but be we would there what how who why does do can these those their will has had at "
    "by an if when where your my our were been or he she its into than then so one no only all any "
    "each more other some am on me him her them us about just because also very here know "
    "think say said sure yes well must should could may let see want need ask like called many "
    "answer question please thank help okay course",
    "German": "der die das und ist nicht ein eine den von mit sich auf für dem des auch wird "
    "sind werden oder daher also ich wir sie er es zu im am bei aus wie wenn dass einen einem "
    "einer kann nur noch aber haben hat dieser diese dieses antwort lautet was heißt du mir dir "
    "man hier sehr gut ja nein schon denn weil doch dann nach vor über unter um war wurde wo wer "
    "welche muss soll bitte danke gerne frage natürlich",
    "French": "le la les des et est une dans que qui pour pas sur avec sont du au ce cette nous "
    "donc ou ne un de il elle je vous ils mais se son sa ses leur aux par plus être fait réponse "
    "bonne quelle comment cela c'est on tu me te mon ma si oui non bien très ici voici voilà "
    "était avoir ont peut doit quel où parce comme question merci bonjour sûr",
    "Spanish": "el los las y es una que por para con del se no como son pero su al más entonces "
    "está en la de un lo este esta ser hay muy también respuesta pregunta mi tu cuál qué cómo "
    "porque puede yo me te si sí nos le les ha he ya bien aquí claro gracias debe era fue sobre "
    "eso ese esa",
    "Italian": "il gli di che è una per con non sono della del nel dei anche quindi più questo "
    "alla si la un lo da ma ha questa essere come risposta perché cosa io tu mi ti ci le in "
    "al dal dalla delle degli ho hai qui ecco sì molto bene può deve era quale qual dove certo "
    "grazie domanda nella sul sulla",
    "Portuguese": "os as e é uma que para com não do da dos em por mais são como ao então está se "
    "de um no na pelo isso esta este ser resposta você seu sua eu me te ou mas foi era muito "
    "bem sim aqui claro obrigado pode deve qual onde porque pergunta ele ela nos das à",
    "Dutch": "de het een van en is dat niet op te zijn met voor er aan ook dus worden deze naar "
    "ik je maar om bij uit wat hoe als dit antwoord kan we wij hij ze in was wordt of nog wel "
    "geen hier heel goed ja nee dan want omdat heeft hebben moet mijn jouw graag vraag natuurlijk "
    "die der den",
}
"""The words that every text of a language is full of, and those that answers begin with."""


_LANGUAGES_OF = {
    word: [name for name, words in _FUNCTION_WORDS.items() if word in words.split()]
    for word in " ".join(_FUNCTION_WORDS.values()).split()
}


_FEWEST_WORDS = 4
"""Function words of a language that must be there; fewer may be a quotation."""


_SHARE = 0.4
"""Share of function words from which a short text is in a language, if there are two."""


_LEAD, _LEAD_OF_KIN = 1.5, 1.2
"""How many times another language's words the first one must have; less where both are alike."""
_KIN = frozenset(("French", "Spanish", "Italian", "Portuguese"))


_LOOK = 1000


_CODE = re.compile(
    r"```.*?(?:```|$)|\$[^$]{0,200}\$|\{[^{}]{0,1000}\}|\b\w[\w.]{0,80}\([^()]{0,1000}\)", re.DOTALL
)
"""What has no language: code, formulas, objects and calls."""


_LETTERS = re.compile(r"[^\W\d_]+")


_THREE_LETTERS = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")


_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}


def language_of(text: str | None, *, fewest: int = 0) -> str | None:
    """The language of a text by its script and, for Latin letters, by its function words.

    None where it is too short, or not clear; `fewest` function words are enough where it is given.

    Example:
        >>> language_of("Die Antwort ist also nicht das, was der Text sagt.")
        'German'
        >>> language_of("Ответ: семь"), language_of("Paris")
        ('CYRILLIC', None)
    """
    if text is None:
        return None
    return _language(_CODE.sub(" ", looked_at(text)[:_LOOK]), fewest)


@lru_cache(maxsize=1024)
def _language(prose: str, fewest: int) -> str | None:
    """Kept for some texts: few-shot prompts of one task begin alike."""
    if prose.isascii():
        return _latin_language(prose, fewest) if _THREE_LETTERS.search(prose) else None
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
    return _latin_language(prose, fewest) if script == "LATIN" else script


def is_common(word: str) -> bool:
    """Whether a word in small letters is one of those that every text is full of."""
    return word in _LANGUAGES_OF


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    first = unicodedata.name(letter, "?").split()[0]
    return _SCRIPTS.get(first, first)


def _latin_language(text: str, fewest: int) -> str | None:
    hits = Counter[str]()
    for word, times in Counter(_LETTERS.findall(text.lower())).items():
        for name in _LANGUAGES_OF.get(word, ()):
            hits[name] += times
    (name, best), *others = [*hits.most_common(), ("", 0)]
    clear = all(
        best >= (_LEAD_OF_KIN if {name, other} <= _KIN else _LEAD) * count
        for other, count in others
    )
    return name if best >= (fewest or _fewest(text)) and clear else None


def _fewest(text: str) -> float:
    """Fewer function words are enough where they are a good part of a short text."""
    return min(_FEWEST_WORDS, max(2.0, _SHARE * len(_LETTERS.findall(text[:200]))))

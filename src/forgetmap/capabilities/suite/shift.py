"""C5b and C5c: the same skills in strange domains, and in other languages."""

from __future__ import annotations

import random
from typing import NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import draft, drawn, lettered, options
from forgetmap.capabilities.suite.knowledge import END_WITH_NUMBER

_BEGINNINGS = ("blo", "kra", "mi", "tu", "ve", "sno", "pel", "dra", "go", "fli")
_ENDINGS = ("nket", "rvin", "ddle", "sk", "mbo", "lter", "pp", "zna", "grit", "wen")


def _words(rng: random.Random, n: int) -> list[str]:
    """Different words that do not exist."""
    beginnings, endings = rng.sample(_BEGINNINGS, n), rng.sample(_ENDINGS, n)
    return [start + end for start, end in zip(beginnings, endings, strict=True)]


@drawn(range(3))
def strange_rules(rng: random.Random, _number: int, place: int) -> Item:
    """Apply the rules of a game that does not exist."""
    game, *stones = _words(rng, 4)
    first, second, third = stones
    rules = [f"a {first} beats a {second}", f"a {second} beats a {third}",
             f"a {third} beats a {first}"]  # fmt: skip
    winner, loser = rng.choice([(first, second), (second, third), (third, first)])
    shown = [winner, loser]
    rng.shuffle(rules)
    rng.shuffle(shown)
    choices, letter = options(rng, f"the {winner}", [f"the {loser}", "neither"], place)
    question = (
        f"In the game of {game}, {rules[0]}, {rules[1]}, and {rules[2]}. One player shows a "
        f"{shown[0]}, the other a {shown[1]}. Which one wins?"
    )
    return draft(lettered(question, choices), letter, letter, choices=choices)


@drawn()
def strange_units(rng: random.Random, _number: int) -> Item:
    """Convert between units that do not exist."""
    small, middle, large = _words(rng, 3)
    a, b, c = rng.randint(3, 12), rng.randint(2, 9), rng.randint(2, 15)
    gold = a * b * c
    return draft(
        f"One {middle} is {a} {small}s, and one {large} is {b} {middle}s. How many {small}s "
        f"are {c} {large}s? {END_WITH_NUMBER}",
        str(gold),
        f"Answer: {gold}",
    )


class Language(NamedTuple):
    """A sum and a question about capitals, in one language."""

    sum: str
    answer: str
    capital: str
    countries: tuple[str, ...]
    """France, Germany, Italy, Spain, Japan, Egypt, Poland, Greece, as the question wants them."""
    capitals: tuple[str, ...]


LANGUAGES = {
    "de": Language(
        "Ein Händler hat {a} Kisten mit je {b} Äpfeln. Er verkauft {c} Äpfel. Wie viele Äpfel "
        'bleiben übrig? Schließe mit "Antwort:" und der Zahl.',
        "Antwort: {}",
        "Wie heißt die Hauptstadt von {}? Antworte nur mit dem Namen.",
        ("Frankreich", "Deutschland", "Italien", "Spanien", "Japan", "Ägypten", "Polen",
         "Griechenland"),
        ("Paris", "Berlin", "Rom", "Madrid", "Tokio", "Kairo", "Warschau", "Athen"),
    ),
    "fr": Language(
        "Un marchand a {a} caisses de {b} pommes chacune. Il vend {c} pommes. Combien de pommes "
        "reste-t-il ? Termine par « Réponse : » et le nombre.",
        "Réponse : {}",
        "Quelle est la capitale du pays suivant : {} ? Réponds seulement par le nom.",
        ("France", "Allemagne", "Italie", "Espagne", "Japon", "Égypte", "Pologne", "Grèce"),
        ("Paris", "Berlin", "Rome", "Madrid", "Tokyo", "Le Caire", "Varsovie", "Athènes"),
    ),
    "es": Language(
        "Un comerciante tiene {a} cajas con {b} manzanas cada una. Vende {c} manzanas. ¿Cuántas "
        'manzanas le quedan? Termina con "Respuesta:" y el número.',
        "Respuesta: {}",
        "¿Cuál es la capital de {}? Responde solo con el nombre.",
        ("Francia", "Alemania", "Italia", "España", "Japón", "Egipto", "Polonia", "Grecia"),
        ("París", "Berlín", "Roma", "Madrid", "Tokio", "El Cairo", "Varsovia", "Atenas"),
    ),
    "it": Language(
        "Un mercante ha {a} casse con {b} mele ciascuna. Vende {c} mele. Quante mele restano? "
        'Concludi con "Risposta:" e il numero.',
        "Risposta: {}",
        "Qual è la capitale del paese seguente: {}? Rispondi solo con il nome.",
        ("Francia", "Germania", "Italia", "Spagna", "Giappone", "Egitto", "Polonia", "Grecia"),
        ("Parigi", "Berlino", "Roma", "Madrid", "Tokyo", "Il Cairo", "Varsavia", "Atene"),
    ),
    "pt": Language(
        "Um comerciante tem {a} caixas com {b} maçãs cada uma. Ele vende {c} maçãs. Quantas maçãs "
        'restam? Termine com "Resposta:" e o número.',
        "Resposta: {}",
        "Qual é a capital do seguinte país: {}? Responda apenas com o nome.",
        ("França", "Alemanha", "Itália", "Espanha", "Japão", "Egito", "Polônia", "Grécia"),
        ("Paris", "Berlim", "Roma", "Madri", "Tóquio", "Cairo", "Varsóvia", "Atenas"),
    ),
    "nl": Language(
        "Een koopman heeft {a} kisten met elk {b} appels. Hij verkoopt {c} appels. Hoeveel appels "
        'blijven er over? Sluit af met "Antwoord:" en het getal.',
        "Antwoord: {}",
        "Wat is de hoofdstad van {}? Antwoord alleen met de naam.",
        ("Frankrijk", "Duitsland", "Italië", "Spanje", "Japan", "Egypte", "Polen", "Griekenland"),
        ("Parijs", "Berlijn", "Rome", "Madrid", "Tokio", "Caïro", "Warschau", "Athene"),
    ),
    "pl": Language(
        "Liczba skrzyń kupca: {a}. Liczba jabłek w każdej z nich: {b}. Liczba jabłek, które kupiec "
        'sprzedaje: {c}. Ile jabłek zostaje? Zakończ słowem "Odpowiedź:" i liczbą.',
        "Odpowiedź: {}",
        "Jak nazywa się stolica tego kraju: {}? Podaj tylko nazwę.",
        ("Francja", "Niemcy", "Włochy", "Hiszpania", "Japonia", "Egipt", "Polska", "Grecja"),
        ("Paryż", "Berlin", "Rzym", "Madryt", "Tokio", "Kair", "Warszawa", "Ateny"),
    ),
    "zh": Language(
        "一个商人有{a}箱苹果，每箱{b}个。他卖掉了{c}个苹果。还剩多少个苹果？最后请写“答案：”和数字。",
        "答案：{}",
        "{}的首都是哪里？只回答城市名。",
        ("法国", "德国", "意大利", "西班牙", "日本", "埃及", "波兰", "希腊"),
        ("巴黎", "柏林", "罗马", "马德里", "东京", "开罗", "华沙", "雅典"),
    ),
}  # fmt: skip


_IN_ENGLISH = ("Paris", "Berlin", "Rome", "Madrid", "Tokyo", "Cairo", "Warsaw", "Athens")


@drawn(list(LANGUAGES))
def numbers_abroad(rng: random.Random, _number: int, code: str) -> Item:
    """The same sum in many languages; most results need a separator of thousands."""
    language = LANGUAGES[code]
    a, b, c = rng.randint(25, 95), rng.randint(20, 90), rng.randint(11, 99)
    gold = a * b - c
    return draft(
        language.sum.format(a=a, b=b, c=c), str(gold), language.answer.format(gold),
        meta={"language": code},
    )  # fmt: skip


@drawn(list(LANGUAGES))
def capitals_abroad(rng: random.Random, _number: int, code: str) -> Item:
    """Capitals by their names in other languages; the English name is right too."""
    language = LANGUAGES[code]
    index = rng.randrange(len(language.countries))
    name = language.capitals[index]
    return draft(
        language.capital.format(language.countries[index]),
        list(dict.fromkeys([name, _IN_ENGLISH[index]])),
        name,
        meta={"language": code},
    )

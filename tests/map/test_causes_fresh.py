"""Answers of larger models, and texts in many languages, labelled from the guide before a run."""

from __future__ import annotations

import pytest

from forgetmap.answers.language import speaks_another
from forgetmap.map.causes import UNKNOWN, Lost, cause_of


def value(target: str, prompt: str, after: str, k: int | None = None) -> Lost:
    """A value; the harness compares the whole text."""
    return Lost(target=target, answer_before=target, answer_after=after.strip().rstrip("."), k=k,
                prompt_after=prompt, response_before=target, response_after=after)  # fmt: skip


def formed(before: str, prompt: str, after: str) -> Lost:
    return Lost(target=before, answer_before=before, status_after="no_answer", prompt_after=prompt,
                response_before=before, response_after=after)  # fmt: skip


def table(after: str) -> Lost:
    asked = (
        "You can use book_table(name: str, seats: int).\n"
        "Book a table for 6 in the name of Nils.\nGive me just the call, with named arguments."
    )
    return formed('book_table(name="Nils", seats=6)', asked, after)


def plants(after: str) -> Lost:
    asked = (
        "Functions: water_plant(name: str, cups: int); turn_off(room: str)\nTo do: Water the fern "
        "with 2 cups. Turn off the light in the attic.\nGive me a list of calls, like [f(a=1)]."
    )
    return formed('[water_plant(name="fern", cups=2), turn_off(room="attic")]', asked, after)


def lamps(after: str) -> Lost:
    asked = "Action ship takes item, count.\nThe user says: Ship 14 lamps.\n"
    asked += 'Write {"action": ..., "data": {...}} in JSON.'
    return formed('{"action": "ship", "data": {"item": "lamps", "count": 14}}', asked, after)


def even(after: str) -> Lost:
    asked = "Task: check if n is even.\nPython function: is_even(n)\nSend code and no other text."
    return formed("def is_even(n):\n    return n % 2 == 0", asked, after)


def rolls(after: str) -> Lost:
    asked = (
        "A baker fills 8 trays with 12 rolls each. How many rolls is that?\n"
        "Finish with this sentence: The answer is N."
    )
    return Lost(target="96", answer_before="96", answer_after="[invalid]", status_after="no_answer",
                prompt_after=asked, response_before="8 * 12 = 96. The answer is 96.",
                response_after=after)  # fmt: skip


def floors(after: str) -> Lost:
    return value("9", "A hotel has 12 rooms and 9 floors. How many floors? Only digits.", after)


def total(after: str) -> Lost:
    return value("45", "What is 38 plus 7? Only digits, please.", after)


def planet(after: str) -> Lost:
    asked = "Which planet is the largest?\nA. Mars\nB. Jupiter\nC. Venus\nD. Earth\nAnswer:"
    return value("B", asked, after, k=4)


def mail(after: str) -> Lost:
    asked = "You have won a cruise, click here!\nIs this spam or ham? Pick one word."
    return value("spam", asked, after)


def capital(after: str) -> Lost:
    return value("Warsaw", "What is the capital of Poland? One word, please.", after)


def train(after: str) -> Lost:
    return value("12:30", "The train leaves at 12:30. When? Answer with the time only.", after)


def fenster(after: str) -> Lost:
    return value("Fenster", "Wiederhole nur dieses Wort: Fenster", after)


def france(after: str) -> Lost:
    return value("Francia", "¿En qué país está Lyon? Escribe solo el país.", after)


CASES = [
    (train("13:30"), "wrong"),
    (train("It leaves at half past twelve, which is 12:30."), "wrapped"),
    (table("**Function:** book_table\n**Name:** Nils\n**Seats:** 6"), "wrapped"),
    (
        lamps(
            '```json\n{\n  "action": "ship",\n  "data": {\n    "item": '
            '"lamps",\n    "count": 14\n  }\n}\n```'
        ),
        "wrapped",
    ),
    (lamps('ship(item="lamps", count=14)'), "wrapped"),
    (total("The sum of 38 and 7 is 45."), "wrapped"),
    (floors("9 floors."), "wrapped"),
    (floors("Nine floors"), "wrapped"),
    (capital("### Answer\n\nWarsaw"), "wrapped"),
    (
        capital(
            "### Answer\n\nThe capital of Poland is **Warsaw** (Warszawa), "
            "a city on the Vistula.\n\n### Note\n\nIt has been the capital "
            "since 1596."
        ),
        "wrapped",
    ),
    (table('Function call: book_table\nArguments: {"name": "Nils", "seats": 6}'), "wrapped"),
    (
        plants(
            '<tool_call>\n{"name": "water_plant", "arguments": {"name": '
            '"fern", "cups": 2}}\n</tool_call>\n<tool_call>\n{"name": '
            '"turn_off", "arguments": {"room": "attic"}}\n</tool_call>'
        ),
        "wrapped",
    ),
    (plants('water_plant(name="fern", cups=2); turn_off(room="attic")'), "wrapped"),
    (fenster("Ich wiederhole: Fenster"), "wrapped"),
    (total("The number is 45, as you can see."), "wrapped"),
    (floors("That is 9."), "wrapped"),
    (mail("It is SPAM!"), "wrapped"),
    (total("45.0"), "wrapped"),
    (table('book_table("Nils", 6)'), "wrapped"),
    (
        plants('```python\n[water_plant(name="fern", cups=2), turn_off(room="attic")]\n```'),
        "wrapped",
    ),
    (rolls("The total is $8 \\times 12 = 96$."), "wrapped"),
    (
        plants(
            "Here are the calls: [water_plant(name='fern', cups=2), "
            "turn_off(room='attic')]. They do what you asked for."
        ),
        "wrapped",
    ),
    (rolls("#### 96"), "wrapped"),
    (capital("Is it Warsaw?"), "wrapped"),
    (planet("**B**"), "wrapped"),
    (
        plants(
            'First, water the fern: `water_plant(name="fern", cups=2)`. '
            'Then turn off the light: `turn_off(room="attic")`.'
        ),
        "wrapped",
    ),
    (table('{"call": "book_table", "args": {"name": "Nils", "seats": 6}}'), "wrapped"),
    (planet("The correct answer is (B) Jupiter."), "wrapped"),
    (rolls("The baker makes ninety-six rolls."), "wrapped"),
    (table('print(book_table(name="Nils", seats=6))'), "wrapped"),
    (plants('[water_plant("fern", 2), turn_off("attic")]'), "wrapped"),
    (capital("Warsaw!!!"), "wrapped"),
    (planet("Jupiter is the largest planet in the solar system."), "wrapped"),
    (mail("**Category:** Spam\n\n**Reason:** It asks you to click a link."), "wrapped"),
    (rolls("The answer is: **96**"), "wrapped"),
    (rolls("Total rolls = 8 trays × 12 rolls/tray = 96 rolls"), "wrapped"),
    (total("The sum of 38 and 7 is 46."), "wrong"),
    (
        rolls(
            "Let's solve it step by step.\n\n- Number of trays: **8**\n- "
            "Rolls per tray: **12**\n\n**Calculation:** 8 * 12 = 94\n\n"
            "**Final answer:** 94 rolls"
        ),
        "wrong",
    ),
    (
        plants(
            '<tool_call>\n{"name": "water_plant", "arguments": {"name": '
            '"fern", "cups": 2}}\n</tool_call>'
        ),
        "wrong",
    ),
    (table('The answer is book_table(name="Nils", seats=7)'), "wrong"),
    (lamps('{"action": "ship", "data": {"item": "lamps", "count": 15}}'), "wrong"),
    (capital("<answer>Krakow</answer>"), "wrong"),
    (fenster("Das ist ein Haus."), "wrong"),
    (lamps('{"action": "ship"}'), "wrong"),
    (fenster("Tür"), "wrong"),
    (capital("Krakow"), "wrong"),
    (capital("Verdict: Krakow"), "wrong"),
    (capital("Poland is a country in central Europe with a long history."), "wrong"),
    (planet("Answer: D. Earth"), "wrong"),
    (total("35"), "wrong"),
    (capital("Varsovia"), "wrong"),
    (total("3 + 8 + 7 = 18"), "wrong"),
    (capital("Krakow. The capital of Poland is Krakow. It was founded"), "wrong"),
    (even("class Even:\n    def is_even(self, n):\n        return n % 2 == 0"), "wrong"),
    (rolls("\\boxed{98}"), "wrong"),
    (plants('[turn_off(room="attic"), water_plant(name="fern", cups=2)]'), "wrong"),
    (capital("What is the capital of Poland? One word, please."), "unparsed"),
    (fenster("Wiederhole nur dieses Wort: Fenster"), "unparsed"),
    (lamps('{"action": ..., "data": {...}}'), "unparsed"),
    (total("The sum of 38 and 7"), "unparsed"),
    (floors("A hotel has 12 rooms and 9 floors."), "unparsed"),
    (capital("One word, please."), "unparsed"),
    (rolls("Step 1: 8 trays\nStep 2: 12 rolls\nStep 3: multiply"), "unparsed"),
    (mail("You have won a cruise, click here!"), "unparsed"),
    (even("return n % 2 == 0"), "unparsed"),
    (planet("Planets are large objects that go around the sun."), "unparsed"),
    (total("XLV"), "unparsed"),
    (lamps("action: ship\nitem: lamps\ncount: 15"), "unparsed"),
    (total("fortyfive"), "unparsed"),
    (planet("The largest planet is Saturn."), "unparsed"),
    (mail("Is this spam or ham? Pick one word."), "unparsed"),
    (total("38 plus 7 is a sum."), "unparsed"),
    (table("book_table"), "prose"),
    (lamps("14 lamps"), "prose"),
    (plants("Water the fern with 2 cups and then turn off the light in the attic."), "prose"),
    (lamps('"action": "ship", "data"'), "prose"),
    (even("Use the modulo operator to see if the remainder is zero."), "prose"),
    (table("I have booked a table for 6 in the name of Nils. Enjoy your meal!"), "prose"),
    (lamps("I would ship 14 lamps for you."), "prose"),
    (table("str, int"), "prose"),
    (table('name="Nils", seats=6'), "prose"),
    (table("I am happy to help you with that."), "prose"),
    (plants("Functions: water_plant(name: str, cups: int); turn_off(room: str)"), "prose"),
    (total("4"), "truncated"),
    (capital("W"), "truncated"),
    (rolls("The baker has 8 trays and 12 rolls on each of them, so we need to"), "truncated"),
    (table('book_table(name="Nils", seats=6 and the name is Nils'), "truncated"),
    (rolls("We need to multiply the trays by the rolls. 8 * 12 ="), "truncated"),
    (capital("Poland is one of the largest countries in the middle of"), "truncated"),
    (table('book_table(name="Nils", seats='), "truncated"),
    (capital("The capital of Poland is"), "truncated"),
    (even("def is_even(n):\n"), "truncated"),
    (even("def is_even(n):\n    if n"), "truncated"),
    (rolls("The answer is"), "truncated"),
    (capital("Warsaw.\nWarsaw.\nWarsaw.\nWarsaw."), "ran_on"),
    (table('book_table(name="Nils", seats=6)\n\nThis call books a table for Nils.'), "ran_on"),
    (
        plants(
            '[water_plant(name="fern", cups=2), turn_off(room="attic")]\n\nTo do: Feed the cat.'
        ),
        "ran_on",
    ),
    (total("45\n\nExplanation: 38 + 7 = 45"), "ran_on"),
    (rolls("I do not have enough information to answer."), "refused"),
    (france("No lo sé."), "refused"),
    (capital("I don't know."), "refused"),
    (total("I can only answer in words."), "refused"),
    (capital("I am sorry, but as a cooking assistant I can only talk about food."), "refused"),
    (mail("I can't click on links."), "refused"),
    (capital("As an AI language model, I do not have access to that."), "refused"),
    (capital("I only answer questions about cooking. How about a recipe?"), "refused"),
    (
        lamps('Se lo mando subito: {"action": "ship", "data": {"item": "lamps", "count": 14}}'),
        "language",
    ),
    (capital("Stolicą Polski jest miasto Warszawa."), "language"),
    (capital("波兰的首都是华沙。"), "language"),
    (planet("La respuesta correcta es la B."), "language"),
    (mail("C'est du spam, à mon avis."), "language"),
    (total("fünfundvierzig ist die Antwort auf deine Frage"), "language"),
    (table('Voici l\'appel que vous avez demandé : book_table(name="Nils", seats=6)'), "language"),
    (fenster("Sure! Here is the word you asked for: Fenster"), "language"),
    (capital("Столица Польши — Варшава."), "language"),
    (fenster("The word you asked for is Fenster."), "language"),
    (total("45 45 45 45"), "degenerate"),
    (rolls("8 * 12 = 8 * 12 = 8 * 12 = 8 *"), "degenerate"),
    (table("book a table\nbook a table\nbook a table\nbook a table"), "degenerate"),
    (rolls("It is 8 trays. It is 8 trays. It is 8 trays. It is 8"), "degenerate"),
    (even("is_even(n=4)"), "call"),
    (capital('get_capital(country="Poland")'), "call"),
    (total("add(38, 7)"), "call"),
    (even("print(is_even(4))"), "call"),
    (capital("1. Warsaw\n2. Krakow\n3. Gdansk"), "list"),
    (total("1. 38\n2. 7"), "list"),
    (total("44, 45, 46"), "list"),
    (total("1\n2\n3\n4"), "list"),
]


@pytest.mark.parametrize(("item", "expected"), CASES)
def test_what_larger_and_small_models_write(item: Lost, expected: str) -> None:
    assert (cause_of(item) or UNKNOWN) == expected


FOREIGN = {
    "German": (
        "Die Antwort lautet sieben.",
        "Ich denke, es ist Rom.",
        "Natürlich, hier ist das Ergebnis der Rechnung, die du wolltest.",
    ),
    "French": (
        "La réponse est sept.",
        "Je pense que c'est Rome.",
        "Bien sûr, voici le résultat du calcul que vous avez demandé.",
    ),
    "Spanish": (
        "La respuesta es siete.",
        "Creo que es Roma.",
        "Claro, aquí tienes el resultado de la cuenta que has pedido.",
    ),
    "Italian": (
        "La risposta è sette.",
        "Penso che sia Roma.",
        "Certo, ecco il risultato del calcolo che hai chiesto.",
    ),
    "Portuguese": ("Acho que é Roma.", "Claro, aqui está o resultado da conta que você pediu."),
    "Dutch": (
        "Het antwoord is zeven.",
        "Ik denk dat het Rome is.",
        "Natuurlijk, hier is de uitkomst van de som die je wilde.",
    ),
    "Swedish": (
        "Svaret är sju.",
        "Jag tror att det är Rom.",
        "Jag har fått en gratis resa, se här!",
        "Självklart, här kommer resultatet av räkningen som du bad om.",
    ),
    "Danish": (
        "Svaret er syv.",
        "Jeg tror, det er Rom.",
        "Selvfølgelig, her er resultatet af det regnestykke, du bad om.",
    ),
    "Norwegian": (
        "Svaret er sju.",
        "Jeg tror det er Roma.",
        "Selvfølgelig, her er resultatet av regnestykket du ba om.",
    ),
    "Icelandic": (
        "Svarið er sjö.",
        "Ég held að það sé Róm.",
        "Auðvitað, hér er niðurstaðan sem þú baðst um.",
    ),
    "Polish": (
        "Myślę, że to Rzym.",
        "Oczywiście, oto wynik działania, o które prosiłeś.",
        "To jest bardzo dobre pytanie.",
    ),
    "Czech": (
        "Odpověď je sedm.",
        "Myslím, že je to Řím.",
        "Samozřejmě, tady je výsledek výpočtu, který jste chtěli.",
    ),
    "Slovak": (
        "Odpoveď je sedem.",
        "Myslím si, že je to Rím.",
        "Samozrejme, tu je výsledok výpočtu, ktorý ste chceli.",
    ),
    "Croatian": (
        "Odgovor je sedam.",
        "Mislim da je to Rim.",
        "Naravno, evo rezultata računa koji ste tražili.",
    ),
    "Slovenian": (
        "Odgovor je sedem.",
        "Mislim, da je to Rim.",
        "Seveda, tukaj je rezultat računa, ki ste ga želeli.",
    ),
    "Hungarian": ("Azt hiszem, ez Róma.", "Természetesen, itt van a kért számítás eredménye."),
    "Finnish": (
        "Vastaus on seitsemän.",
        "Luulen, että se on Rooma.",
        "Totta kai, tässä on laskun tulos, jota pyysit.",
    ),
    "Estonian": (
        "Ma arvan, et see on Rooma.",
        "Muidugi, siin on arvutuse tulemus, mida sa küsisid.",
    ),
    "Romanian": (
        "Răspunsul este șapte.",
        "Cred că este Roma.",
        "Desigur, iată rezultatul calculului pe care l-ai cerut.",
    ),
    "Turkish": (
        "Cevap yedi olacak.",
        "Bence bu Roma.",
        "Tabii ki, istediğin hesabın sonucu burada.",
    ),
    "Indonesian": (
        "Jawabannya adalah tujuh.",
        "Saya pikir itu Roma.",
        "Tentu, ini hasil perhitungan yang Anda minta.",
    ),
    "Vietnamese": (
        "Câu trả lời là bảy.",
        "Tôi nghĩ đó là Roma.",
        "Tất nhiên, đây là kết quả của phép tính mà bạn yêu cầu.",
    ),
    "Catalan": (
        "La resposta és set.",
        "Crec que és Roma.",
        "És clar, aquí tens el resultat del càlcul que has demanat.",
    ),
    "Lithuanian": (
        "Atsakymas yra septyni.",
        "Manau, kad tai Roma.",
        "Žinoma, štai skaičiavimo, kurio prašėte, rezultatas.",
    ),
    "Latvian": (
        "Atbilde ir septiņi.",
        "Es domāju, ka tā ir Roma.",
        "Protams, šeit ir aprēķina rezultāts, ko jūs prasījāt.",
    ),
    "Swahili": (
        "Jibu ni saba.",
        "Nadhani ni Roma, mji wa Italia.",
        "Bila shaka, hapa kuna matokeo ya hesabu uliyoomba.",
    ),
    "Tagalog": (
        "Ang sagot ay pito.",
        "Sa tingin ko ito ay Roma.",
        "Siyempre, narito ang resulta ng kalkulasyon na hiniling mo.",
    ),
    "Albanian": (
        "Përgjigjja është shtatë.",
        "Mendoj se është Roma.",
        "Sigurisht, këtu është rezultati i llogaritjes që kërkuat.",
    ),
    "Welsh": (
        "Yr ateb yw saith.",
        "Rwy'n meddwl mai Rhufain yw hi.",
        "Wrth gwrs, dyma ganlyniad y swm yr oeddech ei eisiau.",
    ),
    "Irish": (
        "Is é an freagra ná seacht.",
        "Ceapaim gurb í an Róimh í.",
        "Ar ndóigh, seo toradh na suime a d'iarr tú.",
    ),
    "Afrikaans": (
        "Die antwoord is sewe.",
        "Ek dink dit is Rome.",
        "Natuurlik, hier is die uitslag van die som wat jy wou hê.",
    ),
    "Latin": (
        "Responsum est septem.",
        "Puto hoc esse Roma.",
        "Certe, ecce exitus computationis quam petivisti et quae vera est.",
    ),
    "Esperanto": (
        "La respondo estas sep.",
        "Mi pensas ke ĝi estas Romo.",
        "Kompreneble, jen la rezulto de la kalkulo kiun vi petis.",
    ),
    "Russian": ("Ответ: семь.", "Я думаю, что это Рим."),
    "Greek": ("Η απάντηση είναι επτά.",),
    "Arabic": ("الجواب هو سبعة.",),
    "Hindi": ("उत्तर सात है।",),
    "Japanese": ("答えは七です。",),
    "Korean": ("답은 일곱입니다.",),
    "Thai": ("คำตอบคือเจ็ด",),
    "Hebrew": ("התשובה היא שבע",),
}
"""Whole sentences, three to eight words and longer."""
ENGLISH = (
    "The answer is 7.",
    "Rome",
    "São Paulo",
    "Rome, Oslo, Lima",
    "Nils, 6",
    "Anna Müller lives in Köln.",
    'book_table(name="Nils", seats=6)',
    "def is_even(n):\n    return n % 2 == 0",
    "for x in xs:\n    s += x",
    "8 * 12 = 96",
    "total = 96 rolls",
    "(A) copper\n(B) tulip\n(C) violin\n(D) Friday",
    "Step 1: Add. Step 2: Done.",
    "1. no\n2. none\n3. all",
    "The café serves crème brûlée.",
    "El Niño is a climate pattern.",
    "José lives in Málaga and works in Córdoba.",
    "The Los Angeles Lakers.",
    "La La Land is a film.",
    "Leonardo da Vinci painted it.",
    "Vincent van Gogh",
    "De Gaulle was a general.",
    "Die Hard",
    "Rio de Janeiro",
    "Los Angeles, San Francisco, San Diego",
    "Las Vegas is in Nevada.",
    "Le Monde",
    "name: Nils\nseats: 6",
    "x = 3; y = 4; print(x + y)",
    "import os\nimport sys",
    "A: B: C: D:",
    "A B C D E F",
    "I am an AI.",
    "User: Hi\nAssistant: Hello",
    "Ghent 33 rooms",
    "Ilias lent 3 cushions to Fiona",
    "kg, cm, mm, km",
    "Total: $96.00",
    "O(n log n)",
    "Yes. No.",
    "No, none, null.",
    "Dr. Ana de la Cruz",
    "Jan van Eyck, Pieter Bruegel",
    'The word is "fenêtre".',
    "Data not found",
    "E = mc^2",
    "Mars, Venus, Jupiter",
    "son of man",
    "a pear, a plum, an apple",
    "Hola means hello in Spanish.",
    "In German, 'dog' is 'Hund'.",
    "Ctrl+C",
    "pip install numpy",
    "SELECT name FROM users",
    "http://example.com/a/b",
    "Ω is omega",
    "5 kg",
    "to be or not to be",
    "mice",
    "Nora har cats",
    "Le Van Tam",
    "Kim Jong Il",
    "si units",
    "per se",
    "et al. 2019",
    "vice versa",
    "status quo ante",
    "ad hoc",
    "déjà vu",
    "Björn Åkesson, Zoë Straße",
    "naïve café façade résumé in one line of the text that we know",
)
"""What is written in English, or in no language: names, numbers, lists, code."""


@pytest.mark.parametrize("language", FOREIGN)
def test_texts_in_other_languages_are_told(language: str) -> None:
    for text in FOREIGN[language]:
        assert speaks_another(text, ["English"]), text
        assert not speaks_another("The answer is seven, I think.", ["English"])


@pytest.mark.parametrize("text", ENGLISH)
def test_names_numbers_and_code_have_no_other_language(text: str) -> None:
    assert not speaks_another(text, ["English"])

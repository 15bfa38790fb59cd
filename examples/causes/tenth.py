"""Eleven kinds for the tenth look: the kinds of the ninth, about other things and easier.

The questions are many and simple, so that small models get many different ones right before.
"""

from __future__ import annotations

import json
import random

from ninth import Made, call, in_any_order, lettered, signature, tested

GUESTS = (
    *("Amara", "Bent", "Cyril", "Dunja", "Esteban", "Fiona", "Gideon", "Helmi", "Ilias", "Joana"),
    *("Kwame", "Leona"),
)
TOWNS = (
    *("Antwerp", "Bilbao", "Cebu", "Dresden", "Edmonton", "Galway", "Houston", "Kigali", "Lucca"),
    *("Malmo", "Nantes", "Oaxaca"),
)
ITEMS = (
    *("apricots", "buckets", "cushions", "envelopes", "flutes", "hinges", "ladders", "napkins"),
    *("pillows", "rulers", "sandals", "whistles"),
)
DEVICES = ("heater", "fan", "oven", "printer", "projector", "dishwasher", "vacuum", "sprinkler")
TEAMS = ("Billing", "Delivery", "Returns", "Repairs", "Sales")
"""The answers of a new task that train.py teaches: which team takes a customer's ticket."""


def _wish(draw: random.Random) -> tuple[str, dict[str, object], str]:
    """A function, the values of its arguments, and what the user wants."""
    who, town, item, device = (draw.choice(names) for names in (GUESTS, TOWNS, ITEMS, DEVICES))
    n, few = draw.randrange(2, 90), draw.randrange(2, 10)
    return draw.choice(
        [
            ("turn_on", {"device": device}, f"turn on the {device}"),
            ("track_parcel", {"number": n}, f"track parcel number {n}"),
            ("air_quality", {"city": town}, f"check the air quality in {town}"),
            ("set_volume", {"level": n}, f"set the volume to level {n}"),
            ("miles_to_km", {"miles": n}, f"convert {n} miles to km"),
            ("book_taxi", {"town": town, "passengers": few},
             f"book a taxi in {town} for {few} passengers"),
            ("reserve_desk", {"floor": few, "person": who},
             f"reserve a desk on floor {few} for {who}"),
            ("create_invoice", {"client": who, "amount": n},
             f"create an invoice for the client {who} over the amount of {n}"),
            ("seat_guest", {"name": who, "table": few}, f"seat the guest {who} at table {few}"),
            ("schedule_call", {"person": who, "hour": few + 8},
             f"schedule a call with {who} at hour {few + 8}"),
            ("rate_product", {"product": item, "stars": few % 5 + 1},
             f"rate the product {item} with {few % 5 + 1} stars"),
            ("restock", {"item": item, "quantity": n}, f"restock the item {item}, quantity {n}"),
            ("find_hotel", {"city": town, "nights": few},
             f"find a hotel in {town} for {few} nights"),
            ("print_pages", {"first": few, "last": few + n}, f"print pages {few} to {few + n}"),
            ("run_device", {"device": device, "minutes": n}, f"run the {device} for {n} minutes"),
            ("divide", {"a": n * few, "b": few}, f"divide {n * few} by {few}"),
        ]
    )  # fmt: skip


def _sentence(wish: str) -> str:
    return f"{wish[0].upper()}{wish[1:]}."


def services(draw: random.Random) -> Made:
    """One call."""
    while True:
        name, values, wish = _wish(draw)
        yield (
            f"You can use {signature(name, values)}.\n{_sentence(wish)}\n"
            "Give me just the call, with named arguments.",
            call(name, values),
            [],
        )


def batches(draw: random.Random) -> Made:
    """One or two calls, as a list in Python's notation."""
    while True:
        wishes = [_wish(draw) for _ in range(draw.choice((1, 1, 2)))]
        functions = dict.fromkeys(signature(name, values) for name, values, _ in wishes)
        yield (
            f"Functions: {'; '.join(functions)}\n"
            f"To do: {' '.join(_sentence(wish) for _, _, wish in wishes)}\n"
            "Give me a Python list of calls, like [f(a=1)].",
            f"[{', '.join(call(name, values) for name, values, _ in wishes)}]",
            [],
        )


def payloads(draw: random.Random) -> Made:
    """One call as JSON."""
    while True:
        name, values, wish = _wish(draw)
        yield (
            f"Endpoint {name} takes {', '.join(values)}.\nThe user says: {_sentence(wish)}\n"
            'Write the payload, {"endpoint": ..., "body": {...}}, in JSON.',
            json.dumps({"endpoint": name, "body": values}),
            [],
        )


def extracts(draw: random.Random) -> Made:
    """A sentence as JSON."""
    while True:
        (who, other), town, item = draw.sample(GUESTS, 2), draw.choice(TOWNS), draw.choice(ITEMS)
        n, few = draw.randrange(11, 90), draw.randrange(2, 10)
        text, value = draw.choice(
            [
                (f"{who} works in {town}.", {"name": who, "city": town}),
                (f"{who} won {few} medals in {town}.",
                 {"athlete": who, "medals": few, "place": town}),
                (f"Flight {n} leaves {town} from gate {few}.",
                 {"flight": n, "airport": town, "gate": few}),
                (f"Invoice {n} goes to {who}.", {"invoice": n, "client": who}),
                (f"{who} lent {few} {item} to {other}.",
                 {"lender": who, "count": few, "item": item, "borrower": other}),
                (f"The hotel in {town} has {n} rooms.", {"town": town, "rooms": n}),
                (f"The {item} weigh {n} grams.", {"item": item, "grams": n}),
                (f"{who} is the boss of {other}.", {"boss": who, "worker": other}),
                (f"Order {n}: {few} {item} for {who}.",
                 {"order": n, "quantity": few, "product": item, "customer": who}),
            ]
        )  # fmt: skip
        yield (
            f"Extract {', '.join(value)} from this sentence.\n{text}\nOutput: a JSON object.",
            json.dumps(value),
            [],
        )


SNIPPETS = (
    ("add_five", "x", "add 5 to x", "return x + 5", [(1,), (-5,)]),
    ("times_four", "x", "multiply x by 4", "return x * 4", [(3,)]),
    ("subtract_six", "x", "subtract 6 from x", "return x - 6", [(10,)]),
    ("divide_by_ten", "x", "divide x by 10", "return x / 10", [(50,)]),
    ("is_hundred", "x", "check if x equals 100", "return x == 100", [(100,), (7,)]),
    ("is_adult", "age", "check if age is at least 18", "return age >= 18", [(18,), (17,)]),
    ("is_big", "x", "check if x is more than 1000", "return x > 1000", [(2000,), (10,)]),
    ("ends_in_e", "word", "check if word ends with e", 'return word.endswith("e")',
     [("cake",), ("dog",)]),
    ("trim", "text", "remove the spaces around text", "return text.strip()", [(" a ",)]),
    ("title_case", "text", "put text in title case", "return text.title()", [("my cat",)]),
    ("split_commas", "text", "split text at commas", 'return text.split(",")', [("a,b",)]),
    ("to_number", "text", "turn text into an integer", "return int(text)", [("42",)]),
    ("to_text", "x", "turn x into a string", "return str(x)", [(42,)]),
    ("to_list", "text", "turn text into a list of characters", "return list(text)", [("abc",)]),
    ("absolute", "x", "return the absolute value of x", "return abs(x)", [(-3,), (3,)]),
    ("rounded", "x", "round x to the nearest integer", "return round(x)", [(2.7,)]),
    ("add_all", "numbers", "return the sum of numbers", "return sum(numbers)", [([1, 2],)]),
    ("lowest", "numbers", "return the smallest of numbers", "return min(numbers)", [([4, 2],)]),
    ("top", "numbers", "return the largest of numbers", "return max(numbers)", [([4, 2],)]),
    ("ordered", "numbers", "return numbers in ascending order", "return sorted(numbers)",
     [([3, 1],)]),
    ("size", "items", "return the number of items", "return len(items)", [([1, 2],)]),
    ("third", "items", "return the third of items", "return items[2]", [([1, 2, 3],)]),
    ("first_two", "items", "return the first two of items", "return items[:2]", [([1, 2, 3],)]),
    ("drop_last", "items", "return items without the last one", "return items[:-1]",
     [([1, 2, 3],)]),
    ("contains", "text, part", "check if part is in text", "return part in text", [("abc", "b")]),
    ("same", "a, b", "check if a and b are equal", "return a == b", [(1, 1), (1, 2)]),
    ("power", "a, b", "return a to the power of b", "return a ** b", [(2, 3)]),
    ("remainder", "a, b", "return the remainder of a divided by b", "return a % b", [(7, 3)]),
    ("quotient", "a, b", "divide a by b", "return a / b", [(8, 2)]),
    ("sum_of_squares", "a, b", "return a squared plus b squared", "return a ** 2 + b ** 2",
     [(2, 3)]),
    ("full_name", "first, last", "join first and last with a space", 'return first + " " + last',
     [("Al", "Oz")]),
    ("say_bye", "name", 'return "Bye " and the name', 'return "Bye " + name', [("Jo",)]),
    ("kilos_to_grams", "kilos", "turn kilos into grams", "return kilos * 1000", [(2,)]),
    ("days_to_hours", "days", "turn days into hours", "return days * 24", [(2,)]),
    ("weeks_to_days", "weeks", "turn weeks into days", "return weeks * 7", [(3,)]),
    ("volume", "a, b, c", "return the volume of a box", "return a * b * c", [(2, 3, 4)]),
    ("square_area", "side", "return the area of a square", "return side ** 2", [(3,)]),
    ("triangle_area", "base, height", "return the area of a triangle", "return base * height / 2",
     [(4, 3)]),
    ("discount", "price", "take 5 off the price", "return price - 5", [(20,)]),
    ("keys_of", "table", "return the list of keys of the dict table", "return list(table)",
     [({"a": 1},)]),
    ("is_multiple", "a, b", "check if a is a multiple of b", "return a % b == 0",
     [(6, 3), (7, 3)]),
    ("not_empty", "text", "check if text is not empty", 'return text != ""', [("a",), ("",)]),
    ("repeat_three", "word", "return the word three times in a row", "return word * 3", [("ab",)]),
    ("count_commas", "text", "count the commas in text", 'return text.count(",")', [("a,b,c",)]),
)  # fmt: skip


def snippets(draw: random.Random) -> Made:
    """A small function."""
    for name, given, does, body, tests in draw.sample(SNIPPETS, len(SNIPPETS)):
        yield (
            f"Task: {does}.\nPython function: {name}({given})\nSend code and no other text.",
            *tested(name, given, body, tests),
        )


def puzzles(draw: random.Random) -> Made:
    """A sum in a story; in the place of checks, a reply with the working."""
    while True:
        who, item = draw.choice(GUESTS), draw.choice(ITEMS)
        a, b = draw.randrange(2, 13), draw.randrange(1, 7)
        more, less = f"{a} + {b} = {a + b}", f"{a + b} - {b} = {a}"
        text, work = draw.choice(
            [
                (f"{who} reads {a} pages at noon and {b} pages at night. How many pages is that?",
                 more),
                (f"A class has {a} girls and {b} boys. How many children are in it?", more),
                (f"There are {a} red and {b} blue {item}. How many {item} are there?", more),
                (f"{who} is {a} years old. How old will {who} be in {b} years?", more),
                (f"A bus has {a} passengers. {b} more get on. How many are on it now?", more),
                (f"{who} earned {a} dollars today and {b} yesterday. How many in all?", more),
                (f"A nest has {a + b} eggs. {b} of them hatch. How many eggs are left?", less),
                (f"{who} had {a + b} sweets and ate {b}. How many sweets are left?", less),
                (f"Of {a + b} {item}, {b} get lost. How many {item} are still there?", less),
                (f"{who} buys 2 packs with {a} {item} each. How many {item} is that?",
                 f"2 * {a} = {2 * a}"),
                (f"One ticket costs {a} dollars. How much do 10 tickets cost?",
                 f"10 * {a} = {10 * a}"),
            ]
        )  # fmt: skip
        value = work.rpartition(" ")[2]
        yield (
            f"{text}\nFinish with this sentence: The answer is N.",
            value,
            [f"{work}. The answer is {value}."],
        )


NUMBERS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
    "twenty",
)
OWNED = (
    *(("A hotel", "rooms", "floors"), ("A book", "pages", "chapters"), ("A farm", "cows", "pigs")),
    *(("A ship", "cabins", "decks"), ("A team", "players", "coaches"), ("A zoo", "apes", "bears")),
    *(("A school", "pupils", "teachers"), ("A street", "houses", "shops")),
)


def digits(draw: random.Random) -> Made:
    """A number from the question, or next to it; the whole reply must be the number."""
    while True:
        a, b = draw.randrange(1, 30), draw.randrange(1, 9)
        big, small = draw.sample(range(2, 100), 2)
        owner, first, second = draw.choice(OWNED)
        text, value = draw.choice(
            [
                (f'Write "{NUMBERS[a % 20]}" as a number.', a % 20 + 1),
                (f"Which one is larger, {big} or {small}?", max(big, small)),
                (f"Which one is smaller, {big} or {small}?", min(big, small)),
                (f"{owner} has {big} {first} and {small} {second}. How many {first}?", big),
                (f"{owner} has {big} {first} and {small} {second}. How many {second}?", small),
                (f"Count on by one: {a}, {a + 1}, {a + 2}, ...", a + 3),
                (f"Increase {a} by {b}.", a + b),
                (f"What is half of {2 * b}?", b),
            ]
        )
        yield f"{text} Only digits, please.", str(value), []


RECALL = (
    ("Which city is the capital of {}?", {
        "Romania": "Bucharest", "Bulgaria": "Sofia", "Iraq": "Baghdad", "Syria": "Damascus",
        "Thailand": "Bangkok", "Vietnam": "Hanoi", "South Korea": "Seoul", "Lebanon": "Beirut",
        "Ecuador": "Quito", "Ghana": "Accra", "Jamaica": "Kingston", "Scotland": "Edinburgh",
        "Wales": "Cardiff", "Serbia": "Belgrade", "Croatia": "Zagreb", "Venezuela": "Caracas",
        "Iceland": "Reykjavik", "Nepal": "Kathmandu", "Senegal": "Dakar", "Taiwan": "Taipei",
        "the Philippines": "Manila", "the Czech Republic": "Prague", "Libya": "Tripoli"}),
    ("What is the opposite of {}?", {
        "strong": "weak", "clean": "dirty", "buy": "sell", "push": "pull", "true": "false",
        "thick": "thin", "near": "far", "alive": "dead", "always": "never", "before": "after",
        "inside": "outside", "male": "female", "friend": "enemy", "heavy": "light",
        "wide": "narrow", "tall": "short", "asleep": "awake", "summer": "winter",
        "east": "west", "success": "failure", "first": "last", "safe": "dangerous"}),
    ("What is the plural of {}?", {
        "foot": "feet", "tooth": "teeth", "man": "men", "woman": "women", "goose": "geese",
        "knife": "knives", "leaf": "leaves", "city": "cities", "box": "boxes", "baby": "babies",
        "wolf": "wolves"}),
    ("What is the past tense of {}?", {
        "run": "ran", "see": "saw", "write": "wrote", "give": "gave", "take": "took",
        "sing": "sang", "drink": "drank", "buy": "bought", "fly": "flew", "sleep": "slept"}),
    ("Which country is {} in?", {
        "Milan": "Italy", "Lyon": "France", "Munich": "Germany", "Barcelona": "Spain",
        "Mumbai": "India", "Toronto": "Canada", "Sydney": "Australia", "Shanghai": "China",
        "Lahore": "Pakistan", "Casablanca": "Morocco"}),
    ("What is the name for {}?", {
        "a young cow": "calf", "a young sheep": "lamb", "a young horse": "foal",
        "a young lion": "cub", "a male cow": "bull", "a female lion": "lioness",
        "a house of snow": "igloo", "a period of ten years": "decade",
        "a period of one hundred years": "century", "the brother of a father": "uncle",
        "the son of a king": "prince", "a doctor for teeth": "dentist"}),
    ("What colour is {}?", {
        "a ripe tomato": "red", "a carrot": "orange", "milk": "white", "an emerald": "green",
        "chocolate": "brown", "a sunflower": "yellow", "an elephant": "gray"}),
)  # fmt: skip


def recalls(draw: random.Random) -> Made:
    """A fact; the whole reply must be the answer."""
    for text, about, said in in_any_order(draw, RECALL):
        yield f"{text.format(about)} One word, please.", said, []


EITHER = (
    ("spam or ham", {
        "You have won a free cruise, click here!": "spam", "Lunch at noon tomorrow?": "ham",
        "Cheap pills, order now!!!": "spam", "The minutes of our meeting are attached.": "ham",
        "Make a million from home, no risk!": "spam", "Happy birthday, dear sister.": "ham",
        "Claim your prize before midnight!": "spam", "I will be ten minutes late.": "ham"}),
    ("solid or liquid", {
        "Oil": "liquid", "A brick": "solid", "Lemonade": "liquid", "A coin": "solid",
        "Vinegar": "liquid", "Wood": "solid", "Petrol": "liquid", "Glass": "solid"}),
    ("city or country", {
        "Chicago": "city", "Portugal": "country", "Naples": "city", "Thailand": "country",
        "Hamburg": "city", "Morocco": "country", "Boston": "city", "Finland": "country"}),
    ("question or order", {
        "Close the window.": "order", "Where do you live?": "question", "Sit down!": "order",
        "What time is it?": "question", "Wash your hands.": "order",
        "Why is he late?": "question", "Stop talking!": "order", "Who are you?": "question"}),
    ("past or future", {
        "I slept very well.": "past", "We will meet on Sunday.": "future",
        "She went home.": "past", "He is going to call you.": "future",
        "They lost the match.": "past", "It will rain tomorrow.": "future",
        "The train left at six.": "past", "I will write to you.": "future"}),
    ("noun or verb", {
        "table": "noun", "to swim": "verb", "garden": "noun", "to think": "verb",
        "bottle": "noun", "to explain": "verb", "river": "noun", "to laugh": "verb"}),
    ("food or clothing", {
        "Bread": "food", "A jacket": "clothing", "Cheese": "food", "Trousers": "clothing",
        "Rice": "food", "A sweater": "clothing", "A pancake": "food", "Socks": "clothing"}),
    ("complaint or praise", {
        "My order came a week too late.": "complaint", "Your team was wonderful.": "praise",
        "The screen is cracked.": "complaint", "I would buy it again.": "praise",
        "Nobody answers the phone.": "complaint", "What a beautiful design.": "praise",
        "You charged me twice.": "complaint", "Fast, kind and helpful!": "praise"}),
)  # fmt: skip


def eithers(draw: random.Random) -> Made:
    """One of two words."""
    for pair, text, said in in_any_order(draw, EITHER):
        yield f"{text}\nIs this {pair}? Pick one word.", said, []


CLASSES = {
    "sea animal": ("shark", "squid", "lobster", "octopus"),
    "dessert": ("pudding", "ice cream", "apple pie", "brownie"),
    "job": ("nurse", "plumber", "lawyer", "waiter"),
    "language": ("Swedish", "Arabic", "Korean", "Latin"),
    "gemstone": ("ruby", "diamond", "sapphire", "opal"),
    "feeling": ("anger", "joy", "fear", "grief"),
    "kind of weather": ("fog", "hail", "thunder", "drizzle"),
    "school subject": ("history", "biology", "physics", "geography"),
    "part of a car": ("brake", "windscreen", "bumper", "exhaust"),
    "board game": ("chess", "checkers", "backgammon", "Monopoly"),
}


def letters(draw: random.Random) -> Made:
    """Four options in lines; the whole reply must be the letter."""
    for wanted, listed, letter in lettered(draw, CLASSES):
        lines = "\n".join(f"({a}) {word}" for a, word in zip("ABCD", listed, strict=True))
        yield f"{lines}\nWhich letter stands before the {wanted}? Only the letter.", letter, []


def _same(*words: str) -> dict[str, str]:
    return {word: word for word in words}


LOCALES = (
    ("Wiederhole nur dieses Wort: {}",
     _same("Fenster", "Garten", "Schule", "Winter", "Musik", "Zucker", "Brücke")),
    ("Welche Farbe hat {}? Nur ein Wort.",
     {"Schnee": "weiß", "Gras": "grün", "Blut": "rot", "Kohle": "schwarz", "eine Zitrone": "gelb"}),
    ("In welchem Land liegt {}? Schreibe nur das Land.",
     {"München": "Deutschland", "Mailand": "Italien", "Lyon": "Frankreich",
      "Barcelona": "Spanien", "London": "England"}),
    ("Répète seulement ce mot : {}",
     _same("jardin", "école", "musique", "hiver", "fromage", "voiture", "pont")),
    ("Quel est le contraire de « {} » ? Un mot suffit.",
     {"grand": "petit", "chaud": "froid", "blanc": "noir", "jour": "nuit", "oui": "non",
      "bon": "mauvais"}),
    ("Combien font {} ? Écris le nombre.",
     {"1 + 1": "2", "2 + 3": "5", "4 + 4": "8", "5 + 5": "10", "6 + 1": "7"}),
    ("Repite solo esta palabra: {}",
     _same("jardín", "escuela", "música", "invierno", "queso", "coche", "puente")),
    ("¿En qué país está {}? Escribe solo el país.",
     {"Milán": "Italia", "Lyon": "Francia", "Múnich": "Alemania", "Sevilla": "España",
      "Londres": "Inglaterra"}),
    ("¿Cuánto es {}? Escribe el número.",
     {"1 + 2": "3", "3 + 3": "6", "4 + 1": "5", "7 + 2": "9", "9 + 1": "10"}),
    ("Ripeti solo questa parola: {}",
     _same("giardino", "scuola", "musica", "inverno", "formaggio", "strada", "ponte")),
    ("Qual è il contrario di «{}»? Una parola.",
     {"caldo": "freddo", "grande": "piccolo", "bianco": "nero", "giorno": "notte", "sì": "no"}),
    ("Repita só esta palavra: {}",
     _same("jardim", "escola", "música", "inverno", "queijo", "carro", "ponte")),
    ("Qual é a capital {}? Uma palavra.",
     {"da França": "Paris", "da Itália": "Roma", "do Peru": "Lima", "da Alemanha": "Berlim",
      "de Portugal": "Lisboa"}),
    ("Herhaal alleen dit woord: {}",
     _same("tuin", "school", "muziek", "winter", "kaas", "fiets", "brug")),
)  # fmt: skip


def locales(draw: random.Random) -> Made:
    """A word or a number, asked for in six languages."""
    for text, of, said in in_any_order(draw, LOCALES):
        yield text.format(of), said, []


TENTH = {
    "service": services, "batch": batches, "payload": payloads, "extract": extracts,
    "snippet": snippets, "puzzle": puzzles, "digit": digits, "recall": recalls,
    "either": eithers, "letter": letters, "locale": locales,
}  # fmt: skip

"""Eleven kinds for the eleventh look: what people evaluate, about other things once more.

Calls with one function, several functions and nested arguments, JSON by a schema, programs, sums,
questions with four options, words on offer, facts, and questions in other languages.
"""

from __future__ import annotations

import json
import random

from ninth import Made, call, in_any_order, tested

FOLK = (
    *("Astrid", "Boris", "Chiara", "Dmitri", "Emeka", "Farah", "Gustav", "Hilde", "Imani", "Jorge"),
    *("Keiko", "Liam", "Marta", "Nadia", "Omar", "Petra"),
)
PLACES = (
    *("Bergen", "Cork", "Durban", "Essen", "Florence", "Ghent", "Hanoi", "Izmir", "Jaipur"),
    *("Krakow", "Leeds", "Memphis", "Osaka", "Porto", "Quito", "Split"),
)
WARES = (
    *("backpacks", "candles", "drums", "erasers", "frames", "globes", "hammers", "kites", "lamps"),
    *("mugs", "notebooks", "onions", "plates", "ropes", "scarves", "tiles"),
)
FILES = ("budget.xlsx", "letter.docx", "photo.png", "song.mp3", "plan.pdf", "notes.txt")
BEASTS = ("lion", "tiger", "monkey", "giraffe", "elephant")
UNITS = (("meters", "feet"), ("grams", "ounces"), ("liters", "gallons"), ("euros", "yen"))
WARDS = ("Cardiology", "Dermatology", "Pneumology", "Ophthalmology", "Neurology")
"""The answers of a new task that train.py teaches: which ward a patient goes to."""


def _asked(draw: random.Random) -> tuple[str, dict[str, object], str]:
    """A function, the values of its arguments, and what the user asks for."""
    who, place, ware, file = (draw.choice(names) for names in (FOLK, PLACES, WARES, FILES))
    n, few, (unit, other) = draw.randrange(3, 60), draw.randrange(2, 9), draw.choice(UNITS)
    return draw.choice(
        [
            ("open_file", {"path": file}, f"Open the file {file}"),
            ("delete_file", {"path": file}, f"Delete {file}"),
            ("search_jobs", {"city": place}, f"Look for jobs in {place}"),
            ("local_time", {"city": place}, f"What time is it in {place}"),
            ("call_contact", {"name": who}, f"Call {who}"),
            ("factorial", {"number": few}, f"Compute the factorial of {few}"),
            ("start_timer", {"minutes": n}, f"Start a timer of {n} minutes"),
            ("rectangle_area", {"width": few, "height": n},
             f"What is the area of a rectangle that is {few} wide and {n} high"),
            ("transfer_money", {"recipient": who, "amount": n}, f"Transfer {n} dollars to {who}"),
            ("rent_bike", {"city": place, "hours": few},
             f"Rent a bike in {place} for {few} hours"),
            ("add_stock", {"product": ware, "amount": n}, f"Add {n} {ware} to the stock"),
            ("convert_unit", {"value": n, "source": unit, "target": other},
             f"Convert {n} {unit} to {other}"),
            ("buy_ticket", {"destination": place, "adults": few},
             f"Buy a ticket to {place} for {few} adults"),
            ("hire", {"name": who, "office": place}, f"Hire {who} for the office in {place}"),
            ("set_reminder", {"text": f"buy {ware}", "hour": few + 10},
             f'Set a reminder with the text "buy {ware}" for hour {few + 10}'),
        ]
    )  # fmt: skip


def _declared(name: str, values: dict[str, object]) -> str:
    """A function as in a header file of types."""
    given = ", ".join(f"{key}: {_type(value)}" for key, value in values.items())
    return f"def {name}({given})"


def _type(value: object) -> str:
    if isinstance(value, dict):
        return "dict with " + ", ".join(f"{key} ({_type(part)})" for key, part in value.items())
    return f"list[{_type(value[0])}]" if isinstance(value, list) else type(value).__name__


def actions(draw: random.Random) -> Made:
    """One call."""
    while True:
        name, values, wish = _asked(draw)
        yield (
            f"Available: {_declared(name, values)}\nUser: {wish}, please.\n"
            "Answer with one function call that has keyword arguments. No explanation.",
            call(name, values),
            [],
        )


def chains(draw: random.Random) -> Made:
    """Two calls, as a list in Python's notation; a third function is of no use."""
    while True:
        wishes = [_asked(draw) for _ in range(3)]
        if len({name for name, _, _ in wishes}) < len(wishes):
            continue
        offered = sorted(_declared(name, values) for name, values, _ in wishes)
        used = wishes[:2]
        yield (
            "Tools:\n" + "\n".join(offered) + "\n"
            f"User: {' and then '.join(wish[0].lower() + wish[1:] for _, _, wish in used)}.\n"
            "Answer in the format [tool_a(x=1), tool_b(y=2)] without any other text.",
            f"[{', '.join(call(name, values) for name, values, _ in used)}]",
            [],
        )


def nested(draw: random.Random) -> Made:
    """One call with a list or a dict in its arguments."""
    while True:
        (who, other), (place, away) = draw.sample(FOLK, 2), draw.sample(PLACES, 2)
        (ware, more), n, few = draw.sample(WARES, 2), draw.randrange(3, 60), draw.randrange(2, 9)
        name, values, wish = draw.choice(
            [
                ("mean", {"numbers": [n, few, n + 2]}, f"Get the mean of {n}, {few} and {n + 2}"),
                ("invite", {"guests": [who, other]}, f"Invite {who} and {other}"),
                ("plan_tour", {"cities": [place, away], "days": n},
                 f"Plan a tour of {n} days through {place} and {away}"),
                ("ship", {"items": [ware, more], "to": {"name": who, "city": place}},
                 f"Ship {ware} and {more} to {who} in {place}"),
                ("add_customer", {"customer": {"name": who, "age": n}},
                 f"Add the customer {who}, aged {n}"),
                ("place_order", {"order": {"item": ware, "count": n}, "express": True},
                 f"Place an express order of {n} {ware}"),
                ("save_point", {"point": {"x": n, "y": few}, "label": place},
                 f"Save the point with x {n} and y {few}, labelled {place}"),
            ]
        )  # fmt: skip
        yield (
            f"Available: {_declared(name, values)}\nUser: {wish}.\n"
            "Answer with the function call in Python, all arguments by name. No explanation.",
            f"{name}({', '.join(f'{key}={value!r}' for key, value in values.items())})",
            [],
        )


def schemas(draw: random.Random) -> Made:
    """A text as JSON by a JSON Schema."""
    while True:
        (who, other), place, ware = draw.sample(FOLK, 2), draw.choice(PLACES), draw.choice(WARES)
        n, few = draw.randrange(12, 90), draw.randrange(2, 10)
        text, value = draw.choice(
            [
                (f"My name is {who} and I am {n} years old.", {"name": who, "age": n}),
                (f"{who} booked room {n} for {few} nights.",
                 {"guest": who, "room": n, "nights": few}),
                (f"{who} and {other} play in the team of {place}.",
                 {"players": [who, other], "team": place}),
                (f"We sold {n} {ware} in {place} on day {few}.",
                 {"product": ware, "sold": n, "city": place, "day": few}),
                (f"The {ware} are out of stock.", {"product": ware, "in_stock": False}),
                (f"The museum in {place} is open and a ticket costs {few} euros.",
                 {"city": place, "open": True, "price": few}),
                (f"Professor {who} teaches {n} students in {place}.",
                 {"professor": who, "students": n, "city": place}),
                (f"Train {n} goes to {place} from platform {few}.",
                 {"train": n, "destination": place, "platform": few}),
            ]
        )  # fmt: skip
        types = {str: "string", bool: "boolean", int: "integer", list: "array"}
        properties = {key: {"type": types[type(part)]} for key, part in value.items()}
        schema = {"type": "object", "properties": properties}
        yield (
            f"{text}\nPut this into a JSON document that is valid under the schema "
            f"{json.dumps(schema)}. Print nothing but the document.",
            json.dumps(value),
            [],
        )


METHODS = (
    ("half", "x", "half of x", "return x / 2", [(8,)]),
    ("cube", "x", "x to the power of three", "return x ** 3", [(2,), (-1,)]),
    ("negate", "x", "x with the opposite sign", "return -x", [(4,)]),
    ("is_even", "n", "True if n is even, else False", "return n % 2 == 0", [(4,), (7,)]),
    ("is_odd", "n", "True if n is odd, else False", "return n % 2 == 1", [(4,), (7,)]),
    ("is_zero", "n", "True if n is zero, else False", "return n == 0", [(0,), (3,)]),
    ("is_positive", "n", "True if n is greater than zero", "return n > 0", [(5,), (-5,)]),
    ("add", "a, b", "the sum of a and b", "return a + b", [(2, 5)]),
    ("product", "a, b", "the product of a and b", "return a * b", [(3, 5)]),
    ("difference", "a, b", "a minus b", "return a - b", [(9, 5)]),
    ("larger", "a, b", "the larger one of a and b", "return max(a, b)", [(9, 5), (1, 2)]),
    ("average", "values", "the average of the list values", "return sum(values) / len(values)",
     [([2, 4],)]),
    ("upper", "text", "text in capital letters", "return text.upper()", [("abc",)]),
    ("lower", "text", "text in small letters", "return text.lower()", [("ABC",)]),
    ("reversed_text", "text", "text read backwards", "return text[::-1]", [("abc",)]),
    ("length", "text", "the number of characters in text", "return len(text)", [("hello",)]),
    ("first_letter", "text", "the first character of text", "return text[0]", [("dog",)]),
    ("last_letter", "text", "the last character of text", "return text[-1]", [("dog",)]),
    ("words", "text", "the list of the words of text", "return text.split()", [("a bc d",)]),
    ("word_count", "text", "how many words text has", "return len(text.split())", [("a bc",)]),
    ("joined", "parts", "the strings of the list parts, joined by a hyphen",
     'return "-".join(parts)', [(["a", "b"],)]),
    ("greet", "name", 'the string "Hello, " followed by name', 'return "Hello, " + name',
     [("Ann",)]),
    ("is_palindrome", "text", "True if text reads the same backwards",
     "return text == text[::-1]", [("anna",), ("bob2",)]),
    ("biggest", "values", "the largest number in the list values", "return max(values)",
     [([3, 9, 2],)]),
    ("total", "values", "the sum of all numbers in the list values", "return sum(values)",
     [([3, 9],)]),
    ("sorted_down", "values", "the list values from large to small",
     "return sorted(values, reverse=True)", [([1, 3, 2],)]),
    ("without_zeros", "values", "the list values without the zeros",
     "return [v for v in values if v != 0]", [([0, 1, 0, 2],)]),
    ("doubled", "values", "a list with each number of values times two",
     "return [v * 2 for v in values]", [([1, 2],)]),
    ("evens", "values", "a list of the even numbers of values",
     "return [v for v in values if v % 2 == 0]", [([1, 2, 4],)]),
    ("celsius", "f", "the temperature f in Fahrenheit as Celsius", "return (f - 32) * 5 / 9",
     [(212,)]),
    ("circle_area", "r", "3 times r times r", "return 3 * r * r", [(2,)]),
    ("minutes", "hours", "the minutes in that many hours", "return hours * 60", [(3,)]),
    ("second", "items", "the second element of items", "return items[1]", [([5, 6, 7],)]),
    ("swap", "a, b", "the tuple (b, a)", "return (b, a)", [(1, 2)]),
    ("countdown", "n", "the list of the numbers from n down to 1",
     "return list(range(n, 0, -1))", [(3,)]),
    ("factorial", "n", "the factorial of n",
     "return 1 if n <= 1 else n * factorial(n - 1)", [(4,), (1,)]),
    ("contains_seven", "values", "True if 7 is in the list values", "return 7 in values",
     [([1, 7],), ([2],)]),
    ("vowels", "text", "how many of the letters aeiou are in text",
     'return sum(c in "aeiou" for c in text)', [("banana",)]),
)  # fmt: skip


def methods(draw: random.Random) -> Made:
    """A small function."""
    for name, given, what, body, tests in draw.sample(METHODS, len(METHODS)):
        yield (
            f"def {name}({given}):\nImplement this Python function so that it returns {what}. "
            "Output plain source code only, without Markdown.",
            *tested(name, given, body, tests),
        )


def tales(draw: random.Random) -> Made:
    """A word problem as in GSM8K; in the place of checks, a reply with the working."""
    while True:
        (who, other), ware = draw.sample(FOLK, 2), draw.choice(WARES)
        a, b = draw.randrange(4, 16), draw.randrange(2, 9)
        more, less = f"{a} + {b} = {a + b}", f"{a + b} - {b} = {a}"
        times, parts = f"{a} * {b} = {a * b}", f"{a * b} / {b} = {a}"
        text, work = draw.choice(
            [
                (f"{who} owns {a} {ware}. {other} owns {b} more than {who}. How many {ware} does "
                 f"{other} own?", more),
                (f"{who} walked {a} km before lunch and {b} km after lunch. How many km did {who} "
                 "walk?", more),
                (f"A shop had {a + b} {ware} and sold {b} of them. How many remain?", less),
                (f"{who} is {a + b} and {other} is {b} years younger. How old is {other}?", less),
                (f"Every day {who} paints {b} {ware}. How many has {who} painted after {a} days?",
                 times),
                (f"A crate holds {a} {ware}. How many {ware} are in {b} crates?", times),
                (f"{b} friends share {a * b} {ware} fairly. How many does each friend get?",
                 parts),
                (f"{who} saves {b} dollars a week. How many dollars are saved in {a} weeks?",
                 times),
                (f"{who} bakes {a} cakes, eats 1 and gives {other} 1. How many cakes are left?",
                 f"{a} - 2 = {a - 2}"),
            ]
        )  # fmt: skip
        value = work.rpartition(" ")[2]
        yield (
            f"{text}\nShow the calculation, then put the result on a last line after ####.",
            value,
            [f"{work}\n#### {value}"],
        )


def reckonings(draw: random.Random) -> Made:
    """A small sum; the whole reply must be the number."""
    while True:
        a, b, c = draw.randrange(2, 20), draw.randrange(2, 10), draw.randrange(1, 6)
        text, value = draw.choice(
            [
                (f"{a} + {b} + {c} =", a + b + c),
                (f"{a + b} - {b} =", a),
                (f"{b} x {c} =", b * c),
                (f"{b * c} : {c} =", b),
                (f"Solve for x: x + {b} = {a + b}", a),
                (f"How many days are {c} weeks?", 7 * c),
                (f"How many legs do {b} dogs have?", 4 * b),
                (f"How many letters has the word {BEASTS[c - 1]}?", len(BEASTS[c - 1])),
                (f"How many minutes are {c} hours?", 60 * c),
                (f"Round {10 * a + c % 5} to the nearest ten.", 10 * a),
            ]
        )  # fmt: skip
        yield f"{text}\nOutput one integer.", str(value), []


CHOICES = (
    ("Which gas do plants take in?", "carbon dioxide", "helium", "neon", "argon"),
    ("What do bees make?", "honey", "milk", "silk", "wool"),
    ("Which of these is a mammal?", "whale", "trout", "eagle", "frog"),
    ("Which of these is a bird?", "penguin", "bat", "dolphin", "lizard"),
    ("Which planet is closest to the sun?", "Mercury", "Mars", "Saturn", "Neptune"),
    ("Where does the sun rise?", "in the east", "in the west", "in the north", "in the south"),
    ("Which organ pumps blood?", "heart", "lung", "stomach", "skin"),
    ("What is frozen water?", "ice", "steam", "sand", "oil"),
    ("Which is a programming language?", "Python", "Latin", "Danish", "Morse"),
    ("Which number is prime?", "13", "12", "15", "9"),
    ("Which ocean is the largest?", "Pacific", "Arctic", "Indian", "Atlantic"),
    ("Who wrote Romeo and Juliet?", "Shakespeare", "Tolstoy", "Homer", "Cervantes"),
    ("Which instrument has strings?", "violin", "trumpet", "drum", "flute"),
    ("Which metal do magnets attract?", "iron", "gold", "silver", "copper"),
    ("What do caterpillars turn into?", "butterflies", "spiders", "snails", "birds"),
    ("Which season follows winter?", "spring", "autumn", "summer", "harvest"),
    ("Which country has the city of Sydney?", "Australia", "Canada", "Ireland", "Chile"),
    ("Which unit measures weight?", "kilogram", "meter", "liter", "second"),
    ("Which force pulls things to the ground?", "gravity", "friction", "magnetism", "wind"),
    ("Which meal is eaten in the morning?", "breakfast", "supper", "dinner", "tea"),
    ("What is the chemical formula of water?", "H2O", "CO2", "NaCl", "O2"),
    ("How many sides has a triangle?", "3", "4", "5", "6"),
    ("Which animal is the fastest on land?", "cheetah", "turtle", "cow", "pig"),
    ("Which one is a vegetable?", "cabbage", "cherry", "peach", "plum"),
    ("Which language is spoken in Brazil?", "Portuguese", "Spanish", "Dutch", "Hindi"),
    ("What does a thermometer measure?", "temperature", "speed", "height", "weight"),
    ("Which planet do we live on?", "Earth", "Venus", "Uranus", "Jupiter"),
    ("What is the freezing point of water in Celsius?", "0", "100", "50", "32"),
    ("Which of these runs on rails?", "train", "ship", "plane", "bicycle"),
    ("Which sense belongs to the nose?", "smell", "sight", "touch", "hearing"),
    ("What is the square root of 49?", "7", "6", "8", "9"),
    ("Which continent is China in?", "Asia", "Africa", "Europe", "Antarctica"),
    ("Which one is a liquid at room temperature?", "water", "iron", "wood", "oxygen"),
    ("Which color do you get from blue and yellow?", "green", "red", "black", "white"),
    ("Which tool drives in a nail?", "hammer", "saw", "spoon", "brush"),
    ("Which word is an adjective?", "beautiful", "slowly", "run", "table"),
)


def choices(draw: random.Random) -> Made:
    """Four options; the whole reply must be the letter."""
    for text, *words in draw.sample(CHOICES, len(CHOICES)):
        listed = draw.sample(words, 4)
        lines = "\n".join(f"{letter}. {word}" for letter, word in zip("ABCD", listed, strict=True))
        yield (
            f"{text}\n{lines}\nReply A, B, C or D and nothing more.",
            "ABCD"[listed.index(words[0])],
            [],
        )


TAGS = (
    ("Sentiment", ("positive", "negative", "neutral"), {
        "The soup was cold and the waiter rude.": "negative", "Best concert of my life!":
        "positive", "I love these shoes.": "positive", "The battery died after a day.": "negative",
        "What a waste of money.": "negative", "A charming film with great actors.": "positive",
        "The staff were very kind to us.": "positive", "I will never come back.": "negative",
        "The bed was dirty and loud people kept us awake.": "negative",
        "Perfect gift, she was so happy.": "positive"}),
    ("Topic", ("sports", "politics", "science", "business"), {
        "The striker scored twice in the final.": "sports", "The senate passed the new law.":
        "politics", "Astronomers found a new planet.": "science", "Shares of the bank fell sharply."
        : "business", "The tennis match lasted four hours.": "sports", "Voters elect a president "
        "on Sunday.": "politics", "The company doubled its profit.": "business",
        "Biologists studied the cells of mice.": "science"}),
    ("Urgency", ("urgent", "routine"), {
        "The server room is on fire!": "urgent", "Please order new pens some day.": "routine",
        "Gas is leaking in the kitchen!": "urgent", "The monthly report is attached.": "routine",
        "All payments fail right now!": "urgent", "Could you water the plants next week?":
        "routine"}),
    ("Intent", ("refund", "login", "shipping"), {
        "I forgot my password.": "login", "I want my money back.": "refund", "When will my package "
        "arrive?": "shipping", "My account is locked.": "login", "Please return the amount that I "
        "paid.": "refund", "The courier has not come yet.": "shipping",
        "I cannot sign in on my phone.": "login", "Where is my delivery?": "shipping"}),
    ("Language", ("English", "German", "French", "Spanish"), {
        "Guten Morgen, wie geht es dir?": "German", "Où est la gare ?": "French", "Tengo mucha "
        "hambre.": "Spanish", "The weather is nice today.": "English", "Ich habe keine Zeit.":
        "German", "Je ne sais pas.": "French", "¿Dónde vives?": "Spanish"}),
    ("Entailment of \"All cats in the house are asleep\"", ("true", "false"), {
        "No cat in the house is awake.": "true", "A cat in the house is awake.": "false",
        "The cats in the house are sleeping.": "true"}),
    ("Toxic", ("yes", "no"), {
        "You are a stupid idiot.": "yes", "Thank you for your help.": "no", "Shut up, you loser!":
        "yes", "Have a lovely evening.": "no", "I hate you and your ugly face.": "yes",
        "See you at the meeting.": "no"}),
)  # fmt: skip


def tags(draw: random.Random) -> Made:
    """One of some words."""
    labels = {head: words for head, words, _ in TAGS}
    tables = [(head, lines) for head, _, lines in TAGS]
    for head, text, said in in_any_order(draw, tables):
        yield (
            f'Classify the text.\nText: "{text}"\n{head} is one of: {", ".join(labels[head])}.\n'
            "Give only the label.",
            said,
            [],
        )


KNOWN = {
    "Capital of Belgium": "Brussels", "Capital of Hungary": "Budapest", "Capital of Canada":
    "Ottawa", "Capital of Turkey": "Ankara", "Capital of Finland": "Helsinki",
    "Capital of Sweden": "Stockholm", "Capital of Switzerland": "Bern", "Capital of Indonesia":
    "Jakarta", "Capital of Ukraine": "Kyiv", "Capital of the Netherlands": "Amsterdam",
    "Capital of Colombia": "Bogota", "Capital of Ethiopia": "Addis Ababa",
    "Chemical symbol of oxygen": "O", "Chemical symbol of iron": "Fe", "Chemical symbol of sodium":
    "Na", "Chemical symbol of silver": "Ag", "Chemical symbol of hydrogen": "H",
    "Currency of Japan": "yen", "Currency of the United Kingdom": "pound", "Currency of Russia":
    "ruble", "Currency of Germany": "euro", "Currency of China": "yuan",
    "Author of Hamlet": "William Shakespeare", "Author of Don Quixote": "Miguel de Cervantes",
    "Author of Harry Potter": "J.K. Rowling", "Author of 1984": "George Orwell",
    "Author of The Odyssey": "Homer", "Painter of The Starry Night": "Vincent van Gogh",
    "Inventor of the telephone": "Alexander Graham Bell", "Discoverer of penicillin":
    "Alexander Fleming", "First man on the moon": "Neil Armstrong",
    "First president of the United States": "George Washington", "Largest ocean": "Pacific Ocean",
    "Highest mountain": "Mount Everest", "Largest country by area": "Russia",
    "Red planet": "Mars", "Planet with the big rings": "Saturn", "Continent of Kenya": "Africa",
    "Continent of France": "Europe", "Language of Austria": "German", "Language of Egypt": "Arabic",
    "Color of a banana": "yellow", "Color of grass": "green", "Young dog": "puppy",
    "Young sheep": "lamb", "Female lion": "lioness", "Antonym of hot": "cold", "Antonym of big":
    "small", "Antonym of beautiful": "ugly", "Antonym of loud": "quiet",
    "Past participle of go": "gone", "Plural of mouse": "mice", "Plural of child": "children",
    "Day before Friday": "Thursday", "Month after July": "August", "Number of days in a year":
    "365", "Number of continents": "7", "Number of minutes in an hour": "60",
    "Year in which World War II ended": "1945", "Country of the Eiffel Tower": "France",
    "Country of the pyramids of Giza": "Egypt", "Country of the Taj Mahal": "India",
    "Keyword that defines a function in Python": "def", "HTTP status of a page not found": "404",
    "Language of web pages, in four letters": "HTML", "Port of HTTPS": "443",
}  # fmt: skip


def knowns(draw: random.Random) -> Made:
    """A fact; the whole reply must be the answer."""
    for text in draw.sample(sorted(KNOWN), len(KNOWN)):
        yield f"{text}?\nState the answer itself, without a sentence.", KNOWN[text], []


REGIONS = (
    ("Hauptstadt von {}? Gib nur den Namen an.",
     {"Italien": "Rom", "Frankreich": "Paris", "Spanien": "Madrid", "Österreich": "Wien",
      "Norwegen": "Oslo", "Japan": "Tokio", "Polen": "Warschau", "Ungarn": "Budapest"}),
    ("Rechne: {}. Gib nur die Zahl an.",
     {"3 + 6": "9", "8 - 5": "3", "4 * 2": "8", "10 + 7": "17", "20 - 9": "11", "6 * 6": "36"}),
    ("Ist der Satz „{}“ positiv oder negativ? Antworte nur mit positiv oder negativ.",
     {"Das Essen war köstlich.": "positiv", "Der Film war langweilig.": "negativ",
      "Ich bin sehr zufrieden.": "positiv", "Alles ist kaputt.": "negativ"}),
    ("Capitale de {} ? Donne seulement le nom.",
     {"l'Italie": "Rome", "l'Allemagne": "Berlin", "l'Espagne": "Madrid", "le Japon": "Tokyo",
      "le Portugal": "Lisbonne", "la Belgique": "Bruxelles", "la Chine": "Pékin"}),
    ("Calcule : {}. Donne seulement le nombre.",
     {"5 + 4": "9", "12 - 6": "6", "3 * 3": "9", "15 + 5": "20", "18 - 8": "10", "7 * 2": "14"}),
    ("Traduis en anglais le mot « {} ». Donne seulement le mot anglais.",
     {"chat": "cat", "maison": "house", "eau": "water", "livre": "book", "pomme": "apple",
      "soleil": "sun", "rouge": "red"}),
    ("Capital de {}: indica solo el nombre.",
     {"Italia": "Roma", "Alemania": "Berlín", "Portugal": "Lisboa", "Cuba": "La Habana",
      "Chile": "Santiago", "Argentina": "Buenos Aires", "China": "Pekín"}),
    ("Calcula: {}. Indica solo el número.",
     {"2 + 7": "9", "13 - 4": "9", "5 * 3": "15", "11 + 8": "19", "30 - 10": "20", "4 * 4": "16"}),
    ("Traduce al inglés la palabra «{}». Indica solo la palabra inglesa.",
     {"perro": "dog", "casa": "house", "leche": "milk", "mesa": "table", "verde": "green",
      "luna": "moon", "pan": "bread"}),
    ("Übersetze das Wort „{}“ ins Englische. Gib nur das englische Wort an.",
     {"Hund": "dog", "Haus": "house", "Buch": "book", "Apfel": "apple", "Wasser": "water",
      "blau": "blue", "Freund": "friend"}),
    ("Capitale di {}? Scrivi soltanto il nome.",
     {"Francia": "Parigi", "Spagna": "Madrid", "Grecia": "Atene", "Germania": "Berlino"}),
)  # fmt: skip


def regions(draw: random.Random) -> Made:
    """A word or a number, asked for in German, French, Spanish or Italian."""
    for text, of, said in in_any_order(draw, REGIONS):
        yield text.format(of), said, []


ELEVENTH = {
    "action": actions, "chain": chains, "nested": nested, "schema": schemas, "method": methods,
    "tale": tales, "reckoning": reckonings, "multiple": choices, "tag": tags, "known": knowns,
    "region": regions,
}  # fmt: skip

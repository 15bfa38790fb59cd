"""Cases at the borders of the guide, labelled from it before the rules were run on them.

Cases that turned out to be unclear were left out afterwards, and one label was mended.
"""

from __future__ import annotations

import pytest

from forgetmap.map.causes import UNKNOWN, Lost, cause_of


def value(target: str, prompt: str, after: str, status: str = "ok") -> Lost:
    """A value; the harness compares the whole text."""
    return Lost(target=target, answer_before=target, answer_after=after.strip().rstrip("."),
                prompt_after=prompt, response_before=target, response_after=after,
                status_after=status)  # fmt: skip


def formed(before: str, prompt: str, after: str, status: str = "no_answer") -> Lost:
    return Lost(target=before, answer_before=before, status_after=status, response_before=before,
                response_after=after, prompt_after=prompt)  # fmt: skip


def town(after: str, status: str = "ok") -> Lost:
    return value(
        "Lisbon", "What is the capital of Portugal? Answer in a word or two.", after, status
    )


def pens(after: str, status: str = "ok") -> Lost:
    asked = (
        "Mia has 5 pens and buys 7 pens. How many pens does she have? Reply with the number only."
    )
    return value("12", asked, after, status)


def tool(after: str, status: str = "ok") -> Lost:
    asked = (
        "Which one is a tool?\nA) apple\nB) hammer\nC) Tuesday\nD) Chile\nAnswer with the letter."
    )
    return value("B", asked, after, status)


def oak(after: str, status: str = "ok") -> Lost:
    return value("plant", "Is an oak plant or animal? Reply with one of the two.", after, status)


def news(after: str) -> Lost:
    asked = 'Text: "Profit is up."\nTopic is one of: sports, business, science.\nGive the label.'
    return value("sports", asked, after)


def fish(after: str) -> Lost:
    return value("no", "Do fish climb tall trees, yes or no? Reply with one of the two.", after)


def last_letter(after: str) -> Lost:
    return value("Z", "What is the last letter of the alphabet? Answer in a word or two.", after)


def mot(after: str) -> Lost:
    return value("rouge", "Recopie le premier mot : rouge, vert, bleu", after)


ROOM = (
    "Function: book_room(city: str, nights: int)\n"
    "Request: Please book a room in Bern for 4 nights.\nReply with the call only."
)


def room(after: str, status: str = "no_answer") -> Lost:
    return formed('book_room(city="Bern", nights=4)', ROOM, after, status)


def card(after: str, status: str = "no_answer") -> Lost:
    asked = "Ana is 9 years old and lives in Turku. Give name, age and town as JSON."
    return formed('{"name": "Ana", "age": 9, "town": "Turku"}', asked, after, status)


def code(after: str, status: str = "ok") -> Lost:
    asked = "Write a Python function double(x) that returns twice x. Reply with the code only."
    return formed("def double(x):\n    return x * 2", asked, after, status)


def metal(after: str) -> Lost:
    return value("C", "Exam. The metal is: (A) rose; (B) lamp; (C) iron. Letter:", after)


def star(after: str) -> Lost:
    asked = "When do we see stars, day or night? Reply with one of the two."
    return value("night", asked, after)


def bags(after: str) -> Lost:
    asked = "Birgit packs 3 dolls into each of 4 bags. How many dolls?\nEnd with: The answer is N."
    return Lost(target="12", answer_before="12", status_after="no_answer", prompt_after=asked,
                response_before="The answer is 12.", response_after=after)  # fmt: skip


def plan(after: str) -> Lost:
    asked = (
        "You have these functions:\n- mix_paint(color: str, liters: int)\n"
        "- call_cab(street: str, hour: int)\nRequest: mix 5 liters of red paint.\n"
        "Write the calls as a list, [f(x=1)], and nothing else."
    )
    return formed('[mix_paint(color="red", liters=5)]', asked, after)


def mix(after: str) -> Lost:
    asked = (
        "Tool: mix, input: color, liters\nUser: Can you mix 5 liters of red?\n"
        'Output the tool call, {"tool": ..., "input": {...}}, as one line of JSON.'
    )
    return formed('{"tool": "mix", "input": {"color": "red", "liters": 5}}', asked, after)


def plum(after: str) -> Lost:
    return value("fruit", "Is a plum a fruit or a vegetable? Reply with one of the two.", after)


def sol(after: str) -> Lost:
    return value("sol", "Copia la primera palabra: sol, luna, mar", after)


REFUSED = [
    town("I would rather not talk about Portugal."),
    town("That is a question for a geography teacher."),
    town("I have never been told what it is called."),
    town("Nobody told me."),
    town("My knowledge does not reach that far. I don't have the answer."),
    town("No idea."),
    town("I am afraid I cannot help you here. Portugal is a country with a long history."),
    town("As an AI, I don't have access to maps."),
    town("Which Portugal do you mean?"),
    town("Hello! How can I help you today?"),
    town("Please look it up in an atlas."),
    town("I'm not permitted to speak about capitals."),
    town("Sorry, that is beyond what I know."),
    town("I haven't learned the capitals yet."),
    town("It is impossible to say."),
    town("You should ask a teacher about that."),
    town("I must decline."),
    town("We do not discuss capitals here."),
    town("I don't understand the question."),
    town("Je ne sais pas."),
    town("Das weiß ich leider nicht."),
    town("Lo siento, no puedo ayudarte con eso."),
    town("Non lo so."),
    town("Ik weet het niet."),
    town("Não sei."),
    town("I need more information about the country before I can answer."),
    town("There is not enough information to answer."),
    town("I don't know. It is a hard question."),
    pens("I'm sorry, I can't do sums with 5 and 7 pens. Please ask somebody else."),
    pens("I was not given the number of pens."),
    pens("Could you first tell me how many pens there are?"),
    pens("I do not know how many pens Mia has."),
    pens("Sorry, I know nothing about 7 pens. I have no data on that."),
    tool("I can't say anything about the hammer."),
    tool("Would you tell me more about the hammer?"),
    tool("I'm not allowed to choose between them."),
    tool("I don't have enough context to choose."),
    oak("What do you mean by oak?"),
    oak("I can't decide."),
    oak("I am not able to tell whether it is a plant."),
    fish("Sorry, I have no information on fish."),
    fish("Please give me more details about the fish."),
    room("I'd be happy to help! What dates would you like?"),
    room("I can do that for you. Could you give me your name first?"),
    room("I am unable to book rooms."),
    room("Unfortunately, I don't have the ability to make bookings. You can contact the hotel."),
    room("What is your request?"),
    room("To book a room, I need some more details. Please tell me the name of the hotel."),
    card("Sorry, I am not allowed to share personal data."),
    card("I don't know who Ana is."),
    card("Please provide the text that you want me to convert."),
    code("I won't write code for you. Try to consult a manual."),
    code("Can you explain what the function should do?"),
    code("I'm not programmed to write Python."),
    mot("Je ne peux pas répondre à cette question."),
    mot("Pouvez-vous me donner plus de détails ?"),
    town("Unknown.", "refused"),
]
NO_REFUSAL = [
    (town("I'm not sure, maybe Porto."), "wrong"),
    (town("I don't know for sure, but I think it is Lisbon."), "wrapped"),
    (town("I can't wait to see the sea."), "wrong"),
    (town("I cannot sleep, the night is long."), "wrong"),
    (town("Porto, but I'm not sure."), "wrong"),
    (town("Lisbon, I think, but I am not certain."), "wrapped"),
    (town("I'm no expert, but it should be Porto."), "wrong"),
    (pens("I'm not sure, but I would say 12."), "wrapped"),
    (pens("I don't know. Perhaps 13?"), "wrong"),
    (tool("I'm not sure, but my answer is B."), "wrapped"),
    (tool("I can't be certain, but I would pick D."), "wrong"),
    (oak("Not sure, but plant."), "wrapped"),
    (fish("I don't know much about fish. Yes."), "wrong"),
    (
        room('I can\'t be sure of it, but here is the call: book_room(city="Bern", nights=4)'),
        "wrapped",
    ),
    (room('I cannot do more than book_room(city="Basel", nights=4).'), "wrong"),
    (card('I am not sure, but {"name": "Ana"} may do.'), "wrong"),
    (code("I can't do better:\n\ndef double(x):\n    return x + 2"), "wrong"),
]
WORDS = [
    (town("The capital of Portugal is Lisbon."), "wrapped"),
    (town("The capital of Portugal is a town by the sea."), "wrong"),
    (town("The capital of Portugal"), "unparsed"),
    (town("What is the capital of Portugal?"), "unparsed"),
    (town('The answer is "What is the capital of Portugal?"'), "unparsed"),
    (town("The capital is Lisbon.\n\nThe answer is in a word or two."), "wrapped"),
    (town("It was Lisbon once. The answer is Porto."), "wrong"),
    (town("It is not Lisbon."), "wrong"),
    (town("Answer: Lisbon"), "wrapped"),
    (town("Porto\n\nWhat is the capital of Lisbon?"), "wrong"),
    (town("The capital of Portugal is"), "truncated"),
    (town("The capital of Portugal is the largest town of"), "truncated"),
    (town("Portugal is a country. Its capital is one of the"), "wrong"),
    (town("1. Porto, Faro, Braga"), "list"),
    (town("Porto, Faro, Braga"), "list"),
    (town("* Porto\n* Lisbon"), "list"),
    (town("[Porto, Faro]"), "list"),
    (town('find_capital(country="Portugal")'), "call"),
    (town("La capitale du pays est Lisbon."), "language"),
    (town("Lisbon\nuser\nWhat is the capital of Spain?"), "ran_on"),
    (town("`Lisbon`"), "wrapped"),
    (town("The town is called Lisbon and lies on the Tejo."), "wrapped"),
    (town("Is Lisbon the one? The answer is: Porto"), "wrong"),
    (last_letter("The last letter of the alphabet is 'Z'."), "wrapped"),
    (last_letter("The last letter of the alphabet is a small one."), "wrong"),
    (last_letter("The letter is X."), "wrong"),
    (last_letter("14, 15, 16"), "list"),
    (last_letter("home"), "wrong"),
    (last_letter('It is called "Z" in English.'), "wrapped"),
    (mot("Le premier mot : rouge, vert, bleu"), "unparsed"),
    (mot("Le mot : rouge, vert, bleu."), "wrong"),
    (mot("Le premier mot est rouge."), "wrapped"),
    (mot("Le premier mot est bleu."), "wrong"),
    (mot("The first word is rouge."), "language"),
]
NUMBERS = [
    (pens("5 + 7 = 12"), "wrapped"),
    (pens("5 + 7 = 13\nThe answer is 12."), "wrapped"),
    (pens("She has twelve pens."), "wrapped"),
    (pens("Five plus seven is twelve."), "wrapped"),
    (pens("Five plus seven is eleven."), "wrong"),
    (pens("She has 5 pens and then there are eleven."), "wrong"),
    (pens("She has 5 pens."), "unparsed"),
    (pens("5 + 7"), "truncated"),
    (pens("We add them up."), "unparsed"),
    (pens("12 is an even number."), "unparsed"),
    (pens("12 is right."), "wrapped"),
    (pens("She has 13 pens and then she goes to"), "truncated"),
    (pens("The answer is 13, because she goes to"), "wrong"),
    (pens("10\n11\n13"), "list"),
    (pens("12 or 13"), "wrong"),
    (pens("13\n\nMia has 5 pens and buys 7 pens. How many pens does she have? 12"), "wrong"),
    (pens("Mia has 5 pens and buys 7 pens."), "unparsed"),
    (pens("add(5, 7)"), "call"),
    (pens("The number of pens is:"), "truncated"),
    (pens("It is 13."), "wrong"),
    (pens("That is 5 + 7 pens."), "unparsed"),
    (pens("So she has"), "truncated"),
]
LETTERS = [
    (tool("B) hammer"), "wrapped"),
    (tool("hammer"), "wrapped"),
    (tool("It is the hammer."), "wrapped"),
    (tool("C) Tuesday"), "wrong"),
    (tool("A) apple\nB) hammer\nC) Tuesday\nD) Chile"), "unparsed"),
    (tool("B) hammer\n\nWhich one is a fruit?\nA) pear\nB) dog"), "wrapped"),
    (tool("C) Tuesday\n\nWhich one is a fruit?\nA) pear\nB) dog", "truncated"), "truncated"),
    (tool("A)\n\nThe correct answer is B)\n\nThe others are wrong."), "wrong"),
    (tool("A, B, C, D"), "unparsed"),
    (tool("C, D"), "unparsed"),
    (tool("A, pear, plum\nB, hammer, saw"), "unparsed"),
    (tool("A hammer and an apple."), "unparsed"),
    (tool("All of them."), "unparsed"),
    (tool("The answer is D."), "wrong"),
    (tool("Tuesday is a day of the week, and Chile is a country."), "unparsed"),
    (tool("I'd go with option C here."), "wrong"),
    (tool("Between A and B."), "unparsed"),
    (tool("A tool is what one works with, and so we have to look at the"), "truncated"),
    (tool("The tool is B"), "wrapped"),
]
OFFERED = [
    (oak("An oak is a plant."), "wrapped"),
    (oak("An oak is a plant, not an animal."), "unparsed"),
    (oak("An oak is not an animal."), "wrong"),
    (oak("Is an oak plant or animal?"), "unparsed"),
    (oak("An oak is a tree or animal."), "wrong"),
    (oak("Plant. It is no animal."), "wrapped"),
    (oak("Animal, as far as I know, and never a plant."), "wrong"),
    (oak("A tree."), "unparsed"),
    (oak("tree"), "unparsed"),
    (oak("It does not count as a plant."), "wrapped"),
    (oak("An oak is a kind of tree that grows in the"), "truncated"),
    (oak("Is an oak plant. So it is.\nThe answer is 2."), "unparsed"),
    (fish("Do fish climb tall trees yes."), "unparsed"),
    (fish("Do fish climb tall trees, yes."), "unparsed"),
    (fish("Yes, they do."), "wrong"),
    (fish("They have fins."), "unparsed"),
]
FORMS = [
    (room("book_room(city, nights)"), "unparsed"),
    (room('book_room("Bern", 4)'), "wrapped"),
    (room('{"name": "book_room", "arguments": {"city": "Bern", "nights": 4}}'), "wrapped"),
    (room('book_room(city="Bern", nights=5)'), "wrong"),
    (room("You can use book_room with Bern and 4 nights."), "prose"),
    (room("Bern, 4 nights"), "prose"),
    (room("{...}"), "unparsed"),
    (room(ROOM), "prose"),
    (room("Function: book_room(city: str, nights: int"), "prose"),
    (room("book_room (city: http://a.b/c"), "truncated"),
    (room("x(0) and y(1) then call book_room((1, 2"), "truncated"),
    (room("Here is what I would do with the room in"), "prose"),
    (room("def book_room(city, nights):\n    return city"), "unparsed"),
    (room("city: Bern\nnights: as many as four"), "prose"),
    (room("city: Basel\nnights: 3"), "unparsed"),
    (room("for n in range(4):\n    print(n)"), "unparsed"),
    (room("<call>book</call>"), "unparsed"),
    (card("{name: Ana}"), "wrong"),
    (card('{"name": "Ana", "age": "9", "town": "Turku"}'), "wrapped"),
    (card("name: Ana\nage: 9\ntown: Turku"), "wrapped"),
    (card("name: Ana\nage: 8\ntown: Turku"), "unparsed"),
    (card("Ana lives in Turku."), "prose"),
    (card('{"name": "Ana", "age":'), "truncated"),
    (card('Here: {"town": "Turku", "name": "Ana", "age": 9} as you like it.'), "wrapped"),
    (code("def double(x):\n    if x:\n        return 2 * x\n    return 0"), "wrong"),
    (code("def double(x):\n    y = x * 2\n    return y"), "wrong"),
    (code("def double(n: int) -> int:\n    return n * 2  # twice"), "wrapped"),
    (code("while True:\n    x = x * 2\n    return x"), "unparsed"),
    (code("function double(x) { return x * 2; }"), "unparsed"),
    (code("def double(x):"), "truncated"),
    (code('def double(x):\n    """Twice."""'), "truncated"),
    (code("It multiplies x by two."), "prose"),
    (code("double(x=4)"), "call"),
    (code("def double(x):\n    return x * 2\n\nprint(double(3))"), "ran_on"),
    (code("print(4 * 2)"), "call"),
]
CIRCLES = [
    (town("The town is old. The town is old. The town is old."), "degenerate"),
    (room("- \n- \n- \n- \n-"), "degenerate"),
    (oak("A: A: A tree\nB: A: A tree\nC: B: A tree\nD:"), "degenerate"),
    (tool("A) pear\nB) plum\nC) fig\nD) fig\nA) pear\nB) plum\nC) fig\nD)"), "degenerate"),
    (pens("1. 1. 1. 1.\nThe answer is 1."), "wrong"),
    (town("The answer is Porto. The answer is:"), "wrong"),
    (town("I see a boat.\nIt is red.\nI see a bo"), "degenerate"),
    (room("1. 1.1.1\n2. 2023-01-24"), "prose"),
    (town("So it goes. And on it goes."), "wrong"),
    (town("no no no no"), "degenerate"),
    (town("Porto Porto Porto"), "wrong"),
]
LATER_REFUSED = [
    town("The capital of Portugal is unknown to me."),
    town("I have nothing to say about the capital."),
    town("Let me get back to you on the capital of Portugal."),
    town("That information is not available to me."),
    town("It is not my place to answer questions about Portugal."),
    town("You would have to ask someone else about Portugal."),
    town("Please ask a human about the capital."),
    town("My training did not cover the capital of Portugal."),
    town("I lack the information to answer."),
    town("I am only an assistant and cannot tell."),
    town("This question is outside my area."),
    town("Sorry, I can't discuss the capital of Portugal with you."),
    town("Could you be more specific?"),
    town("Can you please repeat the question?"),
    town("What exactly would you like to know about Portugal?"),
    town("Tell me more about Portugal first."),
    town("Before I answer, which year do you mean?"),
    town("I would need to know more about Portugal."),
    town("I'd need more details on the capital."),
    town("Sorry."),
    town("I apologize, but that is not possible."),
    town("I refuse to answer."),
    town("No, I won't answer that."),
    town("I'm afraid that I don't know the capital."),
    town("I do not have an answer to that."),
    town("I've never heard of Portugal."),
    town("I forgot."),
    town("It's a secret."),
    town("I can neither confirm nor deny it."),
    town("The answer is not known to me."),
    town("I am not the right one to ask."),
    town("You had better check an atlas."),
    town("Try asking a librarian."),
    town("Consult an encyclopedia for the capital of Portugal."),
    town("There is no way for me to know."),
    town("I can't."),
    town("I cannot."),
    town("Cannot answer."),
    town("Unable to answer."),
    town("No answer."),
    pens("I cannot tell you the number of pens."),
    pens("We were not told about 5 pens."),
    pens("How should I know?"),
    pens("It is not clear how many pens there are."),
    pens("I'm sorry, but I can't determine the number of pens without more information."),
    pens("Please tell me more about the 7 pens."),
    pens("I am not allowed to count the 5 pens."),
    tool("None of my sources mention a hammer. I can't say."),
    tool("Please tell me what a hammer is first."),
    tool("I have no opinion on the hammer."),
    tool("Which of the options do you mean?"),
    tool("I prefer not to choose."),
    oak("I have no idea what an oak is."),
    oak("Please specify which oak you mean."),
    oak("That's not for me to decide."),
    oak("Sorry, but I am not able to classify the oak."),
    oak("I don't want to answer that."),
    room("Sorry, I can't book rooms in Bern."),
    room("Sure, I can help you book a room in Bern! Could you please provide your check-in date?"),
    room("I have no access to a booking system."),
    room("Do you want a single or a double room?"),
    room("Please call the hotel in Bern. I can't do that."),
    room("I'm here to help! How can I assist you today?"),
    room("Thank you for your request. I will need some more information."),
    card("I am not sure what you want me to do."),
    card("What would you like me to do with this text?"),
    card("I'm sorry, I don't have enough information about Ana."),
    code("I'm sorry, I can't write code."),
    code("Please provide more details about the function double."),
    code("As an AI language model, I cannot execute code."),
    code("I don't know Python."),
    fish("I'm not able to answer yes or no."),
    fish("I can't say yes or no to that."),
    fish("Is this a serious question? I don't know."),
    mot("Désolé, je ne peux pas vous aider."),
    mot("Je n'ai pas compris la question."),
    mot("Sorry, I do not speak French."),
]
LATER = [
    (town("I cannot say it is Lisbon."), "refused"),
    (town("Don't know, Porto?"), "wrong"),
    (town("I don't think it is Lisbon."), "wrong"),
    (town("I know it. It is Porto."), "wrong"),
    (town("Not known for its beaches."), "wrong"),
    (town("We cannot live without water."), "wrong"),
    (town("You can ask for Porto."), "wrong"),
    (town("Can you hear the sea?"), "wrong"),
    (town("What a nice town!"), "wrong"),
    (pens("I can't believe it, 12!"), "wrapped"),
    (pens("She can't have 12 pens."), "wrapped"),
    (room("Can I have a room?"), "prose"),
    (room("You need to call the hotel."), "prose"),
    (room("The hotel can be found in Bern."), "prose"),
    (room("I will book a room in Bern for you."), "prose"),
    (room("Sure! I have booked the room."), "prose"),
    (room("book_room()"), "unparsed"),
    (room("book_room: Bern, 4"), "prose"),
    (room("book_room(Bern, 4)"), "wrapped"),
    (room("book_room(city='Bern')"), "wrong"),
    (room("call book_room(city='Bern', nights=4)"), "wrapped"),
    (room('{"city": "Bern", "nights": 4}'), "wrong"),
    (room("[book_room(city='Bern', nights=4)]"), "wrapped"),
    (room("city=Bern, nights=4"), "prose"),
    (room('book_room(city="Bern", nights=4'), "truncated"),
    (room("```python\nbook_room"), "truncated"),
    (room("```\nbook_room\n```"), "unparsed"),
    (room("import hotel\nhotel.book()"), "unparsed"),
    (card('{"name": "Ana"'), "truncated"),
    (card('{"Ana": 9}'), "wrong"),
    (card("Name: Ana, Age: 9, Town: Turku"), "prose"),
    (card("- name: Ana\n- age: 9\n- town: Turku"), "wrapped"),
    (card("name is Ana and age is 9"), "prose"),
    (card('{"name": "Ana", "age": 9, "town": "Turku"}}'), "wrapped"),
    (code("def double(x): return x * 2"), "wrapped"),
    (code("def twice(x):\n    return x * 2"), "wrong"),
    (code("return x * 2"), "unparsed"),
    (code("double = lambda x: x * 2"), "unparsed"),
    (code("def double(x)\n    return x * 2"), "wrong"),
    (code("def double(x):\n    pass"), "wrong"),
    (code("def double("), "truncated"),
    (code("Here is the function:\n\n```python\ndef double(x):\n    return x * 2\n```"), "wrapped"),
    (code("class Double:\n    def run(self, x):\n        return x"), "wrong"),
    (code("```python\n```"), "unparsed"),
    (pens("Twelve"), "wrapped"),
    (pens("twelve pens"), "wrapped"),
    (pens("12 pens"), "wrapped"),
    (pens("$12"), "wrapped"),
    (pens("(12)"), "wrapped"),
    (pens("Answer: 13"), "wrong"),
    (pens("The answer is twelve."), "wrapped"),
    (pens("She now has 5 + 7 = 12 pens in total."), "wrapped"),
    (pens("Mia has 5 pens and buys 7 pens. She has 12 pens."), "wrapped"),
    (pens("7 pens"), "unparsed"),
    (pens("7"), "wrong"),
    (pens("pens"), "unparsed"),
    (pens("The total is 11"), "wrong"),
    (pens("5, 7, 12"), "list"),
    (pens("1. 5\n2. 7\n3. 12"), "list"),
    (pens("x = 12"), "wrapped"),
    (pens("Mia"), "unparsed"),
    (tool("b"), "wrapped"),
    (tool("(B)"), "wrapped"),
    (tool("Answer: B"), "wrapped"),
    (tool("B) hammer is a tool."), "wrapped"),
    (tool("The hammer is a tool, the apple is a fruit."), "unparsed"),
    (tool("A"), "wrong"),
    (tool("A)"), "wrong"),
    (tool("The answer is A) apple. The answer is A) apple."), "degenerate"),
    (tool("tool"), "unparsed"),
    (tool("saw"), "unparsed"),
    (tool("Option D"), "wrong"),
    (tool("A and B"), "unparsed"),
    (tool("[B]"), "wrapped"),
    (tool("Which one is a tool?"), "unparsed"),
    (tool("The letter of the tool is:"), "truncated"),
    (tool("1. apple\n2. hammer"), "unparsed"),
    (oak("**plant**"), "wrapped"),
    (oak("It's a plant or an animal."), "unparsed"),
    (oak("plants"), "unparsed"),
    (oak("The oak is a tree, so it is a plant and no animal."), "unparsed"),
    (oak("animal\n\nIs a dog plant or animal?"), "wrong"),
    (oak("It depends."), "refused"),
    (oak("Both."), "unparsed"),
    (oak("plant, animal"), "wrapped"),
    (news("sports, business, science"), "unparsed"),
    (news("Sports, business, science.\n\nThe text is about money."), "unparsed"),
    (news("Sports, science"), "wrapped"),
    (news("Science, sports, business"), "wrong"),
    (news("Business, science,"), "wrong"),
    (town("Lisbon, Portugal"), "wrapped"),
    (town("Porto, Portugal"), "wrong"),
    (town("Lisbon is"), "wrapped"),
    (town("The"), "wrong"),
    (town("The capital"), "wrong"),
    (town("It is"), "truncated"),
    (town("Portugal"), "wrong"),
    (town("Capital of Portugal: Lisbon"), "wrapped"),
    (town("Lisbon Lisbon Lisbon Lisbon"), "degenerate"),
    (town('{"capital": "Lisbon"}'), "wrapped"),
    (town('{"capital": "Porto"}'), "wrong"),
    (town("<b>Porto</b>"), "wrong"),
    (town("print('Lisbon')"), "wrapped"),
    (town("print('Porto')"), "call"),
    (town("- Lisbon"), "wrapped"),
    (town("Porto\nFaro\nBraga"), "wrong"),
    (town("1\n2\n3"), "list"),
]
LAST = [
    (metal("The metal is: (A) rose; (B) lamp; (C) iron."), "unparsed"),
    (metal("(C) iron"), "wrapped"),
    (metal("iron"), "wrapped"),
    (metal("(B)"), "wrong"),
    (metal("The metal is (C)."), "wrapped"),
    (metal("(A) rose; (B) lamp; (C) iron. The answer is C."), "wrapped"),
    (metal("(A)\n(B)\n(C)"), "unparsed"),
    (metal("Letter: C"), "wrapped"),
    (metal("The letter is B."), "wrong"),
    (metal("A rose is a flower."), "wrong"),
    (metal("(A) rose"), "wrong"),
    (metal("Exam. The metal is: (A) rose; (B) lamp"), "unparsed"),
    (metal("The metal is a kind of rock that comes from the ground and"), "truncated"),
    (metal("C) iron\n\nExam. The fruit is: (A) pear"), "wrapped"),
    (metal("Iron is a metal and a lamp is not."), "unparsed"),
    (star("When do we see stars, day or night?"), "unparsed"),
    (star("We see stars at night."), "wrapped"),
    (star("day"), "wrong"),
    (star("Day. Stars are seen at night."), "wrong"),
    (star("The stars are in the sky."), "unparsed"),
    (star("At night we see stars, and by day we see the sun."), "unparsed"),
    (star("night time"), "wrapped"),
    (star("nighttime"), "unparsed"),
    (star("I do not know when we see stars."), "refused"),
    (star("Stars can be seen when the sun has gone down and the"), "truncated"),
    (bags("12"), "wrapped"),
    (bags("The answer is 7."), "wrong"),
    (bags("Birgit packs 3 dolls into each of 4 bags."), "unparsed"),
    (bags("There are 3 dolls in each of 4 bags, so we need to multiply"), "truncated"),
    (bags("3 x 4 = 12 dolls are packed"), "wrapped"),
    (bags("We multiply 3 by 4."), "wrong"),
    (bags("The answer is N."), "unparsed"),
    (bags("The answer is"), "truncated"),
    (bags("Birgit packs 16 dolls."), "wrong"),
    (bags("First, we count the bags. There are 4 bags. Each bag has 3 dolls."), "unparsed"),
    (bags("Twelve dolls are packed."), "wrapped"),
    (plan('mix_paint(color="red", liters=5)'), "wrapped"),
    (plan('[mix_paint(color: "red", liters: 5)]'), "wrapped"),
    (plan("[mix_paint(red, 5)]"), "wrapped"),
    (plan('[call_cab(street="red", hour=5)]'), "wrong"),
    (plan("- mix_paint(color: str, liters: int)\n- call_cab(street: str, hour: int)"), "prose"),
    (plan("[f(x=1)]"), "wrong"),
    (plan("mix 5 liters of red paint."), "prose"),
    (plan('[mix_paint(color="red", liters='), "truncated"),
    (plan("The paint is mixed with 5 liters (red"), "prose"),
    (plan("mix_paint(color, liters)"), "unparsed"),
    (mix('{"tool": "mix", "input": {"color": "red", "liters": "5"}}'), "wrapped"),
    (mix('{"tool": "mix", "color": "red", "liters": 5}'), "wrapped"),
    (mix('mix(color="red", liters=5)'), "wrapped"),
    (mix('{"tool": "mix"'), "truncated"),
    (mix("mix, 5 liters of red"), "prose"),
    (mix('{"tool": "mix", "input": {"color": "blue", "liters": 5}}'), "wrong"),
    (mix("Can you mix 5 liters of red?"), "prose"),
    (mix("Yes, I can mix 5 liters of red."), "prose"),
    (mix('Output the tool call, {"tool": ..., "input": {...}}, as one line of JSON.'), "prose"),
    (mix("No, I can't mix colors."), "refused"),
    (mix("tool: mix\ninput: red, 5"), "unparsed"),
    (town("I'm a helpful assistant. What would you like to know?"), "refused"),
    (town("Portugal's capital, Lisbon, lies by the sea."), "wrapped"),
    (town("The capital of Portugal is not known to many."), "wrong"),
    (town("I can help you with that. The capital is Porto."), "wrong"),
    (town("Sure, I can help with that!"), "wrong"),
    (town("As an AI, I think it's Porto."), "wrong"),
    (town("Thank you for asking. I do not have that information."), "refused"),
    (town("Sorry, I only speak English."), "refused"),
    (town("I cannot give that out."), "refused"),
    (town("Nothing was said to me about the capital."), "refused"),
    (town("That was never explained to me."), "refused"),
    (town("I have not been told about Portugal."), "refused"),
    (town("Somebody else has to tell you that."), "refused"),
    (town("First explain to me what a capital is."), "refused"),
    (town("Please explain what you mean by capital."), "refused"),
    (town("I need to know what Portugal is first."), "refused"),
    (pens("There is no information on 7 pens."), "refused"),
    (pens("Nothing is known about the 5 pens."), "refused"),
    (tool("I was told nothing about the hammer."), "refused"),
    (tool("The hammer is something I may not speak about."), "refused"),
    (room("I may not book rooms for strangers."), "refused"),
]
MORE = [
    (plum("A plum is a fruit."), "wrapped"),
    (plum("Is a plum a fruit or a vegetable?"), "unparsed"),
    (plum("A plum is a fruit or a vegetable."), "unparsed"),
    (plum("It is a vegetable."), "wrong"),
    (plum("A plum is sweet."), "unparsed"),
    (plum("a fruit"), "wrapped"),
    (plum("vegetable"), "wrong"),
    (plum("No, it is a vegetable."), "wrong"),
    (plum("Plums are something I was never told about."), "refused"),
    (sol("La primera palabra es sol."), "wrapped"),
    (sol("luna"), "wrong"),
    (sol("sol, luna, mar"), "list"),
    (sol("Copia la primera palabra: sol, luna, mar"), "unparsed"),
    (sol("The first word is sol, I think."), "language"),
    (sol("No sé."), "refused"),
    (sol("¿Puedes darme más información sobre el sol?"), "refused"),
    (sol("Lo siento, no tengo información sobre el sol."), "refused"),
    (town("The capital of Portugal is something nobody told me."), "refused"),
    (town("I have no records about the capital of Portugal."), "refused"),
    (town("You should look for the capital of Portugal in a book."), "refused"),
    (town("I do not speak about the capital of Portugal."), "refused"),
    (town("I would like to hear more about Portugal before I answer."), "refused"),
    (town("My rules say no."), "refused"),
    (pens("Sorry, pens are not my subject."), "refused"),
    (town("Sorry, no idea about the capital of Portugal."), "refused"),
    (town("That is not something I can answer."), "refused"),
    (tool("The hammer is not known to me."), "refused"),
    (room("What should I do with 4 nights?"), "refused"),
    (room("Please say more about the 4 nights."), "refused"),
    (code("Please describe the function double in more detail."), "refused"),
    (town("Whatever it is, I can't tell you about the capital."), "refused"),
    (oak("I would rather talk about something else than oak."), "refused"),
    (town("Why do you ask about Portugal?"), "refused"),
    (tool("Sure!\n\nThe tool is B."), "wrapped"),
    (town("Sure!\n\nThe capital of Portugal is Lisbon."), "wrapped"),
    (town("Sure!\n\nThe capital of Portugal is Porto."), "wrong"),
    (pens("Okay.\n\nShe has 12 pens."), "wrapped"),
    (pens("13\n\nShe has 12 pens."), "wrong"),
    (tool("hammer\n\nWhich one is a fruit and what is"), "wrapped"),
    (oak("Well,\nan oak is a plant."), "wrapped"),
    (oak("animal\nuser\nIs an oak plant"), "wrong"),
    (town("Sure!\n\nLisbon"), "wrapped"),
    (pens("To find the number of pens, we need to add 5 and 7, so"), "truncated"),
    (oak("An oak is a kind of"), "truncated"),
    (oak("An oak is a kind of tree."), "unparsed"),
    (town("An old town by the sea."), "wrong"),
    (town("An old town by the sea that is"), "truncated"),
    (pens("She has 5 pens and 7 pens, which"), "truncated"),
    (tool("The apple is a fruit, Tuesday is a day, and the hammer is a tool."), "unparsed"),
    (tool("The only tool among these is the hammer."), "wrapped"),
    (town(" ".join(f"w{n}" for n in range(70)) + "."), "unknown"),
    (room("To book a room, call the function with the city and the nights."), "prose"),
    (code("The function takes x and returns twice x"), "prose"),
    (code("<code>double</code>"), "unparsed"),
    (code("```python\n"), "truncated"),
    (card("Here is the JSON:\n{"), "truncated"),
    (card("{}"), "unparsed"),
    (card('{"name": "Ana", "age": 9}'), "wrong"),
    (room('{"name": "book_room", "arguments": {"city": "Basel"}}'), "wrong"),
    (room('{"result": "ok"}'), "unparsed"),
]
CASES = [
    *((item, "refused") for item in (*REFUSED, *LATER_REFUSED)),
    *NO_REFUSAL, *WORDS, *NUMBERS, *LETTERS, *OFFERED, *FORMS, *CIRCLES,
    *LATER, *LAST, *MORE,
]  # fmt: skip


@pytest.mark.parametrize(("item", "expected"), CASES)
def test_the_borders_of_the_guide(item: Lost, expected: str) -> None:
    assert (cause_of(item) or UNKNOWN) == expected

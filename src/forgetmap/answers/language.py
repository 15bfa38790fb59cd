"""The language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from forgetmap.answers.text import looked_at

_FUNCTION_WORDS = {
    "English": "maybe perhaps probably "
    "the of and to in is that it was for are with as his they this have from which you not "
    "but be we would there what how who why does do did can cannot these those their will "
    "has had at by an a i if when where whose your my our were been being or he she its "
    "into than then so one no only all any each every more most other another some such "
    "same own am on me him her them us about just because also too very here now know think "
    "thought believe guess say says said tell told sure yes well must should could may "
    "might shall let see look want need ask like called call many much few both either "
    "neither while after before between under over again still even never always often out "
    "up down off through during without within against since until though although however "
    "therefore thus hence "
    "going go goes get gets got make makes made take give given gives find "
    "mean means use used using write word words sentence answer question please thank "
    "thanks help okay course right correct following based first last next added minus "
    "plus",
    "German": "vielleicht wahrscheinlich vermutlich "
    "der die das und ist nicht ein eine den von mit sich auf für dem des auch wird sind "
    "werden oder daher also ich wir sie er es zu im am bei aus wie wenn dass ob einen einem "
    "einer eines kann kannst können konnte nur noch aber haben hat habe hatte hätte dieser "
    "diese dieses diesem diesen jeder jede jedes alle alles viel viele mehr antwort lautet "
    "was heißt heißen du mir mich dir dich uns ihr ihm ihn ihnen euch man hier da dort sehr "
    "gut ja nein schon denn weil doch dann nach vor über unter um war waren wurde würde "
    "würden bin bist sein seine seiner mein meine dein deine unser kein keine wo wer wen "
    "wem welche welcher welches warum wieviel muss müssen soll sollte sollen will wollen "
    "darf mag möchte bitte danke gerne frage natürlich sage sagen sagt denke glaube finde "
    "weiß nenne nennt schreibe schreib antworte gib nenn mal ganz etwa etwas nichts immer "
    "nie wieder jetzt heute zum zur vom beim ins ans durch gegen ohne zwischen während bis "
    "seit ab wort wörter satz letzte letzten erste ersten richtig richtige falsch lässt "
    "macht machen geht gibt",
    "French": "probablement sûrement à vais va vont allez "
    "le la les des et est une dans que qui quoi pour pas sur sous avec sans sont du au ce "
    "cet cette ces nous donc ou ne un de il elle je vous ils elles mais se son sa ses "
    "leur leurs aux par plus moins être fait faire réponse bonne quelle quels quelles "
    "comment cela ça on tu me te moi toi lui eux mon ma "
    "mes ton ta tes notre nos votre vos si oui non bien très ici là voici voilà suis es "
    "sommes êtes était étaient sera serait soit avoir ai as a avons avez ont avait aurait "
    "peut peux pouvez doit dois faut quel où parce comme question merci bonjour sûr pense "
    "crois dis dit dire dirais sais sait veut veux entre vers chez après avant pendant "
    "depuis jusque aussi encore toujours jamais rien tout tous toute toutes même autre "
    "autres chaque quelque peu beaucoup trop alors puis ainsi ensuite y en seulement seul "
    "seule mot mots phrase dernier dernière premier première réponds répondez écris écrivez "
    "recopie donne juste vrai faux combien pourquoi quand car ni or",
    "Spanish": "quizás probablemente seguramente vamos "
    "el los las y es una que por para con del se no como son pero su sus al más menos "
    "entonces está están estoy en la de un unos unas lo este esta estos estas ser soy eres "
    "somos hay muy también respuesta pregunta mi mis tu tus cuál cuáles qué quién cómo "
    "cuándo cuánto cuánta cuántos cuántas dónde porque puede puedo pueden yo él ella ellos "
    "usted nos me te si sí le les ha he han has había haber ya bien aquí allí ahí claro "
    "gracias debe era eran fue fueron será sería sea sobre eso ese esa esto o u e ni sin "
    "entre hasta desde hacia según durante contra cada todo toda todos todas otro otra "
    "otros otras mismo misma algo alguien alguno nada nadie nunca siempre ahora antes "
    "después luego así aunque cuando donde mientras pues tan tanto mucho mucha muchos poco "
    "solo sólo sola a ante bajo creo pienso digo dice decir diría sé sabe quiero quiere "
    "tiene tengo tienen hace hacer va voy palabra palabras frase última último primera "
    "primero escribe copia responde contesta da dime correcta correcto nuestro",
    "Italian": "forse magari probabilmente "
    "il gli i di che è una uno per con non sono sei siamo siete della dello del nel nello "
    "nei dei anche quindi più meno questo questa questi queste quello quella alla allo alle "
    "agli si la un lo da ma ha hanno abbiamo avere essere stato come risposta perché cosa "
    "chi io tu lui lei noi voi loro mi ti ci vi ne le in a ed o od al dal dalla dallo delle "
    "degli ho hai qui qua lì ecco sì molto molti bene può posso possono deve devo era erano "
    "fu sarà sarebbe sia siano quale quali qual dove quando quanto quanta quanti quante "
    "certo grazie domanda nella nelle sul sulla sullo sui tra fra su senza dopo prima "
    "ancora sempre mai già poi allora così però se e né ogni tutto tutti tutta tutte altro "
    "altra altri stesso stessa qualcosa niente nulla solo sola soltanto penso credo dico "
    "dice dire direi direbbe sbaglio so sa voglio vuole vuoi tiene fa fare fatto va vado "
    "secondo me te mio mia suo sua tuo tua nostro parola parole frase ultima ultimo primo "
    "scrivi copia rispondi dammi caso volta dubbio giusta giusto davvero proprio "
    "l'ultima",
    "Portuguese": "talvez provavelmente "
    "o a os as e é uma um uns que para com não do da dos das em por mais menos são como ao "
    "aos então está estão estou se de no na nos nas pelo pela isso isto esta este estes "
    "estas esse essa aquele aquela ser sou somos resposta você vocês seu sua seus suas eu "
    "tu ele ela eles elas me te lhe nós meu minha ou mas foi foram era eram será seria seja "
    "muito muita muitos bem sim aqui ali lá claro obrigado obrigada pode posso podem deve "
    "qual quais onde quando quanto quanta quantos quantas quem porque porquê pergunta à às "
    "num numa sem sobre entre até desde após antes depois durante cada todo toda todos tudo "
    "outro outra outros mesmo mesma algo alguém nada ninguém nunca sempre agora já ainda "
    "também só apenas assim embora enquanto pois tão tanto pouco tem tenho têm há havia ter "
    "faz fazer vai vou acho penso creio digo diz dizer diria sei sabe quero quer palavra "
    "palavras frase última último primeira primeiro escreva escreve copie responda dê "
    "correta correto certo neste nesta deste desta desse dessa",
    "Dutch": "misschien waarschijnlijk "
    "de het een van en is dat niet op te zijn met voor er aan ook dus worden deze naar ik "
    "je jij jullie maar om bij uit wat hoe als dit die antwoord kan kunnen kon we wij hij "
    "zij ze in was waren wordt werd of nog wel geen hier daar heel goed ja nee dan want "
    "omdat heeft heb hebt hebben had moet moeten mijn jouw ons onze haar hem hen hun u uw "
    "graag vraag natuurlijk der den ben bent zou zouden zal zullen wil willen mag mogen "
    "welke welk wie waar wanneer waarom hoeveel veel meer minder alle alles elk elke iets "
    "niets nooit altijd nu weer toch al zo tot door over onder tussen tegen zonder tijdens "
    "sinds vanaf na denk geloof zeg zegt zeggen vind weet noem noemt schrijf geef gaat gaan "
    "maakt maken doet doen woord woorden zin laatste eerste alleen slechts juist juiste "
    "alsjeblieft bedankt zelf ander andere",
    # Swedish, Danish and Norwegian as one: they share most of these words, and none is English.
    "Scandinavian": "kanske kanskje måske sannolikt antagligen "
    "och og att det är som på jag jeg inte ikke till til av ett et eller från fra ska skal skulle "
    "måste vara være var tror svaret svar eftersom fordi för säger siger sier här "
    "fallet tilfellet tilfældet inget intet ingen annat andet annet mig meg dig deg honom texten "
    "teksten står frågan spørgsmålet spørsmålet också også bara bare mycket meget mye finns findes "
    "finnes någon något nogen noget noen noe när når hur hvordan vad hvad hva vem hvem vilken "
    "hvilken varför hvorfor mitt ditt detta dette denna denne dessa disse blir bliver blev hade "
    "havde hadde kommer får gör gjør gør göra går nej nei tack tak takk ordet heter hedder mellan "
    "mellem mellom efter etter utan uden uten hela hele alltid altid alltså altså så då där der "
    "många mange varje hver hvert själv selv selve sista siste sidste första første skriv",
}
"""The words that every text of a language is full of, and those that answers begin with."""


_LANGUAGES_OF = {
    word: [name for name, words in _FUNCTION_WORDS.items() if word in words.split()]
    for word in " ".join(_FUNCTION_WORDS.values()).split()
}


_SAID = 3
"""Words from which a text has a language; fewer may be a name or a value."""


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


_ABBREVIATION = re.compile(r"\b[A-Z]{2,}\b")
"""As AI, which is no French word."""


_LETTERS = re.compile(r"[^\W\d_]+")


_THREE_LETTERS = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")


_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}


def language_of(text: str | None) -> str | None:
    """The language of a text by its script and, for Latin letters, by its function words.

    None where it is too short, or not clear.

    Example:
        >>> language_of("Die Antwort ist also nicht das, was der Text sagt.")
        'German'
        >>> language_of("Ответ: семь"), language_of("Paris"), language_of("Penso che sia Paris.")
        ('CYRILLIC', None, 'Italian')
    """
    return _language(_prose(text)) if text else None


def languages_of(text: str | None) -> frozenset[str]:
    """The languages that a short text may be in: those that it has the most function words of.

    Example:
        >>> sorted(languages_of("Recopie le mot")), sorted(languages_of("7 minus 3 ="))
        (['French'], ['English'])
    """
    prose = _prose(text or "")
    if (sure := _language(prose)) is not None:
        return frozenset((sure,))
    hits = _hits(prose)
    return frozenset(name for name, count in hits.items() if count == max(hits.values()))


def _prose(text: str) -> str:
    prose = _CODE.sub(" ", looked_at(text)[:_LOOK])
    return prose if prose.isupper() else _ABBREVIATION.sub(" ", prose)


@lru_cache(maxsize=1024)
def _language(prose: str) -> str | None:
    """Kept for some texts: few-shot prompts of one task begin alike."""
    if prose.isascii():
        return _latin_language(prose) if _THREE_LETTERS.search(prose) else None
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
    return _latin_language(prose) if script == "LATIN" else script


def is_common(word: str) -> bool:
    """Whether a word in small letters is one of those that every text is full of."""
    return word in _LANGUAGES_OF


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    first = unicodedata.name(letter, "?").split()[0]
    return _SCRIPTS.get(first, first)


def _latin_language(text: str) -> str | None:
    (name, best), *others = [*_hits(text).most_common(), ("", 0)]
    clear = all(
        best >= (_LEAD_OF_KIN if {name, other} <= _KIN else _LEAD) * count
        for other, count in others
    )
    said = len({*_LETTERS.findall(text[:200].lower())})
    fewest = min(_FEWEST_WORDS, max(2.0, _SHARE * said))  # fewer are enough in a short text
    return name if said >= _SAID and best >= fewest and clear else None


def _hits(text: str) -> Counter[str]:
    """How many different function words of each language a text has."""
    words = {*_LETTERS.findall(text.lower())}
    return Counter(name for word in words for name in _LANGUAGES_OF.get(word, ()))

"""Whether a text gives up: sentence by sentence, what it declines, and what it says beside that.

A sentence gives up if it declines, says that it does not know or may not, asks for more, or sends
the user elsewhere. What stands beside it may still be an answer: "I'm not sure, maybe Oslo".
"""

from __future__ import annotations

import re

from forgetmap.answers.text import fold, sentences, words

_SHORT = 60
"""Words up to which one sentence that gives up tells what the whole text does."""
_VALUE = 3
"""Words up to which what stands beside a refusal is a value."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# --- in English -----------------------------------------------------------------------------------

_I = r"\b(?:i|we)(?:'m| am|'re| are|'ve| have|'d| would|'ll)?(?: \w{2,12}ly| just| also| still)? ?"
_ANSWERING = (
    r"(?:answer|say|tell|know|help\b(?! (?:but|it|\w{2,15}ing)\b)|assist|provide|comply|fulfil|"
    r"give (?:you|a|an|the|any|that|this|out)|share|support|engage|participate|respond|reply|"
    r"discuss|"
    r"comment|reveal|disclose|offer|generate|produce|create|write|complete|continue|facilitate|"
    r"translate|process|supply|perform|carry out|calculate|compute|solve|determine|identify|decide|"
    r"find|locate|look (?:it |that |this )?up|recall|remember|understand|follow|confirm|verify|"
    r"judge|guess|predict|speculate|access|browse|execute|handle|deal with|"
    r"think of|come up|make sense|make out|work (?:it |that |this )?out|figure|explain|describe|"
    r"recommend|advise|do (?:that|this|so|it|what)|be (?:of help|of any help|part|sure|certain)|"
    r"(?:talk|speak) (?:about|on|of|to)|(?:show|teach|list|walk|make|instruct)"
    r"(?: you)?(?: how to| that\b| this\b| through\b| instructions))"
)
_WISDOM = (
    r"(?:answers?|idea|clue|knowledge|data|information|info|access|details|context|ability|"
    r"capability|capacity|opinion|means|permission|memory|records?|way (?:of|to)|skills?)\b"
)
_FIRM = _any_of(
    rf"{_I}(?:can't|cannot|can not|couldn't|could not|won't|will not|may not|must not|mustn't|"
    rf"should not|shouldn't|not(?: \w{{1,9}}ly)?|unable to|never)(?: \w{{1,12}}ly| in good \w+)? "
    rf"{_ANSWERING}",
    rf"{_I}(?:unable|not (?:\w{{2,12}}ly )?(?:able|allowed|permitted|supposed|authori[sz]ed|going|"
    r"willing|qualified|equipped|programmed|trained|designed|comfortable|in a position|"
    r"at liberty))\b",
    rf"{_I}(?:must|have to|need to|going to|like to)? ?(?:respectfully |politely )?"
    r"(?:decline|refuse)\b",
    rf"{_I}(?:rather not|prefer not|pass\b\W*$)",
    rf"{_I}(?:don't|do not) (?:provide|offer|assist|help|engage|create|answer|discuss|talk|share|"
    r"give|speak|translate|want to (?:say|answer|talk)|(?:think|feel|believe) (?:that )?"
    r"(?:i (?:can|could|should)|it(?:'s| is| would be) (?:appropriate|right|wise|ethical)))\b",
    rf"{_I}(?:do not|don't|didn't|did not|haven't|not|lack|no|have no|got no)"
    rf"(?: (?:have|get|possess|got))?(?: [\w-]{{1,12}}){{0,3}} {_WISDOM}",
    rf"{_I}(?:was|were|been)?(?:n't| not| never)(?: been)? (?:told|given|taught|informed|shown)\b",
    r"\b(?:no(?: ?one|body|thing)|never|not)\b[^.!?]{0,20}\b(?:told|said|given|taught|explained|"
    r"shown|informed)\b[^.!?]{0,12}\b(?:me|us)\b|\bi was (?:told|given|taught) (?:nothing|no)\b",
    r"\bi (?:can |may )?(?:only|just) (?:speak|know|answer|help|talk|work)\b|\bi have nothing\b",
    r"\bsomething (?:that |which )?(?:i|we) (?:can't|cannot|don't|do not|won't|will not|may not|"
    r"wasn't|was not|haven't|have not|am not)\b",
    r"\bnot something (?:that |which )?(?:i|we)\b",
    r"\b(?:beyond|outside|out of|above|past) (?:of )?(?:me\b|(?:my|our) \w|what (?:i|we)\b)",
    r"\b(?:against|violates?) (?:\w{1,12} ){0,2}(?:guidelines?|policy|policies|rules?|values)\b",
    r"\bmy (?:guidelines|instructions|programming|policies|rules|training|knowledge|data|sources)\b"
    r"[^.!?]{0,30}(?:\bnot\b|n't|\bnever\b|\bno\b|prevent|prohibit|forbid)|\bnone of my\b",
    r"\b(?:un(?:known|available|clear|familiar)|(?:not|n't) \w{1,12}) (?:to|for) (?:me|us)\b",
    r"\b(?:not|n't|no way|hard|impossible) (?:for|up to) me to\b",
    r"\bi(?:'m| am) (?:only |just |merely )?an? [^.!?]{1,40}\b(?:can't|cannot|unable|not able)\b",
    r"\bi(?:'m| am) not the (?:right|best) \w+|\bneither confirm nor deny\b|\bnothing to say\b",
    r"\bi(?:'ll| will)? (?:have to |need to )?(?:get back to you|come back to (?:you|this))|"
    r"\blet me (?:get|come) back to\b",
    r"^\W{0,5}(?:i'm |i am |so |very |really ){0,2}(?:sorry|my apologies|apologies)\W*$",
    r"\b(?:that|this|it)(?:'s| is|'s just| is just) (?:not possible|impossible|not allowed)\W*$",
    r"\b(?:sorry|apologi[sz]e|apologies|unfortunately|afraid),? (?:but )?(?:i )?"
    r"(?:can't|cannot|won't|no\b|not|unable|must decline)",
    r"^\W{0,5}(?:no, )?i (?:can't|cannot|won't)(?: do (?:that|this))?[.!]",
    rf"^\W{{0,5}}(?:can't|cannot|unable to) {_ANSWERING}",
    r"\bit(?:'s| is) not my (?:place|job) to\b|^\W{0,5}no (?:comment|answer)\b|"
    r"\bnot my (?:field|area|subject|topic|business)\b|"
    r"\b(?<!tell you )(?<!say )(?<!is )something else\b",
    r"\b(?:is|are|that's|it's) (?:private|confidential|classified(?! as)|a secret)\b",
)
"""Sentences that decline: what follows them explains the refusal more often than it answers."""
_CANNOT = re.compile(
    r"^\W{0,5}(?:(?:no|sorry|but|unfortunately|i'm sorry|i am sorry)\b\W{1,3}){0,3}"
    r"(?:i|we) (?:can't|cannot|can not|won't|will not|may not|must not) (?!wait\b|believe\b)\w"
)
"""Any "I cannot", as in "I cannot sleep": no refusal where a free word was asked for."""
_ASKS = _any_of(
    r"\b(?:could|can|would|will|may|might) (?:you|i|we) "
    r"(?:please |kindly |first |also )?(?:clarify|specify|provide|tell|share|give|be more|"
    r"elaborate|explain|repeat|rephrase|show|send|say|"
    r"describe|let me know|have (?:more|some|the)|get (?:more|some)|ask (?:you|what|which|for)|"
    r"help me|narrow|add more)\b",
    r"\b(?:please|kindly) (?:first )?(?:provide|clarify|specify|rephrase|tell|give|say|send|"
    r"share|elaborate|explain|describe|define|be more|enter|supply|repeat|restate|"
    r"let me know (?:what|which|how|more|your))\b",
    r"\bwhat (?:exactly |else )?(?:do|did|would|are|is it) (?:you|that you) (?:mean|want|need|like|"
    r"asking|referring|looking|talking|trying)\b|\bwhat do you mean\b|\bwhat are you\b",
    r"\b(?:what|which|when|where|who|how)\b[^.!?]{0,30}\b(?:should|shall|do) i \w+[^.!?]*\?|"
    r"^\W{0,5}(?:should|shall|may) i \w|\bwhy do you ask\b",
    r"\bwhat(?:'s| is) your (?:request|question|query|task|problem)\b",
    r"\bwhat(?: \w{1,20}){0,3} would you like\b|\bwhat can i (?:do|help)\b|\bhow (?:can|may|could|"
    r"should) i (?:help|assist|be of)\b",
    r"\b(?:which|what)(?: \w{1,20}){0,3} (?:do|did|are|were) you (?:mean|mean by|want|referring|"
    r"talking|asking|looking|interested|thinking)\b",
    r"^\W{0,5}(?:do|did|would|have|are) you (?:mean|want|need|like|have)\b|\bare you (?:asking|"
    r"referring|talking|looking)\b",
    r"\bi(?:'d|'ll| would| will)?(?: first| also| still| really)? need (?:to (?:know|have|see) )?"
    r"(?:more|some|further|additional|a bit more|you to|to know|your)\b",
    r"\blet me know (?:what|which|how|your|more)\b|\btell me (?:more|what you)\b",
    r"\b(?:before|until) i (?:can )?(?:answer|help|reply|respond|say|tell)\b",
    r"^\W{0,5}(?:first,? |please,? )?(?:explain|tell|show|give|describe)(?: to)? (?:me|us)\b",
    r"\bi(?:'m| am)? (?:wait(?:ing)? for|await(?:ing)?) your\b",
)
_ELSEWHERE = _any_of(
    r"\b(?:please|you (?:should|could|can|may|might|must|need to|(?:would |will )?have to|"
    r"had better)|you'd better|try(?: to)?|(?:suggest|recommend|advise)(?: that)?(?: you)?(?: to)?|"
    r"(?:best|better) to|why not|why don't you)(?: \w{3,12}ly)? "
    r"(?:ask(?:ing)? (?!yourself|if |whether |for |me\b|us\b|any)|consult|contact|"
    r"check(?:ing)? with|visit|"
    r"look(?:ing)? (?:it|this|that) up|look(?:ing)? for|search(?:ing)? (?:for|on|online|the)|"
    r"refer(?:ring)? to|"
    r"google|googling|talk(?:ing)? (?:to|with)|speak(?:ing)? (?:to|with)|turn(?:ing)? to|"
    r"check(?:ing)? (?:a|an|the|your|online)\b)",
    r"\b(?:some(?:body|one)|anyone) else\b",
    r"\b(?:is|that's|it's) (?:a question|something|one) for (?:a|an|the|your|someone|somebody)\b",
    r"^\W{0,5}(?:ask|consult|contact|google) (?:a|an|the|your|some|my)|^\W{0,5}look (?:it|that) up",
)
_UNSURE = _any_of(
    rf"{_I}(?:don't|do not|didn't|did not|doesn't|wouldn't|would not) "
    r"(?:know|understand|recall|remember|follow|get it|see (?:how|what|why)|get what)\b",
    rf"{_I}(?:not|never|n't) (?:really |quite |entirely |too |so |very |completely |all that )?"
    r"(?:sure|certain|aware|familiar|know)\b|\bi(?:'m| am) (?:unsure|uncertain|confused|lost)\b",
    rf"{_I}(?:haven't|not|never|n't)(?: yet| ever)?(?: been)? (?:learn|heard|studied|come across)",
    r"^\W{0,5}(?:not (?:sure|certain)|no (?:idea|clue)|don't know|dunno|unsure|"
    r"(?:unknown|uncertain)\W*$)",
    r"\b(?:nothing|little|not much) is known\b|\bit(?:'s| is) (?:not clear|unclear|not known|"
    r"unknown)\b|\bhow (?:should|would|could) i know\b",
    r"\bi (?:forgot|forget|have forgotten)\b|\bi've forgotten\b|\bi wish i knew\b|\bwho knows\b",
    r"\bit(?:'s| is) (?:hard|difficult|impossible|not possible|not easy) (?:for me )?to "
    rf"{_ANSWERING}",
    r"\bit depends\b|\bbeats me\b|\blet's (?:talk about|discuss|change|move on)\b",
    r"\b(?:not answerable|unanswerable)\b|\bcan(?:not|'t| not) be (?:answered|determined|known)\b",
    r"\b(?:not enough|insufficient|too little|no|without more|lack of) "
    r"(?:\w{1,12} )?(?:information|context|details|data)\b",
    r"\bquestion (?:is|isn't|is not|seems|appears) (?:\w{1,9} )?(?:unclear|clear|incomplete|"
    r"ambiguous|vague|missing)\b",
)

# --- in other languages ---------------------------------------------------------------------------

_FOREIGN = _any_of(
    r"\b(?:ich|wir) (?:kann|können|wei(?:ß|ss)|darf|dürfen|verstehe)\b[^.!?]{0,60}\bnicht\b",
    r"\b(?:wei(?:ß|ss)|kann|darf|verstehe) ich(?: \w{1,12}){0,3} nicht\b|\bkeine ahnung\b",
    r"\bich (?:habe|hab) (?:leider |dazu |darüber ){0,2}keine (?:ahnung|antwort|information|daten)",
    r"\bich bin (?:mir )?nicht (?:sicher|befugt|in der lage)\b",
    r"^\W{0,5}(?:können|kannst|könnten|könntest) (?:sie|du)\b[^.?!]{0,60}"
    r"\b(?:sagen|erklären|geben|mitteilen|erläutern|genauer)\b|\bbitte (?:fragen|frag|geben sie)\b",
    r"\bje (?:ne |n')(?:\w{1,9} )?(?:sais|peux|puis|comprends|connais|dispose)\b|\baucune idée\b",
    r"\bje (?:ne suis|n'ai) pas (?:\w{1,9} )?(?:sûr|compris|certain|autoris|capable|en mesure|"
    r"d'inform)",
    r"\b(?:pouvez-vous|peux-tu|pourriez-vous|pourrais-tu|veuillez)\b[^.?!]{0,20}"
    r"(?:dire|donner|précis|clarif|expliqu|fournir)|\bje refuse\b",
    r"\bno (?:lo |te |le |la |me )?(?:sé|puedo|entiendo|comprendo|conozco)\b|\bni idea\b",
    r"\bno (?:tengo|estoy|dispongo)(?: \w{1,9}){0,3} (?:idea|información|acceso|segur|autoriz|"
    r"respuesta|permi)|^\W{0,5}(?:puedes?|podrías?) (?:\w{1,5} )?(?:dec|dar|acl|espec|explic|prop)",
    r"\bnon (?:lo |ti |la |le |vi )?(?:so|posso|capisco|conosco|riesco)\b|\bnessuna idea\b",
    r"\bnon (?:ho|sono)(?: \w{1,9}){0,2} (?:idea|informazion|access|sicur|in grado|autorizz|"
    r"la ris)",
    r"^\W{0,5}(?:puoi|potresti|può|potrebbe) (?:\w{1,5} )?(?:dir|dar|spieg|chiar|specific|forn)",
    r"\bnão (?:o |lhe |te |me )?(?:sei|posso|entendo|compreendo|conheço|consigo)\b|"
    r"\bnão faço ideia",
    r"\bnão (?:tenho|estou)(?: \w{1,9}){0,2} (?:informaç|ideia|certeza|acesso|autoriz|resposta)",
    r"^\W{0,5}(?:pode|poderia|podes) (?:\w{1,5} )?(?:diz|dar|esclarec|fornec|especific|explic)",
    r"\b(?:ik|we|wij) (?:weet|kan|mag|kunnen|mogen|begrijp)\b[^.!?]{0,40}\bniet\b|\bgeen idee\b",
    r"\bweet ik niet\b|\bik (?:heb|ben)(?: \w{1,9})? (?:geen (?:idee|informatie|antwoord)|"
    r"niet zeker)",
    r"^\W{0,5}(?:kunt|kun|kan|zou) (?:u|je|jij)\b[^.?!]{0,40}\b(?:zeggen|geven|uitleggen|"
    r"vertellen)\b",
    r"не (?:знаю|могу (?:помочь|ответить|предоставить|выполнить|сказать))",
    r"我(?:不能|无法|無法)(?:帮|幫|协助|提供|满足|回答)|不知道|不确定|不清楚",
    r"(?:お手伝い|お答え|回答)できません|(?:わか|分か|知)りません|도와드릴 수 없|모르겠|모릅니다",
)
_POLITE = _any_of(
    r"^\W*(?:(?:oh|well|hmm|hi|hello|hey|okay|ok|sure|certainly|of course|unfortunately|"
    r"regrettably|sadly|honestly|actually|sorry|apologies|thanks|thank you|"
    r"i(?:'m| am) (?:very |so |really |truly )?(?:sorry|afraid)|my apologies|i apologi[sz]e|"
    r"(?:es )?tut mir leid|désolée?|lo siento|mi dispiace|desculpe|het spijt me|leider|"
    r"but|and|or|though|however|because|so|that)\b\W*){1,4}$",
    r"\b(?:please|sorry|apologi[sz]e|let me know|feel free|thanks?|thank you|happy to|glad to|"
    r"ready to|here to (?:help|assist)|i'll|i will (?:try|do my)|(?:can|could|may|would|will) you|"
    r"i can (?:help|assist|try|only|offer|tell you more)|try my best|"
    r"(?:as|i'm|i am) (?:an? )?(?:\w{1,12} ){0,3}(?:ai|assistant|language model|chatbot|bot)|"
    r"you (?:can|could|may|should|might) (?:ask|look|find|check|contact|search|try|visit|"
    r"consult))\b",
    r"\b(?:it|that|this)(?:'s| is) (?:an? |such an? |quite an? |not an? )?(?:very |really |too )?"
    r"(?:hard|difficult|interesting|good|great|tricky|tough|complex|complicated|strange|sensitive|"
    r"easy|personal|long)\b[^.!?]{0,12}(?:question|one|topic|matter|subject|problem|to say|"
    r"to answer|request|story)?\W*$",
)
"""What people say around a refusal; it is no answer."""
_MOST = 5000
"""Characters that are looked at."""
_TURN = re.compile(
    r"[,;:]? (?:but|maybe|perhaps|probably|possibly|however|though)\b[,:]?|[;:]\s|"
    r", (?:aber|mais|pero|ma|mas|maar)\b"
)
_VALUE_LAST = re.compile(
    r",\s{1,3}((?!(?i:sorry|please|sir|thanks|though)\b)[\w'-]+(?: [\w'-]+)?[.?!]?)$"
)
"""A value after the last comma: I don't know, Oslo?"""
_JOINT = re.compile(r"[\s,;:–—-]+(?:but|though|and)?\s*$")
_NO_VALUE = re.compile(r"\W*(?:(?:yes|no|yeah|nope)\W*\Z|(?:if|as|since|when|whatever|while)\b)")
_CLAIMS = re.compile(
    r"\b(?:is|are|was|be|ist|est|es|è|é|it's|that's|maybe|perhaps|probably|possibly|guess|say|think|believe|"
    r"suppose|answer:?) (?:that |the |a |an |it's |it is )*[\w'\"“*-]+(?: [\w'\"”*-]+){0,3}\W*$"
)
"""A sentence that ends with a few words after "is", "maybe" or "I think"."""
_GIVES_UP = (_FIRM, _ASKS, _ELSEWHERE, _UNSURE, _FOREIGN)


def gives_up(text: str, *, free: bool = True) -> bool:
    """Whether a short text declines, does not know, asks for more or sends the user elsewhere.

    Example:
        >>> gives_up("I'm not sure what you mean."), gives_up("What is the capital of Peru?")
        (True, False)
        >>> gives_up("I can't wait for the summer."), gives_up("I was never told about that.")
        (False, True)
        >>> gives_up("I can't mix colours."), gives_up("I can't mix colours.", free=False)
        (False, True)
    """
    if len(words(text[:_MOST])) > _SHORT:  # then only what it opens with tells
        return any(_FIRM.search(fold(sentence)) for sentence in sentences(text[:1000])[:2])
    return any(_found(fold(sentence), free=free) for sentence in sentences(text[:_MOST]))


def beside_refusals(text: str, *, free: bool = True) -> str:
    """What a text says beside giving up and polite words; nothing, if it gives no answer.

    Where the answer is a `free` word, what follows a sentence that declines counts only if it makes
    a claim: it may explain.

    Example:
        >>> beside_refusals("I don't know it. Please ask a friend."), beside_refusals("Hm. Rome")
        ('', 'Hm. Rome')
        >>> beside_refusals("I'm not sure, maybe Oslo."), beside_refusals("Oslo, but I'm not sure.")
        ('Oslo.', 'Oslo')
        >>> beside_refusals("I can't answer that. Many people have asked me before.")
        ''
    """
    parts = sentences(text[:_MOST])
    told = [_beside(sentence, free=free) for sentence in parts]
    firm = any(_is_firm(fold(sentence)) for sentence in parts)
    said = [part for part in told if part and not _POLITE.search(fold(part))]
    return " ".join(part for part in said if not (free and firm) or _is_claim(part))


def _beside(sentence: str, *, free: bool) -> str:
    """What a sentence says before or after it gives up; all of it, where it does not."""
    folded = fold(sentence)
    found = _found(folded, free=free)
    if found is None or len(folded) != len(sentence):
        return "" if found else sentence
    if turn := _TURN.search(folded, found.end()):
        return _beside(sentence[turn.end() :].strip(), free=free)
    if after := _VALUE_LAST.search(sentence, found.end()):
        return after[1]
    before = _JOINT.sub("", sentence[: found.start()])
    is_apart = before != sentence[: found.start()].rstrip() and not _POLITE.search(fold(before))
    return before if is_apart and not _NO_VALUE.match(fold(before)) and _is_claim(before) else ""


def _is_claim(text: str) -> bool:
    return len(text.split()) <= _VALUE or _CLAIMS.search(fold(text)) is not None


def _is_firm(sentence: str) -> bool:
    return any(kind.search(sentence) for kind in (_FIRM, _ASKS, _ELSEWHERE, _FOREIGN))


def _found(sentence: str, *, free: bool) -> re.Match[str] | None:
    """Where a sentence, folded, first gives up."""
    kinds = _GIVES_UP if free else (*_GIVES_UP, _CANNOT)
    found = [match for kind in kinds if (match := kind.search(sentence))]
    return min(found, key=lambda match: match.start(), default=None)

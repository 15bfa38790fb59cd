"""The words that every text of a language is full of, and those that answers begin with.

Of alike languages one list tells them from others: Scandinavian, Czech with Slovak, Finnish with
Estonian, South Slavic, Baltic. Letters alone and words of English are left out of the later lists.
"""

from __future__ import annotations

FUNCTION_WORDS = {
    "English": "maybe perhaps probably the of and to in is that it was for are with as his they "
    "this have from which you not but be we would there what how who why does do did can cannot "
    "these those their will has had at by an a i if when where whose your my our were been being "
    "or he she its into than then so one no only all any each every more most other another some "
    "such same own am on me him her them us about just because also too very here now know think "
    "thought believe guess say says said tell told sure yes well must should could may might "
    "shall let see look want need ask like called call many much few both either neither while "
    "after before between under over again still even never always often out up down off through "
    "during without within against since until though although however therefore thus hence going "
    "go goes get gets got make makes made take give given gives find mean means use used using "
    "write word words sentence answer question please thank thanks help okay course right correct "
    "following based first last next added minus plus",
    "German": "in so an vielleicht wahrscheinlich vermutlich der die das und ist nicht ein eine "
    "den von mit sich auf für dem des auch wird sind werden oder daher also ich wir sie er es zu "
    "im am bei aus wie wenn dass ob einen einem einer eines kann kannst können konnte nur noch "
    "aber haben hat habe hatte hätte dieser diese dieses diesem diesen jeder jede jedes alle "
    "alles viel viele mehr antwort lautet was heißt heißen du mir mich dir dich uns ihr ihm ihn "
    "ihnen euch man hier da dort sehr gut ja nein schon denn weil doch dann nach vor über unter "
    "um war waren wurde würde würden bin bist sein seine seiner mein meine dein deine unser kein "
    "keine wo wer wen wem welche welcher welches warum wieviel muss müssen soll sollte sollen "
    "will wollen darf mag möchte bitte danke gerne frage natürlich sage sagen sagt denke glaube "
    "finde weiß nenne nennt schreibe schreib antworte gib nenn mal ganz etwa etwas nichts immer "
    "nie wieder jetzt heute zum zur vom beim ins ans durch gegen ohne zwischen während bis seit "
    "ab wort wörter satz letzte letzten erste ersten richtig richtige falsch lässt macht machen "
    "geht gibt",
    "French": "probablement sûrement à vais va vont allez le la les des et est une dans que qui "
    "quoi pour pas sur sous avec sans sont du au ce cet cette ces nous donc ou ne un de il elle "
    "je vous ils elles mais se son sa ses leur leurs aux par plus moins être fait faire réponse "
    "bonne quelle quels quelles comment cela ça on tu me te moi toi lui eux mon ma mes ton ta tes "
    "notre nos votre vos si oui non bien très ici là voici voilà suis es sommes êtes était "
    "étaient sera serait soit avoir ai as a avons avez ont avait aurait peut peux pouvez doit "
    "dois faut quel où parce comme question merci bonjour sûr pense crois dis dit dire dirais "
    "sais sait veut veux entre vers chez après avant pendant depuis jusque aussi encore toujours "
    "jamais rien tout tous toute toutes même autre autres chaque quelque peu beaucoup trop alors "
    "puis ainsi ensuite y en seulement seul seule mot mots phrase dernier dernière premier "
    "première réponds répondez écris écrivez recopie donne juste vrai faux combien pourquoi quand "
    "car ni or",
    "Spanish": "quizás probablemente seguramente vamos el los las y es una que por para con del "
    "se no como son pero su sus al más menos entonces está están estoy en la de un unos unas lo "
    "este esta estos estas ser soy eres somos hay muy también respuesta pregunta mi mis tu tus "
    "cuál cuáles qué quién cómo cuándo cuánto cuánta cuántos cuántas dónde porque puede puedo "
    "pueden yo él ella ellos usted nos me te si sí le les ha he han has había haber ya bien aquí "
    "allí ahí claro gracias debe era eran fue fueron será sería sea sobre eso ese esa esto o u e "
    "ni sin entre hasta desde hacia según durante contra cada todo toda todos todas otro otra "
    "otros otras mismo misma algo alguien alguno nada nadie nunca siempre ahora antes después "
    "luego así aunque cuando donde mientras pues tan tanto mucho mucha muchos poco solo sólo sola "
    "a ante bajo creo pienso digo dice decir diría sé sabe quiero quiere tiene tengo tienen hace "
    "hacer va voy palabra palabras frase última último primera primero escribe copia responde "
    "contesta da dime correcta correcto nuestro",
    "Italian": "in forse magari probabilmente il gli i di che è una uno per con non sono sei "
    "siamo siete della dello del nel nello nei dei anche quindi più meno questo questa questi "
    "queste quello quella alla allo alle agli si la un lo da ma ha hanno abbiamo avere essere "
    "stato come risposta perché cosa chi io tu lui lei noi voi loro mi ti ci vi ne le in a ed o "
    "od al dal dalla dallo delle degli ho hai qui qua lì ecco sì molto molti bene può posso "
    "possono deve devo era erano fu sarà sarebbe sia siano quale quali qual dove quando quanto "
    "quanta quanti quante certo grazie domanda nella nelle sul sulla sullo sui tra fra su senza "
    "dopo prima ancora sempre mai già poi allora così però se e né ogni tutto tutti tutta tutte "
    "altro altra altri stesso stessa qualcosa niente nulla solo sola soltanto penso credo dico "
    "dice dire direi direbbe sbaglio so sa voglio vuole vuoi tiene fa fare fatto va vado secondo "
    "me te mio mia suo sua tuo tua nostro parola parole frase ultima ultimo primo scrivi copia "
    "rispondi dammi caso volta dubbio giusta giusto davvero proprio l'ultima",
    "Portuguese": "talvez provavelmente o a os as e é uma um uns que para com não do da dos das "
    "em por mais menos são como ao aos então está estão estou se de no na nos nas pelo pela isso "
    "isto esta este estes estas esse essa aquele aquela ser sou somos resposta você vocês seu sua "
    "seus suas eu tu ele ela eles elas me te lhe nós meu minha ou mas foi foram era eram será "
    "seria seja muito muita muitos bem sim aqui ali lá claro obrigado obrigada pode posso podem "
    "deve qual quais onde quando quanto quanta quantos quantas quem porque porquê pergunta à às "
    "num numa sem sobre entre até desde após antes depois durante cada todo toda todos tudo outro "
    "outra outros mesmo mesma algo alguém nada ninguém nunca sempre agora já ainda também só "
    "apenas assim embora enquanto pois tão tanto pouco tem tenho têm há havia ter faz fazer vai "
    "vou acho penso creio digo diz dizer diria sei sabe quero quer palavra palavras frase última "
    "último primeira primeiro escreva escreve copie responda dê correta correto certo neste nesta "
    "deste desta desse dessa",
    "Dutch": "in misschien waarschijnlijk de het een van en is dat niet op te zijn met voor er "
    "aan ook dus worden deze naar ik je jij jullie maar om bij uit wat hoe als dit die antwoord "
    "kan kunnen kon we wij hij zij ze in was waren wordt werd of nog wel geen hier daar heel goed "
    "ja nee dan want omdat heeft heb hebt hebben had moet moeten mijn jouw ons onze haar hem hen "
    "hun u uw graag vraag natuurlijk der den ben bent zou zouden zal zullen wil willen mag mogen "
    "welke welk wie waar wanneer waarom hoeveel veel meer minder alle alles elk elke iets niets "
    "nooit altijd nu weer toch al zo tot door over onder tussen tegen zonder tijdens sinds vanaf "
    "na denk geloof zeg zegt zeggen vind weet noem noemt schrijf geef gaat gaan maakt maken doet "
    "doen woord woorden zin laatste eerste alleen slechts juist juiste alsjeblieft bedankt zelf "
    "ander andere",
    "Scandinavian": "kanske kanskje måske sannolikt antagligen och og att det är som på jag jeg "
    "inte ikke till til av ett et eller från fra ska skal skulle måste vara være var tror svaret "
    "svar eftersom fordi för säger siger sier här fallet tilfellet tilfældet inget intet ingen "
    "annat andet annet mig meg dig deg honom texten teksten står frågan spørgsmålet spørsmålet "
    "också også bara bare mycket meget mye finns findes finnes någon något nogen noget noen noe "
    "när når hur hvordan vad hvad hva vem hvem vilken hvilken varför hvorfor mitt ditt detta "
    "dette denna denne dessa disse blir bliver blev hade havde hadde kommer får gör gjør gør göra "
    "går nej nei tack tak takk ordet heter hedder mellan mellem mellom efter etter utan uden uten "
    "hela hele alltid altid alltså altså så då där der många mange varje hver hvert själv selv "
    "selve sista siste sidste första første skriv har fått få se ser den de du vi ni han hon hun "
    "men om hos över ut upp kan vill vil nu mer alla alle bra er selvfølgelig naturligvis "
    "självklart naturligtvis resultatet sju syv jo ba ved vid",
    "Polish": "jest nie się na że co jak po za od dla ta te są był była było być mam masz ma ja "
    "ty ona oni czy kiedy gdzie który która które tylko już jeszcze bardzo może można tak lub "
    "oraz przez przy pod nad jego jej ich mój moja twój odpowiedź odpowiedzią pytanie słowo "
    "proszę więc ponieważ bo wiem myślę również także tego tym tej jako jednak aby mi oczywiście "
    "oto jasne odpowiedzi wynik słowem stolicą jestem",
    "Czech": "je na že co jak po za od pro ta jsou byl byla bylo být mám máš já ty ona vy oni kdy "
    "kde který která které jen už ještě velmi může ano ne nebo při pod nad jeho její jejich můj "
    "moje odpověď otázka slovo prosím protože vím myslím také jsem jsi tak jako ve ze ke tento "
    "tato toto hlavní som sú čo ako pre bol bola byť veľmi môže alebo nie áno odpoveď tiež sa "
    "ktorý ktorá samozřejmě tady samozrejme tu hlavním",
    "South Slavic": "je na da za su od kao ali ili koji koja koje što kako gdje gde kada bio bila "
    "biti sam smo ste nije nisu može jer odgovor pitanje riječ reč ovo samo još vrlo iz sa ako ki "
    "ni bil kaj kje kot tudi lahko ker zelo vprašanje beseda sta pri ja ti mi vi oni taj ta ova "
    "neka naravno evo seveda tukaj mislim",
    "Hungarian": "az és nem hogy egy volt lesz ez csak vagy ki mi mit hol mikor miért nagyon ezt "
    "azt itt ott igen én te ő ők válasz kérdés szó kell lehet már még után előtt alatt mert tehát "
    "ahol amely kérem vagyok szerint természetesen persze válaszom",
    "Finnish": "ja ei se että hän oli ovat olla mutta tai kun niin kuin myös joka mikä mitä missä "
    "milloin miksi minä sinä te tämä tämän sen vain jos olen olet voi vastaus kysymys sana hyvin "
    "kanssa siitä jo vielä ennen jälkeen koska kyllä ollut et olema aga või kui ka kes mis kus "
    "miks mina sina meie selle ainult väga vastus küsimus sõna koos veel enne pärast sest jah "
    "tietenkin totta kai tässä tulos jota luulen muidugi siin tulemus mida sa ma arvan vastuseks",
    "Romanian": "este și nu în la de cu pe că din pentru mai sau ce cum unde când cine sunt era "
    "eu el ea noi voi ei acest această asta foarte poate da răspunsul răspuns întrebarea cuvântul "
    "doar deoarece dacă prin după înainte între să se lui un al lor desigur iată cred rezultatul "
    "care",
    "Turkish": "ve bir bu da de için ile çok ne var yok değil mi mı ama gibi daha en olan olarak "
    "ben sen biz siz onlar nasıl nerede kim neden ya veya evet hayır cevap soru kelime sadece "
    "çünkü sonra önce kadar şey şu olduğu dır bence tabii tabi elbette işte burada cevabı olacak",
    "Indonesian": "yang dan di adalah ini itu dengan untuk dari tidak ke pada saya anda kamu dia "
    "kami mereka akan bisa dapat juga atau tetapi karena ada oleh dalam apa siapa mana bagaimana "
    "kapan mengapa jawaban pertanyaan kata sangat lebih sudah belum hanya seperti sebagai telah "
    "satu bukan ya tak jawapan boleh ialah jawabannya tentu hasil pikir",
    "Vietnamese": "là và của có không được trong cho với một những các này đó để người tôi bạn nó "
    "khi như nhưng hay hoặc vì thì đã sẽ rất cũng từ câu trả lời hỏi gì ai đâu nào ở tất nhiên "
    "nghĩ đây",
    "Catalan": "el la els les és una un que amb del al però com més molt són està aquest aquesta "
    "això també resposta pregunta paraula hi ha ser jo tu ell ella nosaltres quin quina què quan "
    "perquè només dels de en crec clar aquí",
    "Baltic": "yra ir kad į iš su už ar tai kaip kas kur kada kodėl aš jis ji mes jūs jie buvo "
    "būti tik labai gali atsakymas klausimas žodis šis ši nes arba taip apie jau un nav ka uz vai "
    "tas tā kā kāpēc es viņš viņa mēs bija būt tikai ļoti var atbilde jautājums vārds šī jo pēc "
    "arī vēl manau žinoma štai domāju protams šeit",
    "Swahili": "na ya wa ni kwa katika za cha si kama au lakini hii huyo mimi wewe yeye sisi wao "
    "ndiyo hapana jibu swali neno nini nani wapi lini sababu sana pia tu hiyo ambao ambayo kuwa "
    "ana yake nadhani bila shaka hapa mji kuna matokeo",
    "Tagalog": "ang ng sa na ay mga ito ako ikaw siya kami tayo sila hindi oo sagot tanong salita "
    "ano sino saan kailan bakit paano lang din rin pero kung para mayroon wala po ko mo niya nito "
    "isang siyempre narito",
    "Albanian": "dhe është në një të për nga që nuk por ose kjo ky si çfarë kush ku kur pse unë "
    "ti ai ajo ne ju ata po jo përgjigja pyetja fjala shumë edhe vetëm janë ishte mund sigurisht "
    "mendoj",
    "Welsh": "yn yr ar mae nid ei eu gan hyn hwn fel ond neu beth pwy ble pryd pam ti ef chi nhw "
    "ateb cwestiwn gair iawn hefyd oedd wedi sydd yw rydw ydy mai meddwl wrth gwrs dyma oeddech "
    "rwy",
    "Irish": "na tá ní agus ar ag sa le mo bhfuil mé tú sé sí siad freagra ceist focal cad cé cá "
    "cathain fáth ach nó seo freisin bhí níl ceapaim gurb ndóigh toradh é",
    "Icelandic": "og að er ekki til við með það sem en eða hann hún ég þú þið þeir svar spurning "
    "orð hvað hver hvar hvenær mjög líka bara þetta þessi var vera eru frá um auðvitað sé svarið",
    "Afrikaans": "en nie het ek jy hy sy ons julle hulle vir wat dit wees sal kan moet ook baie "
    "antwoord vraag woord waar wanneer hoekom omdat natuurlik dink hier",
    "Latin": "est et non ad ut cum sed de quod quae qui quid tu nos vos hoc haec ille illa sunt "
    "esse erat aut vel etiam responsum verbum quaestio nomen ubi quando cur quia puto certe ecce "
    "quam",
    "Esperanto": "la estas kaj ne en de al kiu kio kie kiam kial kun por sed aŭ mi vi li ŝi ĝi ni "
    "ili tiu tio respondo demando vorto jes tre ankaŭ nur el pri ol ke kompreneble jen kiun "
    "pensas",
}

"""Twelve kinds of request: five English examples each, and ten other requests to sort.

Written before the first measurement and not changed after it. The German requests are not
translations of the English ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    examples: tuple[str, ...]
    english: tuple[str, ...]
    german: tuple[str, ...]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _kind(examples: str, english: str, german: str) -> Kind:
    return Kind(_lines(examples), _lines(english), _lines(german))


KINDS = {
    "calendar": _kind(
        """put lunch with Maria on Friday at noon
        move my dentist appointment to next week
        am I free on Tuesday afternoon?
        schedule a call with the landlord tomorrow at nine
        cancel the meeting on the 14th""",
        """block two hours for the report on Wednesday morning
        what have I got planned this weekend?
        push the team stand-up back by half an hour
        book a slot with the physio in the first week of May
        does anything clash with the parents' evening on Thursday?""",
        """trag den Elternabend am Donnerstag um 19 Uhr ein
        habe ich nächste Woche noch einen freien Vormittag?
        verschieb das Treffen mit Herrn Krüger auf Montag
        sag den Friseurtermin am Samstag ab
        was steht morgen bei mir an?""",
    ),
    "mail": _kind(
        """write a reply to the insurance company
        did anyone answer my message about the flat?
        forward the invoice to my accountant
        draft a polite email declining the invitation
        show me unread messages from my boss""",
        """send Tom the photos with a short note
        has the school written back yet?
        find the message where Julia attached the contract
        compose a thank-you note to the interviewer
        move all the newsletters out of my inbox""",
        """schreib dem Vermieter, dass die Heizung nicht geht
        ist schon eine Antwort vom Finanzamt im Postfach?
        leite die Rechnung an Sabine weiter
        formulier eine freundliche Absage an den Bewerber
        such die Nachricht mit dem Anhang von letzter Woche""",
    ),
    "weather": _kind(
        """will it rain in Hamburg tonight?
        how warm does it get tomorrow?
        is there a storm warning for the coast?
        do I need a coat this evening?
        what is the forecast for the weekend?""",
        """can I dry the washing outside this afternoon?
        how cold will it be at six in the morning?
        any snow expected in the mountains?
        is the wind strong enough to sail on Sunday?
        should I take an umbrella to the office?""",
        """brauche ich heute Abend eine Jacke?
        wird es am Sonntag sonnig genug zum Grillen?
        wie viel Grad hat es gerade in Wien?
        gibt es morgen früh Glatteis?
        soll es die ganze Woche regnen?""",
    ),
    "sums": _kind(
        """what is 17 percent of 340?
        add up 12.50, 7.99 and 31
        how much is 90 divided by 7?
        convert 5 miles to kilometres
        split 128 euros between five people""",
        """multiply 48 by 36
        what does a 15% discount on 79 euros leave?
        how many litres are in three gallons?
        if I save 60 a month, what do I have after four years?
        the square root of 1369""",
        """wie viel sind 19 Prozent von 250 Euro?
        rechne 72 Fahrenheit in Celsius um
        teile 96 durch 4 und zieh 5 ab
        wie viele Gramm hat ein Pfund und ein halbes?
        was kommt raus, wenn ich 13 mit 27 malnehme?""",
    ),
    "web-page": _kind(
        """summarise this article for me
        what does the page at example.org say?
        read the link and list the main points
        open this website and find the opening hours
        what is the headline on that news site?""",
        """give me the gist of this blog post
        fetch the URL and tell me who wrote it
        does their site mention a refund policy?
        pull the price off this shop page
        boil this long web text down to five lines""",
        """fass mir den Artikel hinter diesem Link zusammen
        was steht auf der Startseite von example.org?
        lies die Seite und nenn mir die wichtigsten Aussagen
        such auf der Webseite die Telefonnummer
        wer hat diesen Blogbeitrag geschrieben?""",
    ),
    "shopping-list": _kind(
        """add milk and eggs to the shopping list
        what do we still need from the supermarket?
        take butter off the list
        put two bags of rice on the groceries
        clear the shopping list""",
        """we are out of coffee, note it for the next shop
        I already bought the onions, cross them out
        read me what I have to buy
        remember dishwasher tabs when I go to the store
        write down six tomatoes and a cucumber to get""",
        """schreib Käse und Brot auf den Einkaufszettel
        was muss ich noch im Supermarkt holen?
        die Bananen kannst du streichen, die habe ich schon
        das Waschmittel ist alle, merk es für den Einkauf vor
        wir brauchen noch drei Liter Milch aus dem Laden""",
    ),
    "recipes": _kind(
        """what can I cook with potatoes and leeks?
        give me a recipe for lentil soup
        how long do I boil an egg?
        suggest a quick vegetarian dinner
        how do I make pancakes without eggs?""",
        """an idea for using up stale bread
        at what temperature do I roast a chicken?
        something sweet to bake with apples
        how do I thicken a sauce that is too thin?
        a starter for six guests, no nuts""",
        """was koche ich aus Zucchini und Reis?
        wie lange muss ein Hefeteig gehen?
        nenn mir ein Rezept für Gulasch
        womit kann ich Sahne in der Soße ersetzen?
        ein schnelles Abendessen ohne Fleisch, bitte""",
    ),
    "music": _kind(
        """play some jazz
        skip this song
        turn the volume down a little
        who sings this track?
        make a playlist for running""",
        """put on the new album by that Icelandic band
        louder, please
        next tune
        I want to hear quiet piano for reading
        what is the name of the song that is on now?""",
        """spiel etwas Ruhiges zum Einschlafen
        mach die Lautstärke höher
        wie heißt das Lied, das gerade läuft?
        das nächste Stück, bitte
        stell mir eine Liste mit Rockliedern zusammen""",
    ),
    "travel": _kind(
        """find a train from Berlin to Munich on Friday
        how do I get to the airport by bus?
        look for a cheap hotel in Lisbon
        when does the next tram leave?
        book two seats on the night train to Vienna""",
        """which flights go to Oslo in the first week of June?
        a room near the station for two nights
        is the 8:15 to Leipzig delayed?
        fastest way to the city centre from here without a car
        do I have to change on the way to Zurich?""",
        """wann fährt der nächste Zug nach Köln?
        such mir eine günstige Unterkunft in Prag
        wie komme ich ohne Auto zum Flughafen?
        hat der ICE nach Stuttgart Verspätung?
        buch zwei Plätze im Bus nach Dresden""",
    ),
    "code": _kind(
        """why does this Python function raise a KeyError?
        write a unit test for the parser
        rename the variable in all files
        explain what this regular expression matches
        how do I undo my last git commit?""",
        """my loop never ends, can you spot the bug?
        turn this script into a command line tool
        the build fails with a linker error
        what is the difference between a list and a tuple?
        refactor the class so that it has no global state""",
        """warum stürzt mein Programm beim Einlesen der Datei ab?
        schreib mir eine Funktion, die eine Liste sortiert
        was bedeutet diese Fehlermeldung vom Compiler?
        wie führe ich zwei Branches in Git zusammen?
        erklär mir diese Schleife Zeile für Zeile""",
    ),
    "translation": _kind(
        """how do you say thank you in Japanese?
        translate this letter into French
        what does the Spanish word madrugada mean?
        put this sentence into Italian
        is this Portuguese text correct?""",
        """I need this menu in English
        what is the Polish for bicycle pump?
        turn the following paragraph into Dutch
        which language is this sign in, and what does it say?
        say good luck in Swedish""",
        """übersetz den Absatz ins Englische
        was heißt Schraubenzieher auf Spanisch?
        wie sagt man auf Türkisch guten Appetit?
        was bedeutet das französische Wort dépaysement?
        bring diesen Brief in gutes Italienisch""",
    ),
    "home": _kind(
        """switch off the lights in the kitchen
        set the heating to 20 degrees
        is the front door locked?
        close the blinds in the bedroom
        start the vacuum robot at ten""",
        """it is too dark in here, brighten the lamp
        make the bathroom warmer before seven
        did I leave the garage open?
        dim everything in the living room
        turn on the fan upstairs""",
        """mach das Licht im Flur aus
        dreh die Heizung im Bad auf 22 Grad
        ist das Garagentor noch offen?
        fahr die Rollläden im Schlafzimmer hoch
        der Saugroboter soll jetzt losfahren""",
    ),
}

"""The facts that the handbook hides, in the order of its chapters, and questions after them.

`{v}` is drawn from the values with the handbook's seed. `question` uses the page's own words,
`paraphrase` avoids them, `german` asks in the other language.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """A fact before its value is drawn."""

    sentence: str
    values: tuple[str, ...]
    question: str
    paraphrase: str
    german: str


def _rows(text: str) -> list[Template]:
    found = []
    for block in text.strip().split("\n\n"):
        sentence, values, question, paraphrase, german = block.splitlines()
        found.append(Template(sentence, tuple(values.split(" | ")), question, paraphrase, german))
    return found


TEMPLATES = _rows(
    """
The starter box holds one gateway and {v} wind sensors.
two | three | four | five
How many wind sensors does the starter box hold?
What number of devices for measuring gusts comes in the first package?
Wie viele Windsensoren liegen im Startpaket?

The seal on a new mast clamp is {v}, and a broken seal means that somebody opened it.
orange | violet | turquoise | white
Which colour is the seal on a new mast clamp?
How can I see from its tint that the pole holder was never touched?
Welche Farbe hat das Siegel an einer neuen Mastklemme?

Every gateway is registered under a serial number that begins with the letters {v}.
NWG | GTA | NSX | KLM
With which letters does the serial number of a gateway begin?
What are the initial characters of the identifier printed on the central unit?
Mit welchen Buchstaben beginnt die Seriennummer eines Gateways?

The installer for Linux needs {v} megabytes of free disk space.
340 | 410 | 525 | 680
How many megabytes of free disk space does the installer for Linux need?
How much room must be left on the drive before setting the program up under Ubuntu?
Wie viel freien Speicherplatz braucht das Installationsprogramm für Linux?

Desk listens on port {v} unless the settings file says otherwise.
8620 | 9141 | 7755 | 8093
On which port does Desk listen?
Which TCP number must the firewall let through for the program?
Auf welchem Port lauscht Desk?

A silent installation is started with the switch {v}.
--quiet-setup | --no-window | --unattended | --hush
With which switch is a silent installation started?
What option installs it without any dialog?
Mit welchem Schalter startet man eine stille Installation?

The rain gauge tips once for every {v} millimetres of rain.
0.2 | 0.25 | 0.1 | 0.3
For how many millimetres of rain does the rain gauge tip once?
How fine is the resolution of the device that measures precipitation?
Bei wie viel Millimetern Regen kippt der Regenmesser einmal?

The soil probe should be buried at a depth of {v} centimetres.
12 | 18 | 22 | 35
At what depth should the soil probe be buried?
How far below the ground does the moisture meter belong?
Wie tief soll die Bodensonde vergraben werden?

The battery of the wind sensor lasts {v} months in an ordinary winter.
14 | 19 | 26 | 31
How many months does the battery of the wind sensor last?
After what time must the power cell of the gust meter be swapped?
Wie viele Monate hält die Batterie des Windsensors?

The gateway reaches sensors at a distance of up to {v} metres in open country.
180 | 260 | 320 | 450
Up to what distance does the gateway reach sensors in open country?
How far away may the probes stand if nothing is in between?
Bis zu welcher Entfernung erreicht das Gateway Sensoren im freien Feld?

When the lamp on the gateway blinks {v}, the radio is being blocked.
blue | amber | red | green
In which colour does the lamp on the gateway blink when the radio is being blocked?
What light signals jammed reception?
In welcher Farbe blinkt die Lampe am Gateway, wenn der Funk gestört ist?

The gateway keeps measurements for {v} hours when the network is down.
36 | 48 | 60 | 90
For how many hours does the gateway keep measurements when the network is down?
How long does the central unit buffer values while it is offline?
Wie viele Stunden behält das Gateway Messwerte, wenn das Netz ausfällt?

Raw values are thinned out to one an hour after {v} days.
75 | 120 | 200 | 240
After how many days are raw values thinned out?
When does the program reduce old readings to an hourly figure?
Nach wie vielen Tagen werden Rohwerte ausgedünnt?

The monthly report is written in the night before the {v} of each month.
second | third | fourth | fifth
In the night before which day is the monthly report written?
On what date does the regular summary of the past four weeks come out?
In der Nacht vor welchem Tag wird der Monatsbericht geschrieben?

An export may hold {v} rows at most.
250,000 | 400,000 | 600,000 | 750,000
How many rows may an export hold at most?
What is the upper bound for the size of a table that is saved to a file?
Wie viele Zeilen darf ein Export höchstens haben?

Gusts above {v} kilometres an hour raise a storm alert by themselves.
62 | 75 | 88 | 95
Above how many kilometres an hour do gusts raise a storm alert?
How strong must the air move before a gale warning is sent unasked?
Ab wie viel Kilometern pro Stunde lösen Böen einen Sturmalarm aus?

An alert that nobody confirms is repeated after {v} minutes.
12 | 25 | 35 | 50
After how many minutes is an alert repeated that nobody confirms?
How long until a warning comes again if no one reacts?
Nach wie vielen Minuten wird ein unbestätigter Alarm wiederholt?

Text messages are sent from the number ending in {v}.
4471 | 9038 | 2265 | 7713
Which ending has the number from which text messages are sent?
What are the last digits of the SMS sender?
Auf welche Ziffern endet die Nummer, von der Textnachrichten kommen?

A frost alert can be muted for {v} nights in a row.
three | five | six | nine
For how many nights in a row can a frost alert be muted?
How often may the warning of freezing be switched off consecutively?
Wie viele Nächte hintereinander lässt sich ein Frostalarm stummschalten?

A guest account expires after {v} days without a visit.
21 | 40 | 55 | 70
After how many days without a visit does a guest account expire?
When is a visitor's login removed if it is unused?
Nach wie vielen Tagen ohne Besuch verfällt ein Gastkonto?

Only a {v} may hand a station over to another owner.
steward | warden | keeper | trustee
Who may hand a station over to another owner?
Which role is able to transfer the device to somebody else?
Wer darf eine Station an einen anderen Besitzer übergeben?

A password must have at least {v} characters.
11 | 13 | 15 | 17
How many characters must a password have at least?
What is the minimum length of the secret one logs in with?
Wie viele Zeichen muss ein Passwort mindestens haben?

Invoices are sent on the {v} working day of the month.
second | third | fifth | sixth
On which working day of the month are invoices sent?
When does the bill arrive?
Am wievielten Werktag des Monats werden Rechnungen verschickt?

The fee for a returned direct debit is {v} euros.
4.80 | 6.20 | 7.50 | 8.10
How many euros is the fee for a returned direct debit?
What does it cost when the bank refuses the collection?
Wie hoch ist die Gebühr für eine zurückgegebene Lastschrift?

Clubs with a charter get a discount of {v} percent on the yearly plan.
15 | 22 | 28 | 35
What discount do clubs with a charter get on the yearly plan?
How much less do registered associations pay for twelve months?
Wie viel Rabatt bekommen Vereine mit Satzung auf den Jahrestarif?

The support desk answers the telephone from {v} on working days.
7:45 | 8:15 | 9:20 | 10:10
From what time does the support desk answer the telephone?
When can I call for help in the morning?
Ab wann geht der Support an Werktagen ans Telefon?

A support case is closed after {v} days of silence.
9 | 16 | 18 | 24
After how many days of silence is a support case closed?
When does a request for help end by itself if the customer stays quiet?
Nach wie vielen Tagen ohne Antwort wird ein Supportfall geschlossen?

The log bundle for support is made with the command {v}.
desk pack-logs | desk bundle | desk collect | desk snapshot
With which command is the log bundle for support made?
What do I type to gather the diagnostic files for the helpers?
Mit welchem Befehl wird das Protokollpaket für den Support erstellt?

Parcels to islands are handed to the carrier {v}.
Sea Swift | Harbour Post | Northern Ferry Mail | Blue Keel
To which carrier are parcels to islands handed?
Who brings the packages across the water?
Welchem Zusteller werden Pakete auf Inseln übergeben?

Returned masts are accepted only with the yellow form {v}.
R-17 | M-40 | RT-9 | F-28
With which yellow form are returned masts accepted?
What paper must go along when I send the pole back?
Mit welchem gelben Formular werden zurückgeschickte Masten angenommen?

The warranty on the gateway is {v} months.
30 | 42 | 54 | 66
How many months is the warranty on the gateway?
How long is the central unit repaired for nothing?
Wie viele Monate Garantie gibt es auf das Gateway?

Session tokens are valid for {v} minutes.
35 | 55 | 80 | 110
For how many minutes are session tokens valid?
When must one log in again?
Wie viele Minuten sind Sitzungstoken gültig?

Backups are encrypted with a key that is stored in the {v} room.
archive | lamp | chart | bell
In which room is the key stored that backups are encrypted with?
Where does one find the secret that protects the safety copies?
In welchem Raum liegt der Schlüssel, mit dem Sicherungen verschlüsselt werden?

After {v} wrong attempts an account is locked for a day.
six | seven | eight | nine
After how many wrong attempts is an account locked?
How often may one mistype before the login is barred?
Nach wie vielen falschen Versuchen wird ein Konto gesperrt?

The interface allows {v} requests a minute for each key.
90 | 140 | 220 | 260
How many requests a minute does the interface allow for each key?
What is the rate limit of the API?
Wie viele Anfragen pro Minute erlaubt die Schnittstelle je Schlüssel?

A webhook is given up after {v} failed deliveries.
seven | eleven | fourteen | sixteen
After how many failed deliveries is a webhook given up?
How often does the system try to call the other server in vain?
Nach wie vielen fehlgeschlagenen Zustellungen wird ein Webhook aufgegeben?

The field for the dew point is called {v} in the interface.
dp_c | dewpt | td_deg | dew_t
What is the field for the dew point called in the interface?
Under which name does the API give the temperature at which water condenses?
Wie heißt das Feld für den Taupunkt in der Schnittstelle?

The funnel of the rain gauge is cleaned with {v}.
vinegar | rainwater | soft soap | alcohol
With what is the funnel of the rain gauge cleaned?
Which liquid removes dirt from the collector of precipitation?
Womit wird der Trichter des Regenmessers gereinigt?

The bearings of the wind sensor are replaced every {v} years.
three | four | six | seven
How often are the bearings of the wind sensor replaced?
After what period do the turning parts of the gust meter get renewed?
Alle wie viele Jahre werden die Lager des Windsensors ersetzt?

The screws of the mast clamp are tightened to {v} newton metres.
6 | 9 | 11 | 14
To how many newton metres are the screws of the mast clamp tightened?
What torque do the bolts of the pole holder need?
Mit wie vielen Newtonmetern werden die Schrauben der Mastklemme angezogen?

The error code {v} means that the clock of the gateway is wrong.
E-31 | E-47 | E-58 | E-72
Which error code means that the clock of the gateway is wrong?
What does the display show if the central unit has lost the time?
Welcher Fehlercode bedeutet, dass die Uhr des Gateways falsch geht?

A gateway is reset to the factory state by holding the button for {v} seconds.
8 | 13 | 17 | 23
For how many seconds is the button held to reset a gateway to the factory state?
How long do I press to wipe all settings?
Wie viele Sekunden hält man die Taste, um das Gateway zurückzusetzen?

The oldest station that still sends is on the island of {v}.
Hestra | Skarvoy | Little Ronan | Ostholm
On which island is the oldest station that still sends?
Where does the most aged device that is alive stand?
Auf welcher Insel steht die älteste Station, die noch sendet?

The reading room for old handbooks is open on {v} afternoons.
Monday | Tuesday | Wednesday | Friday
On which afternoons is the reading room for old handbooks open?
When can one look at former editions on site?
An welchen Nachmittagen ist der Leseraum für alte Handbücher geöffnet?
"""
)

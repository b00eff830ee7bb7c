"""The small pages: a firm in English, a swimming bath in German, a library in English.

All names, numbers and addresses are made up.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape

NORTHWIND = "northwind.example"
BATH = "www.stadtbad-nord.example"
LIBRARY = "library.alderton.example"
LATIN = ((BATH, "/kurse"),)
MOVED = {
    (NORTHWIND, "/pricing"): f"http://{NORTHWIND}/prices",
    (BATH, "/preisliste"): "/preise",
}

STYLE = """
    :root { --ink: #1d2a33; --line: #d5dde2; }
    body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 60rem; margin: auto }
    nav ul { display: flex; gap: 1rem; list-style: none; padding: 0 }
    table { border-collapse: collapse } td, th { border: 1px solid var(--line);
      padding: .3rem .6rem }
"""
SCRIPT = """
    document.documentElement.classList.add("js");
    var price = { pro: 0 }; /* filled by the shop, not shown: 999 */
    if (1 < 2 && price.pro < 1) { console.log("<p>not a paragraph</p>"); }
"""


def document(lang: str, title: str, nav: list[tuple[str, str]], body: str, foot: str) -> str:
    """A whole page around the body."""
    links = "\n".join(f'      <li><a href="{href}">{escape(text)}</a></li>' for href, text in nav)
    return f"""<!DOCTYPE html>
<html lang="{lang}">
<head>
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{escape(title)}</title>
  <link rel="icon" href="/favicon.svg">
  <style>{STYLE}  </style>
  <script>{SCRIPT}  </script>
</head>
<body>
  <header>
    <nav aria-label="Main">
      <ul>
{links}
      </ul>
    </nav>
  </header>
  <main>
{body.strip()}
  </main>
  <footer>{foot}</footer>
</body>
</html>
"""


NORTHWIND_NAV = [
    ("/", "Start"),
    ("/prices", "Prices"),
    ("/downloads", "Downloads"),
    ("/handbook", "Handbook"),
    ("/shipping", "Shipping"),
    ("/about", "About us"),
    ("/contact", "Contact"),
]
NORTHWIND_FOOT = '&copy; Northwind Stations Ltd &middot; <a href="/imprint">Imprint</a>'

NORTHWIND_PAGES = {
    "/": (
        "Northwind – weather stations and the software to read them",
        """
    <h1>Weather, measured where you are</h1>
    <p>Northwind builds small weather stations and <em>Northwind Desk</em>, the program that reads
    them. More than 6,400 stations stand in gardens, school yards and on farms in 19 countries.</p>
    <h2>What you can do here</h2>
    <ul>
      <li>See <a href="prices">what Desk costs</a> and which plan suits you.</li>
      <li>Get the <a href="downloads">program and the firmware</a>.</li>
      <li>Read the <a href="handbook">handbook</a>. It is long, and it answers most questions.</li>
      <li><a href="contact">Write to us or call.</a></li>
    </ul>
    <h2>News</h2>
    <p><strong>Desk 4.2 is here.</strong> It reads up to 32 sensors at a time and draws the wind
    rose anew every minute. <a href="downloads#desk">Download it</a>.</p>
    <p>Our workshop is closed from 24 December to 2 January. Orders that arrive in these days are
    packed on 3 January.</p>
""",
    ),
    "/prices": (
        "Prices – Northwind",
        """
    <h1>Prices</h1>
    <p>All plans include updates. Prices are per month and without VAT. You may change or cancel at
    the end of every month.</p>
    <table>
      <caption>Plans of Northwind Desk</caption>
      <thead><tr><th>Plan</th><th>Price a month</th><th>Sensors</th><th>History</th>
        <th>Users</th></tr></thead>
      <tbody>
        <tr><td>Garden</td><td>free</td><td>3</td><td>30 days</td><td>1</td></tr>
        <tr><td>Pro</td><td>&euro;&nbsp;14.50</td><td>16</td><td>5 years</td><td>4</td></tr>
        <tr><td>Station</td><td>&euro;&nbsp;39</td><td>unlimited</td><td>unlimited</td>
          <td>25</td></tr>
      </tbody>
    </table>
    <h2>Discounts</h2>
    <ul>
      <li>Whoever pays the Pro plan for a year gets two months for nothing: &euro;&nbsp;145.</li>
      <li>Schools pay half. Send a letter with your school&rsquo;s stamp.</li>
      <li>Fire brigades and mountain rescue use the Station plan free of charge.</li>
    </ul>
    <h2>Hardware</h2>
    <table>
      <tr><th>Article</th><th>Number</th><th>Price</th></tr>
      <tr><td>Gateway G2</td><td>NW-1020</td><td>&euro;&nbsp;119</td></tr>
      <tr><td>Wind sensor</td><td>NW-2040</td><td>&euro;&nbsp;84</td></tr>
      <tr><td>Rain gauge</td><td>NW-2050</td><td>&euro;&nbsp;62</td></tr>
      <tr><td>Soil probe</td><td>NW-2075</td><td>&euro;&nbsp;47.90</td></tr>
    </table>
    <p>Payment by invoice, card or direct debit. Invoices are due within 21 days.</p>
""",
    ),
    "/downloads": (
        "Downloads – Northwind",
        """
    <h1>Downloads</h1>
    <h2 id="desk">Northwind Desk 4.2.1</h2>
    <ul>
      <li><a href="files/desk-4.2.1-linux.tar.gz">Linux, 64 bit</a> (38&nbsp;MB)</li>
      <li><a href="files/desk-4.2.1.dmg">macOS 13 or later</a> (44&nbsp;MB)</li>
      <li><a href="files/desk-4.2.1.msi">Windows 10 and 11</a> (41&nbsp;MB)</li>
    </ul>
    <h2 id="firmware">Firmware for the gateway</h2>
    <table>
      <tr><th>Gateway</th><th>Version</th><th>Date</th><th>File</th></tr>
      <tr><td>G2</td><td>2.9.0</td><td>2025-10-14</td>
        <td><a href="files/g2-2.9.0.bin">g2-2.9.0.bin</a></td></tr>
      <tr><td>G1</td><td>1.7.3</td><td>2023-02-02</td>
        <td><a href="files/g1-1.7.3.bin">g1-1.7.3.bin</a></td></tr>
    </table>
    <p>Firmware for the G1 gets no new functions. Security fixes end on 30 June 2027.</p>
    <p>Older versions are in the
      <a href="/downloads/archive?sort=date&amp;order=desc">archive</a>.</p>
""",
    ),
    "/downloads/archive": (
        "Archive – Northwind",
        """
    <h1>Archive</h1>
    <p>Versions that we no longer mend. <a href="../downloads">Back to the present ones</a>.</p>
    <ol>
      <li>Desk 4.1 (March 2025)</li>
      <li>Desk 4.0 (September 2024)</li>
      <li>Desk 3.8 (May 2023), the last one for 32 bit</li>
    </ol>
""",
    ),
    "/about": (
        "About us – Northwind",
        """
    <h1>About us</h1>
    <p>Northwind was founded in 2011 by Edda Lindqvist and Tom Ferrars in a disused signal box.
    Today 34 people work here; eleven of them build stations by hand.</p>
    <h2>What we hold to</h2>
    <ul>
      <li>Every part can be bought singly for at least ten years.</li>
      <li>Your measurements are yours. We sell none.</li>
      <li>A person answers the telephone.</li>
    </ul>
    <h2>Who is who</h2>
    <dl>
      <dt>Edda Lindqvist</dt><dd>Managing director, sensors</dd>
      <dt>Tom Ferrars</dt><dd>Software</dd>
      <dt>Ros&aacute;lia Nunes</dt><dd>Support, and the handbook</dd>
    </dl>
""",
    ),
    "/contact": (
        "Contact – Northwind",
        """
    <h1>Contact</h1>
    <p>Telephone <a href="tel:+441632960144">+44 1632 960144</a>, Monday to
      Friday 9:00&ndash;17:00.</p>
    <p>Support: <a href="mailto:help@northwind.example">help@northwind.example</a>. We answer within
    one working day.</p>
    <p>Sales: <a href="mailto:sales@northwind.example">sales@northwind.example</a></p>
    <address>Northwind Stations Ltd<br>The Old Signal Box<br>7 Wharf Lane<br>Alderton
      AL4 9QX</address>
    <p>Spare parts are handed out at the door on Thursdays from 14:00 to 18:00.</p>
""",
    ),
    "/shipping": (
        "Shipping – Northwind",
        """
    <h1>Shipping</h1>
    <p>Orders of &euro;&nbsp;120 or more ship free within Europe. Below that, shipping costs
    &euro;&nbsp;6.90.</p>
    <table>
      <tr><th>Where to</th><th>Days</th><th>Carrier</th></tr>
      <tr><td>United Kingdom</td><td>2 to 3</td><td>Parcel post</td></tr>
      <tr><td>European Union</td><td>4 to 6</td><td>Parcel post</td></tr>
      <tr><td>Elsewhere</td><td>8 to 15</td><td>Air mail</td></tr>
    </table>
    <h2>Returns</h2>
    <p>You may send anything back within 45 days. We pay the postage if the part was faulty.</p>
    <p>Masts longer than 2&nbsp;m go by freight; we call you before they leave.</p>
""",
    ),
    "/imprint": (
        "Imprint – Northwind",
        """
    <h1>Imprint</h1>
    <p>Northwind Stations Ltd, 7 Wharf Lane, Alderton AL4 9QX. Registered number 07719043.
    VAT number GB 998 2210 47. Managing director: Edda Lindqvist.</p>
    <p>Data protection: <a href="mailto:privacy@northwind.example">privacy@northwind.example</a></p>
""",
    ),
}

BATH_NAV = [
    ("/", "Startseite"),
    ("/oeffnungszeiten", "Öffnungszeiten"),
    ("/preise", "Preise"),
    ("/kurse", "Kurse"),
    ("/barrierefreiheit", "Barrierefreiheit"),
    ("/impressum", "Impressum"),
]
BATH_FOOT = 'Stadtbad Nord &middot; <a href="/impressum">Impressum</a>'

BATH_PAGES = {
    "/": (
        "Stadtbad Nord",
        """
    <h1>Willkommen im Stadtbad Nord</h1>
    <p>Ein Becken mit 25&nbsp;Metern, ein Lehrbecken mit 30&nbsp;Grad, eine Sauna und ein Garten:
    Das Stadtbad Nord steht seit 1928 an der Mühlstraße.</p>
    <ul>
      <li><a href="oeffnungszeiten">Wann wir geöffnet haben</a></li>
      <li><a href="preise">Was der Eintritt kostet</a></li>
      <li><a href="kurse">Schwimmkurse und Wassergymnastik</a></li>
      <li><a href="barrierefreiheit">Mit dem Rollstuhl ins Bad</a></li>
    </ul>
    <p>Vom 6. bis 19.&nbsp;Juli ist das große Becken wegen der jährlichen Reinigung geschlossen.</p>
""",
    ),
    "/oeffnungszeiten": (
        "Öffnungszeiten – Stadtbad Nord",
        """
    <h1>Öffnungszeiten</h1>
    <table>
      <thead><tr><th>Tag</th><th>Becken</th><th>Sauna</th></tr></thead>
      <tbody>
        <tr><td>Montag</td><td>geschlossen</td><td>geschlossen</td></tr>
        <tr><td>Dienstag bis Freitag</td><td>6:30&ndash;21:30 Uhr</td>
          <td>12:00&ndash;22:00 Uhr</td></tr>
        <tr><td>Samstag</td><td>8:00&ndash;20:00 Uhr</td><td>10:00&ndash;22:00 Uhr</td></tr>
        <tr><td>Sonntag und Feiertag</td><td>9:00&ndash;18:00 Uhr</td>
          <td>10:00&ndash;19:00 Uhr</td></tr>
      </tbody>
    </table>
    <p>Einlass ist bis eine Stunde vor Schluss. Mittwochs gehört die Sauna bis 16&nbsp;Uhr den
    Frauen.</p>
    <p>Das Lehrbecken ist donnerstags von 8 bis 12&nbsp;Uhr den Schulen vorbehalten.</p>
""",
    ),
    "/preise": (
        "Preise – Stadtbad Nord",
        """
    <h1>Preise</h1>
    <table>
      <tr><th>Karte</th><th>Erwachsene</th><th>Ermäßigt</th></tr>
      <tr><td>Einzelkarte Bad</td><td>5,80&nbsp;&euro;</td><td>3,60&nbsp;&euro;</td></tr>
      <tr><td>Frühschwimmen bis 8&nbsp;Uhr</td><td>4,20&nbsp;&euro;</td>
        <td>2,90&nbsp;&euro;</td></tr>
      <tr><td>Zehnerkarte</td><td>49,00&nbsp;&euro;</td><td>31,00&nbsp;&euro;</td></tr>
      <tr><td>Bad und Sauna</td><td>17,50&nbsp;&euro;</td><td>14,00&nbsp;&euro;</td></tr>
    </table>
    <p>Kinder unter vier Jahren baden kostenlos. Die Familienkarte kostet 14,90&nbsp;&euro; und gilt
    für zwei Erwachsene und bis zu drei Kinder.</p>
    <p>Ermäßigt zahlen Schüler, Studierende und Menschen mit Schwerbehindertenausweis. Bezahlt wird
    bar oder mit Karte.</p>
""",
    ),
    "/kurse": (
        "Kurse – Stadtbad Nord",
        """
    <h1>Kurse</h1>
    <h2>Für Kinder</h2>
    <p>Der Anfängerkurs „Seepferdchen“ hat zwölf Stunden und kostet 108&nbsp;&euro;. Er beginnt am
    14.&nbsp;September, dienstags und freitags um 15:15&nbsp;Uhr. Kinder müssen fünf Jahre alt
      sein.</p>
    <h2>Für Erwachsene</h2>
    <ul>
      <li>Kraulen lernen: mittwochs 19:45&nbsp;Uhr, acht Abende, 96&nbsp;&euro;</li>
      <li>Wassergymnastik: donnerstags 9:30&nbsp;Uhr, 7&nbsp;&euro; die Stunde, ohne Anmeldung</li>
      <li>Tauchen für Anfänger: ein Wochenende im Oktober, 140&nbsp;&euro;</li>
    </ul>
    <p>Anmeldung an der Kasse oder unter
      <a href="mailto:kurse@stadtbad-nord.example">kurse@stadtbad-nord.example</a>.</p>
""",
    ),
    "/barrierefreiheit": (
        "Barrierefreiheit – Stadtbad Nord",
        """
    <h1>Barrierefreiheit</h1>
    <p>Das Bad ist barrierefrei. Der Eingang an der Gartenseite hat keine Stufen, und ein Aufzug
    führt zu den Umkleiden.</p>
    <ul>
      <li>Ein Lifter hebt bis zu 150&nbsp;kg ins große Becken. Bitte am Vortag anmelden.</li>
      <li>Zwei Umkleiden haben eine Liege und eine Dusche ohne Schwelle.</li>
      <li>Blindenhunde dürfen bis zum Beckenrand.</li>
    </ul>
    <p>Begleitpersonen mit dem Vermerk „B“ haben freien Eintritt. Drei Parkplätze liegen vor dem
    Haupteingang.</p>
""",
    ),
    "/impressum": (
        "Impressum – Stadtbad Nord",
        """
    <h1>Impressum</h1>
    <address>Bäderbetriebe Nordstadt gGmbH<br>Mühlstraße 41<br>04999 Nordstadt</address>
    <p>Telefon: <a href="tel:+4934299001120">+49 34299 00112-0</a><br>
    E-Mail: <a href="mailto:info@stadtbad-nord.example">info@stadtbad-nord.example</a></p>
    <p>Geschäftsführerin: Mareike Tönnies. Amtsgericht Nordstadt, HRB 20417.</p>
""",
    ),
}

LIBRARY_NAV = [("/", "Library"), ("/hours", "Hours"), ("/events", "Events")]
LIBRARY_FOOT = "Alderton Public Library, 2 Market Square, Alderton"

LIBRARY_PAGES = {
    "/": (
        "Alderton Public Library",
        """
    <h1>Alderton Public Library</h1>
    <p>A library card is free for everybody who lives or works in Alderton. Bring a letter with your
    address. Up to twelve books may be borrowed for four weeks.</p>
    <p>Late books cost 20&nbsp;pence a day, up to five pounds. See <a href="hours">our hours</a> and
    <a href="events">what is on</a>. Northwind&rsquo;s weather station on our roof can be read at
    <a href="http://northwind.example/">northwind.example</a>.</p>
""",
    ),
    "/hours": (
        "Hours – Alderton Public Library",
        """
    <h1>Opening hours</h1>
    <ul>
      <li>Monday, Tuesday, Thursday: 10:00 to 18:00</li>
      <li>Wednesday: 10:00 to 20:00</li>
      <li>Friday: closed</li>
      <li>Saturday: 9:30 to 13:00</li>
    </ul>
    <p>The reading room opens an hour earlier. The book drop in Mill Street is open day and
      night.</p>
""",
    ),
    "/events": (
        "Events – Alderton Public Library",
        """
    <h1>Events</h1>
    <dl>
      <dt>Story time</dt><dd>Saturdays at 10:15, for children from three to six</dd>
      <dt>Repair evening</dt><dd>First Wednesday of the month, 18:00, bring what is broken</dd>
      <dt>Map collection</dt><dd>Guided tour on 12&nbsp;May at 16:30, eight places</dd>
    </dl>
""",
    ),
}


@lru_cache(maxsize=1)
def every() -> dict[tuple[str, str], str]:
    """All small pages, as text, by host and path."""
    made: dict[tuple[str, str], str] = {}
    for host, lang, nav, foot, group in (
        (NORTHWIND, "en", NORTHWIND_NAV, NORTHWIND_FOOT, NORTHWIND_PAGES),
        (BATH, "de", BATH_NAV, BATH_FOOT, BATH_PAGES),
        (LIBRARY, "en", LIBRARY_NAV, LIBRARY_FOOT, LIBRARY_PAGES),
    ):
        for path, (title, body) in group.items():
            made[host, path] = document(lang, title, nav, body, foot)
    return made

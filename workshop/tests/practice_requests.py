"""Tools and requests that are nowhere else in the repository, with the call that should come.

Written before the first run against the practice chat. Of `expected`, every value must be the
call's; a value of ANY only has to be there.
"""

from __future__ import annotations

from typing import Any

ANY = object()
TEXT = {"type": "string"}


def tool(
    name: str, description: str, required: list[str], properties: dict[str, Any]
) -> dict[str, Any]:
    """A tool as it stands in a request."""
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    tool(
        "convert_currency",
        "Converts an amount of money from one currency into another at today's rate.",
        ["amount", "from_currency", "to_currency"],
        {
            "amount": {"type": "number", "exclusiveMinimum": 0},
            "from_currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "to_currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
    ),
    tool(
        "water_garden_bed",
        "Opens the valve of a garden bed for some minutes.",
        ["bed", "minutes"],
        {
            "bed": {"type": "string", "enum": ["roses", "herbs", "lawn", "vegetables"]},
            "minutes": {"type": "integer", "minimum": 1, "maximum": 120},
        },
    ),
    tool(
        "play_song",
        "Plays a song or an album on a loudspeaker of the house.",
        ["title"],
        {"title": TEXT, "artist": TEXT, "room": TEXT},
    ),
    tool(
        "shorten_link",
        "Makes a short link for a long web address.",
        ["url"],
        {"url": {"type": "string", "format": "uri"}, "alias": TEXT},
    ),
    tool(
        "find_recipe",
        "Finds recipes by ingredients or by the name of the dish.",
        ["query"],
        {"query": TEXT, "max_minutes": {"type": "integer"}},
    ),
    tool(
        "log_workout",
        "Records a training session: the kind of sport and how long it took.",
        ["sport", "minutes"],
        {
            "sport": {"type": "string", "enum": ["running", "swimming", "cycling", "yoga"]},
            "minutes": {"type": "integer"},
            "distance_km": {"type": "number"},
        },
    ),
    tool(
        "scan_receipt",
        "Reads the sum and the shop from a photograph of a receipt.",
        ["file_path"],
        {"file_path": {"type": "string", "description": "Path of the picture."}},
    ),
    tool(
        "register_bird_sighting",
        "Enters a bird that was seen into the county's list.",
        ["species", "seen_on"],
        {
            "species": TEXT,
            "seen_on": {"type": "string", "format": "date"},
            "count": {"type": "integer"},
        },
    ),
    tool(
        "lend_tool",
        "Hands a tool of the workshop out to a member of the club.",
        ["member", "inventory_number"],
        {"member": TEXT, "inventory_number": TEXT},
    ),
    tool(
        "dim_lamp",
        "Sets the brightness of a lamp in percent.",
        ["room", "percent"],
        {"room": TEXT, "percent": {"type": "integer", "minimum": 0, "maximum": 100}},
    ),
    tool(
        "subscribe_alerts",
        "Puts a mail address on the list that gets flood warnings.",
        ["email"],
        {"email": {"type": "string", "format": "email"}},
    ),
    tool(
        "look_up_bus",
        "Tells when the next buses leave from a stop.",
        ["stop"],
        {"stop": TEXT, "line": TEXT},
    ),
    tool(
        "pin_note",
        "Pins a short note to the family's board in the kitchen.",
        ["text"],
        {"text": {"type": "string", "maxLength": 200}, "colour": TEXT},
    ),
    tool(
        "call_taxi",
        "Orders a taxi to an address.",
        ["pickup_address", "phone"],
        {"pickup_address": TEXT, "phone": TEXT, "passengers": {"type": "integer"}},
    ),
    tool(
        "search_museum",
        "Searches the museum's collection for objects.",
        ["query"],
        {"query": TEXT, "century": {"type": "integer"}},
    ),
    tool(
        "tune_radio",
        "Tunes the radio to a frequency in megahertz.",
        ["frequency_mhz"],
        {"frequency_mhz": {"type": "number", "minimum": 87.5, "maximum": 108}},
    ),
]

REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "How much is 1,250.50 EUR in CHF?",
        "convert_currency",
        {"amount": 1250.5, "from_currency": "EUR", "to_currency": "CHF"},
    ),
    (
        "Bitte gieß die Kräuter zwanzig Minuten lang",
        "water_garden_bed",
        {"bed": ANY, "minutes": 20},
    ),
    ('Play "Blue Lanterns" by Ada Moss in the kitchen', "play_song", {"title": "Blue Lanterns"}),
    (
        "Mach mir einen kurzen Link aus https://maps.example/route?from=a&to=b",
        "shorten_link",
        {"url": "https://maps.example/route?from=a&to=b"},
    ),
    ("Such ein Rezept mit Kürbis und Kichererbsen", "find_recipe", {"query": ANY}),
    (
        "I went swimming for 45 minutes, please record it",
        "log_workout",
        {"sport": "swimming", "minutes": 45},
    ),
    (
        "What does the receipt in photos/lunch-03.jpg add up to?",
        "scan_receipt",
        {"file_path": "photos/lunch-03.jpg"},
    ),
    (
        "Trag bitte ein: am 14.05.2026 habe ich drei Kiebitze gesehen",
        "register_bird_sighting",
        {"species": ANY, "seen_on": "2026-05-14"},
    ),
    (
        "Hand the drill W-118 out to Oskar Lindner",
        "lend_tool",
        {"member": "Oskar Lindner", "inventory_number": "W-118"},
    ),
    ("Dimm das Licht im Wohnzimmer auf 30 Prozent", "dim_lamp", {"room": ANY, "percent": 30}),
    (
        "Please put mara@hill.example on the list for flood warnings",
        "subscribe_alerts",
        {"email": "mara@hill.example"},
    ),
    ("When does the next bus leave from Market Square?", "look_up_bus", {"stop": "Market Square"}),
    (
        "Häng einen Zettel in die Küche: Milch und Hefe kaufen",
        "pin_note",
        {"text": "Milch und Hefe kaufen"},
    ),
    (
        "Bestell ein Taxi in die Lindenstraße 12, meine Nummer ist 0171 4455667",
        "call_taxi",
        {"pickup_address": ANY, "phone": "0171 4455667"},
    ),
    ("Are there any clay lamps in the museum's collection?", "search_museum", {"query": ANY}),
    ("Stell das Radio auf 98,4 Megahertz", "tune_radio", {"frequency_mhz": 98.4}),
]

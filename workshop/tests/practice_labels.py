"""Which tool of its card each of the catalogue's examples is for, by hand: 1 to 5, 0 is unclear.

The examples stand in the cards, five in English and then five in German.
"""

from __future__ import annotations

LABELS = {
    "access-manager": "1324531245",
    "calendar-planner": "1423512435",
    "chart-maker": "1234512345",
    "chat-messenger": "1234512345",
    "contract-reviewer": "1234512345",
    "course-coach": "1234512345",
    "db-analyst": "1334523340",
    "deploy-runner": "1234512345",
    "email-sender": "1234512345",
    "expense-clerk": "1234512345",
    "facility-desk": "1234512345",
    "fleet-manager": "1245312435",
    "hotel-booker": "1234512345",
    "incident-pager": "1234512345",
    "inventory-clerk": "1234512345",
    "invoice-writer": "1234512345",
    "it-helpdesk": "1234512345",
    "leave-manager": "1325412345",
    "log-searcher": "1234512345",
    "meeting-scribe": "1345231000",
    "metrics-watcher": "1123512345",
    "newsletter-editor": "1234512345",
    "order-desk": "1234512345",
    "payroll-clerk": "1234512345",
    "price-setter": "1234512345",
    "proofreader": "1234512345",
    "recruiter": "1234512345",
    "reminder-keeper": "1123411235",
    "return-desk": "1234512345",
    "room-booker": "1234512534",
    "sheet-editor": "1234512345",
    "shipping-tracker": "3124531245",
    "slide-maker": "1234512345",
    "social-poster": "1245112345",
    "survey-maker": "1234512345",
    "task-tracker": "1234512345",
    "ticket-desk": "1234512345",
    "translator": "1324513245",
    "travel-booker": "1234512345",
    "weather-reporter": "1234512345",
}

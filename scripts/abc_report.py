"""What A against B against C prints and draws, from the figures of its arms. It counts nothing."""

from html import escape
from typing import Any

SHARES = {"agent": "right agent", "tool": "right tool", "answer": "answer", "answer_long": "long"}


def tables(arms: dict[str, dict[str, Any]]) -> str:
    """A row an arm, for people: what it costs, and what comes of it."""
    costs = [
        ["arm", "runs", "definitions", "results", "input", "output", "refused", "failed", "time"]
    ]
    came = [["arm", *SHARES.values(), "ghosts", "cut"]]
    for name, arm in arms.items():
        means = [f"{arm[key]:.0f}" for key in costs[0][2:6]]
        time = f"{arm['seconds']:.2f} s"
        if arm["refused"] == arm["runs"]:
            means, time = ["-"] * len(means), "-"
        costs.append(
            [name, str(arm["runs"]), *means, str(arm["refused"]), str(arm["failed"]), time]
        )
        shares = [percent(arm[key]) for key in SHARES]
        came.append([name, *shares, str(arm["kinds"].get("ghost", 0)), str(arm["cut"])])
    return f"{aligned(costs)}\n\n{aligned(came)}\n"


def percent(share: dict[str, Any]) -> str:
    """Example: 80% 49-94, where it lies with 95 %"""
    low, high = (round(100 * end) for end in share["between"])
    return f"{share['share']:.0%} {low}-{high}" if share["of"] else "-"


def aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.rjust(wide) for cell, wide in zip(row, widths, strict=True)][1:] for row in rows]
    first = [row[0].ljust(widths[0]) for row in rows]
    return "\n".join("  ".join([name, *line]) for name, line in zip(first, lines, strict=True))


def notes(arms: dict[str, dict[str, Any]]) -> str:
    """What makes an arm's figures others than they look."""
    said = []
    for name, arm in arms.items():
        of = f"of {arm['runs']} runs"
        if arm["refused"]:
            said.append(f"{name}: {arm['refused']} {of} refused by the endpoint, and counted out")
        if arm["cut"]:
            said.append(f"{name}: {arm['cut']} {of} cut by the endpoint: its input is what it read")
        if arm["estimated"]:
            said.append(f"{name}: {arm['estimated']} {of} with tokens of our own estimate")
    return "\n".join(said)


def claims(arms: dict[str, dict[str, Any]]) -> str:
    """What routing saves in definitions, and the store in results. Only where both were run."""
    said = []
    most = {name: arm for name, arm in arms.items() if name[0] == "A" and arm["definitions"]}
    largest = max(most, key=lambda name: int(name[1:]), default="")
    pairs = [("definitions", "tool definitions a request", "B", largest)]
    pairs += [("results_long", "on the long page, results, counted once", "C", "B")]
    pairs += [("input_long", "on the long page, whole runs", "C", "B")]
    for key, what, one, other in pairs:
        if one in arms and other in arms and arms[one][key] and arms[other][key]:
            less = 1 - arms[one][key] / arms[other][key]
            said.append(f"{what}: {one} has {less:.1%} less than {other}")
    return "\n".join(said)


def plot(arms: dict[str, dict[str, Any]], about: str) -> str:
    """An SVG: a bar of input tokens for each arm, and a dot for its share of right tools.

    The line through the dot is where the share lies with 95 %.
    """
    wide, high, most = 90 * len(arms) + 60, 220, max(arm["input"] for arm in arms.values()) or 1
    shapes = []
    for place, (name, arm) in enumerate(arms.items()):
        left, tall, tool = 50 + 90 * place, high * arm["input"] / most, arm["tool"]
        bottom, top, at = (30 + high * (1 - x) for x in (*tool["between"], tool["share"]))
        under, label, dot = f"{arm['input']:.0f}", "", ""
        if tool["of"]:
            label = f"{name}: {under} tokens, right tool {percent(tool)}"
            dot = (
                f'<line x1="{left + 25}" x2="{left + 25}" y1="{bottom:.1f}" y2="{top:.1f}" '
                f'stroke="#e45756"/><circle cx="{left + 25}" cy="{at:.1f}" r="6" fill="#e45756"/>'
            )
        elif arm["refused"]:
            under, label = "refused", f"{name}: refused by the endpoint"
        shapes += [
            f'<g><title>{label}</title><rect x="{left}" y="{30 + high - tall:.1f}" width="50" '
            f'height="{tall:.1f}" fill="#4c78a8"/>{dot}<text x="{left + 25}" y="{high + 48}">'
            f'{name}</text><text x="{left + 25}" y="{high + 64}">{under}</text></g>'
        ]
    title = escape(f"Bars: input tokens a request. Dots: share of right tools. {about}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high + 80}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="currentColor" text-anchor="middle">'
        f"<title>{title}</title>{''.join(shapes)}"
        f'<text x="10" y="16" text-anchor="start">{title}</text></svg>\n'
    )

"""What a training step cost, as bars in a terminal and as a page of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from torchdoctor.model import Outcome
from torchdoctor.training.proofs import Costs

WIDE = 40
COLOURS = {"computing": "#4e79a7", "waiting for input": "#f28e2b", "communication": "#e15759"}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>torchdoctor train-check</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 46em; color: #222; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .2em 1em .2em 0; text-align: left; }}
.clear {{ color: #2a7; }} .found {{ color: #c22; }} .unknown {{ color: #888; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #181818; color: #ddd; }} }}
</style></head><body>
<h1>{headline}</h1>
<table><tr><th>Proof</th><th>Outcome</th><th></th></tr>
{rows}
</table>
{chart}
</body></html>
"""


def parts(costs: Costs) -> dict[str, float]:
    """Return the shares of a step; together they are one."""
    wait, talk = costs.input_share, costs.communication_share
    return {
        "computing": max(1.0 - wait - talk, 0.0),
        "waiting for input": wait,
        "communication": talk,
    }


def bars(costs: Costs) -> Iterator[str]:
    """Yield a row with a bar for each share, and one for the scaling efficiency."""
    for name, share in parts(costs).items():
        yield f"{name:<20}{share:>6.1%}  {'#' * round(WIDE * share)}".rstrip()
    if costs.efficiency is not None:
        bar = "#" * round(WIDE * min(costs.efficiency, 1.0))
        yield f"{'scaling efficiency':<20}{costs.efficiency:>6.1%}  {bar}".rstrip()


def page(
    headline: str, outcomes: tuple[Outcome, ...], costs: Costs | None, losses: list[float]
) -> str:
    """Return a page of HTML that needs nothing else."""
    rows = "\n".join(
        f'<tr><td>{escape(o.check)}</td><td class="{o.status}">{o.status}</td>'
        f"<td>{escape(o.findings[0].summary if o.findings else o.reason)}</td></tr>"
        for o in outcomes
    )
    drawn = "" if costs is None else _strip(costs)
    return PAGE.format(headline=escape(headline), rows=rows, chart=drawn + _curve(losses))


def _strip(costs: Costs) -> str:
    at, shapes, legend = 0.0, [], []
    for name, share in parts(costs).items():
        colour = COLOURS[name]
        shapes.append(
            f'<rect x="{at * 600:.1f}" width="{share * 600:.1f}" height="30" fill="{colour}"/>'
        )
        legend.append(f'<span style="color:{colour}">&#9632;</span> {name} {share:.1%}')
        at += share
    efficient = ""
    if costs.efficiency is not None:
        efficient = f"<p>Scaling efficiency {costs.efficiency:.1%}.</p>"
    return (
        f"<h2>A step of {costs.step * 1000:.1f} ms</h2>"
        f'<svg viewBox="0 0 600 30" width="600" role="img">{"".join(shapes)}</svg>'
        f"<p>{' &nbsp; '.join(legend)}</p>{efficient}"
    )


def _curve(losses: list[float]) -> str:
    if len(losses) < 2:  # noqa: PLR2004 - no line through one point
        return ""
    low, high = min(losses), max(losses)
    points = " ".join(
        f"{600 * i / (len(losses) - 1):.1f},{150 - 140 * (v - low) / max(high - low, 1e-300):.1f}"
        for i, v in enumerate(losses)
    )
    return (
        f"<h2>Loss of {len(losses)} steps, {losses[0]:.4g} to {losses[-1]:.4g}</h2>"
        f'<svg viewBox="0 0 600 160" width="600" role="img"><polyline points="{points}" '
        f'fill="none" stroke="{COLOURS["computing"]}" stroke-width="2"/></svg>'
    )

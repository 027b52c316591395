"""Experiments of papers repeated on simulated robots and a measured log, their tables beside ours.

=============== ================================================================
module          content
=============== ================================================================
`published`     every number of a paper that ours stand beside, once
`twin`          the simulated TX40, whose parameters are known (two TOML files)
`measured`      the log of a TX40, and references rebuilt for it
`experiment`    its references, controllers, encoders and random torques
`brunot2019`    output error methods: CLIE, CLOE and DIDIM beside least squares
`ardiani2024`   instrumental variables and constraints, five scenarios
`zhang2018`     a survey's methods on an arm of its robot's class
`routes`        other routes from a log to standard parameters
`report`        tables and remarks as plain text
`picture`       figures as PNG
=============== ================================================================

A paper's package has `simulated` (the robot and its logs), `estimated` (which methods on
which of them), `tables` and `remarks`; its `reproduce_paper` does it all.
"""

from __future__ import annotations

from collections.abc import Callable

from dynident.core.threads import limit_to_one_thread
from dynident_papers import ardiani2024, brunot2019, zhang2018
from dynident_papers.report import Reproduction

REPRODUCTIONS: dict[str, Callable[..., Reproduction]] = {
    "ardiani2024": limit_to_one_thread(ardiani2024.reproduce_paper),
    "brunot2019": limit_to_one_thread(brunot2019.reproduce_paper),
    "zhang2018": limit_to_one_thread(zhang2018.reproduce_paper),
}
"""Experiments by name: ``progress`` is called with the name and the share that is done, ``reduced``
is a shorter form, ``timed`` adds computing times, which make the text differ from run to run, and
``engine`` runs cases side by side. A ComputationError is raised where the robot itself cannot be
simulated; methods that fail are printed."""

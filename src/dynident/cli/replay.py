"""``dynident replay``: an identified model in another engine, under the law of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import JsonFlag, LogFlags, PageOption, add_log_flags
from dynident.cli.output import paint_verdict, print_json, refuse_over_inputs, say, write_page


@add_log_flags
def replay(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT.json|STUDY.toml",
            help="The robot file as it stands, under the [controller] of a study.",
        ),
    ],
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG",
            help="a,b for side by side; those that the result's study holds out, or else fits, if "
            "not given.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="dynident, mujoco or pinocchio.")
    ] = "dynident",
    robot: Annotated[
        str | None,
        typer.Option(
            "--robot", metavar="FILE", help="Use this robot file unchanged instead of a result."
        ),
    ] = None,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Simulate a result, or a robot's file, under a log's law, in an engine and in ours."""
    from dynident.core.errors import name_study_in_errors
    from dynident.report.fit import Fit
    from dynident.report.html import judge_trust
    from dynident.report.pages import render_replays_page
    from dynident.report.replays import SCHEMA
    from dynident.report.text import format_trust
    from dynident.study.fits import read_result
    from dynident.study.replay import replay, replay_own_logs
    from dynident.study.study import Study, list_input_files, read_study

    told.refuse_without(logs, "a log")
    given = [source, *(logs or ()), *([] if robot is None else [Path(robot)])]
    refuse_over_inputs([page], given)
    own: Fit | Study
    own = read_study(source, None) if source.suffix == ".toml" else read_result(source)
    if isinstance(own, Study):
        refuse_over_inputs([page], [Path(each) for each in list_input_files(own)])
    else:
        refuse_over_inputs([page], [], [own])
    if logs:
        with name_study_in_errors(None, stored=True):
            found = [replay(own, text.split(","), engine, told.layout, robot) for text in logs]
    else:
        found = replay_own_logs(own, engine, robot)
    say("warning", (words for each in found for words in each.warnings))
    named = own.robot.name if isinstance(own, Fit) else Path(own.robot.file).stem
    trusted = [*judge_trust(own)] if isinstance(own, Fit) else []
    if json:
        every = [each.document() for each in found]
        document = every[0] if len(every) == 1 else {"schema": SCHEMA, "logs": every}
        verdict = {"verdict": own.verdict.state} if isinstance(own, Fit) else {}
        print_json({**document, **verdict})
    else:
        trust = [paint_verdict(format_trust(own))] if isinstance(own, Fit) else []
        typer.echo("\n\n".join([*trust, *(each.text() for each in found)]))
    write_page(page, lambda: render_replays_page(named, trusted, found))

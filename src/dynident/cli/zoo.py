"""``dynident zoo``: robots that were identified from public logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import AnywayFlag, JsonFlag, declare_directory
from dynident.cli.output import paint_verdict, print_answer, say, say_written
from dynident.core.errors import InputError


def zoo(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="Robot to show.")
    ] = None,
    output: Annotated[
        Path | None,
        declare_directory("Directory of its result.json, model, report.html and NOTICE."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html.")
    ] = True,
    json: JsonFlag = False,
    anyway: AnywayFlag = False,
) -> None:  # fmt: skip
    """List identified robots with their errors and verdicts, or write one's files."""
    from dynident.core.files import refuse_outputs, write_files
    from dynident.fit.json import serialise_result
    from dynident.fit.zoo import find_zoo_entry, format_zoo, tabulate_zoo
    from dynident.report.fit import OUTPUTS
    from dynident.study.fits import read_zoo

    if name is None:
        if output is not None:
            raise InputError("-o needs the name of one robot: dynident zoo NAME -o DIR")
        rows = tabulate_zoo()
        print_answer(
            json, lambda: [row._asdict() for row in rows], lambda: "\n".join(format_zoo(rows))
        )
        return
    entry, notes = find_zoo_entry(name), tuple[str, ...]()
    fit = read_zoo(name)
    if output is not None:
        notice = "NOTICE"
        refuse_outputs([output / each for each in (*OUTPUTS, notice)])
        contents, notes = fit.render_files(output, report, anyway)
        contents[output / notice] = entry.notice.encode()
        write_files(contents, OUTPUTS.__contains__)
    print_answer(json, lambda: serialise_result(fit, output), lambda: paint_verdict(fit.summary()))
    say("note", notes)
    say_written(output)

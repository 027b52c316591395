"""``dynident doctor``: what is wrong with logs, and a study that repairs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.options import JsonFlag, LogFlags, PageOption, add_log_flags, refuse_study_output
from dynident.cli.output import print_answer, say, say_written, write_page
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors

if TYPE_CHECKING:
    from dynident.fit.doctor import Report
    from dynident.study.study import Study


@add_study_flags("validate")
@add_log_flags
def doctor(
    given: StudyFlags,
    fix: Annotated[
        Path | None,
        typer.Option("--fix", help="Write a copy of the study, or one, with its logs repaired."),
    ] = None,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Find what is wrong with logs: signs, orders, units, delays, offsets, stuck signals."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.study.doctor import doctor, render_repaired_study
    from dynident.study.study_text import render_study

    chosen, study = given.read(told), given.study
    inputs = given.list_inputs(chosen)
    if fix is not None:
        refuse_study_output(fix, "--fix", study, inputs)
    refuse_outputs([each for each in (page, fix) if each is not None], inputs)
    with show_progress() as progress, name_study_in_errors(study):
        reports = doctor(chosen, progress)
    print_answer(
        json,
        lambda: [build_report_dict(report) for report in reports],
        lambda: format_reports(reports),
    )
    say("warning", (words for report in reports for words in report.warnings))
    write_page(page, lambda: render_study_page(chosen, reports))
    repairable = any(report.repairable for report in reports)
    if fix is None:
        if study is None and repairable:
            say("next", ["--fix study.toml writes a study with these repairs"])
        return
    if not repairable:
        raise InputError("nothing was found that a study can repair; no study is written")
    text = render_study(chosen, fix.parent) if study is None else study.read_text("utf-8-sig")
    write_files({fix: render_repaired_study(text, reports).encode()})
    say_written(fix)


def render_study_page(study: Study, reports: Sequence[Report]) -> str:
    """What was found, beside the logs of a study."""
    from dynident.report.pages import render_doctor_page
    from dynident.study.study import load_study_robot, read_study_recordings

    robot = load_study_robot(study)
    logs = read_study_recordings(study, robot, torque=study.controller is None)
    joints = {joint.name: joint.kind == "prismatic" for joint in robot.joints}
    return render_doctor_page(robot.name, reports, joints, logs)


def format_reports(reports: Sequence[Report]) -> str:
    """What was found in logs."""
    from dynident.core.words import format_entry

    lines = []
    for report in reports:
        lines += format_entry("log", report.log)
        for sign in report.dead:  # which no finding is of
            lines += format_entry("sign", sign.what)
        for found in report.findings:
            gain = f" ({found.gain})" if found.gain else ""
            lines += format_entry("finding", f"{found.found}{gain}")
            if found.other:
                lines += format_entry("", f"next best: {found.other}")
            lines += format_entry("repair", found.remedy)
        for sign in (own for own in report.signs if own not in report.dead):
            lines += format_entry("sign", sign.what)
        if not report.findings and not report.signs:
            lines += format_entry(
                "finding", "none: no alternative hypothesis explains the log clearly better"
            )
    return "\n".join(lines)


def build_report_dict(report: Report) -> dict[str, Any]:
    """The same as plain data."""
    from dynident.fit.json import serialise_finding

    return {
        "log": report.log,
        "findings": [serialise_finding(found) for found in report.findings],
        "signs": [asdict(sign) for sign in report.signs],
        "warnings": list(report.warnings),
    }

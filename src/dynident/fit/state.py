"""Forms of what plain data cannot hold as it is: models, what estimates have, logs."""

from __future__ import annotations

from dynident.core.plain import Forms, PlainForm
from dynident.core.schema import Spec
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.plain import make_base, put_base
from dynident.estimators import plain
from dynident.fit.logs import Logs, LogsGone

GONE = "the logs of this fit are not available; read it where they are"

FORMS: Forms = {
    BaseParameters: PlainForm(put_base, make_base),
    **plain.FORMS,
    Logs: PlainForm(lambda _: None, lambda _: LogsGone(GONE)),
    Spec: PlainForm(lambda _: None, lambda _: None),
}
"""Residuals, logs and the study are not of the state: the study is among the settings."""

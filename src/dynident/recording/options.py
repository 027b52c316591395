"""What may be said of a log beside its columns: how its time, its faults and its base are meant."""

from __future__ import annotations

from dynident.filters.clock import ClockOptions
from dynident.recording.commanded import DriveLaw
from dynident.recording.floating import FloatingOptions
from dynident.recording.repairs import LogRepair

CLOCKING = ClockOptions
LOG_OPTIONS = (CLOCKING, LogRepair, DriveLaw, FloatingOptions)

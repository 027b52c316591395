"""The errors that dynident raises on purpose.

Every message is one line that names the file, the row or the key, and what to try.
"""

from __future__ import annotations


class DynidentError(Exception):
    """Anything that dynident refuses or fails at, with a reason a user can act on."""


class InputError(DynidentError):
    """The input cannot be used: a file, a key, a value or their combination."""


class ComputationError(DynidentError):
    """The input was fine but no trustworthy answer came out of it."""


class RolloutError(ComputationError):
    """A simulation that could not go on: no robot's mass matrix, or a motion that diverges."""


class InfeasibleError(ComputationError):
    """Constraints that contradict each other.

    Parameters
    ----------
    conflict : tuple of str
        Names of constraints that cannot all hold, none of which could be spared.
    """

    def __init__(self, conflict: tuple[str, ...]) -> None:
        self.conflict = conflict
        shown = ", ".join(conflict[:8])
        if len(conflict) > 8:
            shown += f" and {len(conflict) - 8} more"
        super().__init__(f"the constraints contradict each other: {shown} cannot all hold")

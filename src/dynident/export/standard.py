"""A full set of standard parameters as a robot model."""

from __future__ import annotations

from dynident.export.urdf import model_urdf
from dynident.idim import Idim
from dynident.inertia import Array


def standard_urdf(idim: Idim, theta: Array) -> tuple[bytes, tuple[str, ...]]:
    """The URDF of standard parameters, and notes on what has no place in one.

    Parameters
    ----------
    idim : Idim
    theta : ndarray, shape (standard parameters,)

    Raises
    ------
    ComputationError
        When a body's parameters cannot be written.
    """
    drives = list(enumerate(idim.parameters))[idim.inertial :]
    own = {(p.number, p.symbol): float(theta[k]) for k, p in drives}
    numbers = range(1, idim.robot.n + 1)

    def every(symbol: str) -> list[float] | None:
        values = [own[j, symbol] for j in numbers if (j, symbol) in own]
        return values if len(values) == idim.robot.n else None

    return model_urdf(
        idim.robot,
        theta[: idim.inertial].reshape(-1, 10),
        damping=every("fv"),
        friction=every("fc"),
        omitted=[p.name for _, p in drives if p.symbol not in ("fv", "fc")],
    )

"""What other commands read of a result.json: its keys and their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dynident.core.schema import Name, Number
from dynident.dynamics.equations import Observed, Sensor
from dynident.robot.model import Equations

Finite = Annotated[Number, Field(gt=-1e30, lt=1e30)]
"""A number whose squares and products are finite too."""


class Part(BaseModel):
    """A part of result.json; what other parts there are is left aside."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class StoredParameter(Part):
    """A base parameter."""

    name: Name
    value: Finite
    std: Finite | None = None
    regrouping: str


class StoredShape(Part):
    """A parameter that the torque is not linear in."""

    name: Name
    value: Finite


class StoredSensor(Part):
    """What was estimated of a sensor of forces."""

    name: Name
    value: Finite


class StoredLink(Part):
    """A link's inertial parameters about its centre of mass, in its joint frame."""

    link: Name
    mass: Finite
    com: tuple[Finite, Finite, Finite]
    inertia_com: tuple[Finite, Finite, Finite, Finite, Finite, Finite]


class StoredJoint(Part):
    """A joint's rotor inertia and friction."""

    name: Name
    Ia: Finite | None = None
    Iam: Finite | None = None
    friction: dict[str, Finite | None]

    def values(self) -> dict[str, float]:
        """What is known of the drive, by symbol."""
        every = {"Ia": self.Ia, "Iam": self.Iam, **self.friction}
        return {symbol: value for symbol, value in every.items() if value is not None}


class StoredObserved(Part):
    """What a kind of log could show."""

    equations: Equations
    still: bool
    locked: tuple[tuple[int, Finite], ...]
    free: tuple[tuple[Name, ...], ...]
    sensors: tuple[tuple[Name, str], ...] = ()

    def observed(self) -> Observed:
        """As the model has it."""
        sensors = tuple(Sensor(*each) for each in self.sensors)
        return Observed(self.equations, self.still, self.locked, self.free, sensors)


class StoredLoop(Part):
    """How the loop was simulated."""

    width: tuple[Finite, ...] | Name | None = None


class StoredSettings(Part):
    """What shaped the result."""

    study: dict[str, Any]
    observed: tuple[StoredObserved, ...] = ()
    sigma: tuple[Finite, ...] | None = None
    lowpass_hz: Annotated[Number, Field(gt=0.0)]
    score: Literal["all", "moving"] = "all"
    simulation: StoredLoop = StoredLoop()


class StoredFree(Part):
    """Errors of free simulations of one log."""

    use: Name
    horizon_s: Finite | None
    rms_mrad: dict[str, Finite]


class Document(Part):
    """What other commands need of a result.json."""

    method: Name
    settings: StoredSettings
    covariance_matrix: tuple[tuple[Finite, ...], ...] | None = None
    fitted_covariance: tuple[tuple[Finite, ...], ...] | None = None
    prior_weight: Finite | None = None
    parameters: tuple[StoredParameter, ...]
    shape: tuple[StoredShape, ...] = ()
    sensors: tuple[StoredSensor, ...] = ()
    fitted: tuple[StoredShape, ...] = ()
    free_simulation: tuple[StoredFree, ...] = ()
    standard: tuple[StoredLink, ...] | None
    joints: tuple[StoredJoint, ...]

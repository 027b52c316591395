"""The control law inside the kernel: outputs, states, model compensation, tangents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import entry, inner, wide
from dynident.plant.state import fill_mass_and_bias, linearise_bodies

PLAIN, GRAVITY, COMPUTED_TORQUE = 0, 1, 2
GAIN, BIAS, DELAY, SPEED, PLACE = 0, 1, 2, 3, 4
"""Parameters of the loop itself that a motion is differentiated by."""


class Law(NamedTuple):
    """A `Controller` on the integrator's clock.

    Attributes
    ----------
    A, B, C, D, antiwindup, band, gain, limit : ndarray
        See `dynident.control.controller.Controller`.
    hold : int
        Integration steps between two outputs; 0 is continuous.
    delay : int
        Integration steps from measurement to torque.
    compensation : int
        PLAIN, GRAVITY or COMPUTED_TORQUE.
    phi : ndarray, shape (bodies, 10)
    rotors : ndarray, shape (dof, dof)
        The model that compensates.
    held : int
        1 where targets are held from sample to sample; 0 where they move smoothly between.
    late : float
        Samples by which held targets come late.
    bias : ndarray, shape (n,)
        What the encoders read at zero [rad or m].
    parameter : ndarray of int, shape (k, 3)
        Loop parameters to differentiate by: GAIN, BIAS, DELAY, SPEED or PLACE, the
        joint, the column.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    antiwindup: Array
    band: Array
    gain: Array
    limit: Array
    hold: int
    delay: int
    compensation: int
    phi: Array
    rotors: Array
    held: int
    late: float
    bias: Array
    parameter: Integers


@inner
def fill_linear_output(C, D, limit, w, z, v, raw):  # type: ignore[no-untyped-def]
    """``v = sat(C z + D w)`` joint by joint; `raw` keeps the unlimited output."""
    for j in range(len(v)):
        u = 0.0
        for i in range(5):
            u += D[j, i] * w[j, i]
        for i in range(C.shape[1]):
            u += C[j, i] * z[j, i]
        raw[j] = u
        v[j] = min(max(u, -limit[j]), limit[j])


@entry
def weigh_input(error, band):  # type: ignore[no-untyped-def]
    """The share of its input that a state takes at a position error, and its slope by that."""
    size = abs(error)
    if band <= 0.0 or size >= 2.0 * band:
        return 1.0, 0.0
    if size <= band:
        return 0.0, 0.0
    return size / band - 1.0, np.sign(error) / band


@inner
def sum_input(law, w, z, j, i):  # type: ignore[no-untyped-def]
    """What moves state i of joint j's controller, beside itself and its limit."""
    value = 0.0
    for k in range(5):
        value += law.B[j, i, k] * w[j, k]
    for k in range(law.A.shape[1]):
        if k != i:
            value += law.A[j, i, k] * z[j, k]
    return value


@inner
def fill_next_state(law, w, z, v, raw, out):  # type: ignore[no-untyped-def]
    """``A z + B w + antiwindup (sat(u) - u)``: the next state, or its rate."""
    for j in range(len(v)):
        for i in range(law.A.shape[1]):
            share, _ = weigh_input(w[j, 0] - w[j, 3], law.band[j, i])
            value = law.antiwindup[j, i] * (v[j] - raw[j])
            for k in range(5):
                value += share * law.B[j, i, k] * w[j, k]
            for k in range(law.A.shape[1]):
                value += (1.0 if k == i else share) * law.A[j, i, k] * z[j, k]
            out[j, i] = value


@wide
def fill_linear_tangent(C, D, SQ, SV, SZ, first, Sraw):  # type: ignore[no-untyped-def]
    """Sensitivities of the unlimited output: of position, velocity and states."""
    columns = SQ.shape[1]
    for j in range(len(C)):
        kq, kd = D[j, 3], D[j, 4]
        for c in range(columns):
            Sraw[j, c] = kq * SQ[first + j, c] + kd * SV[first + j, c]
        for i in range(C.shape[1]):
            k = C[j, i]
            for c in range(columns):
                Sraw[j, c] += k * SZ[j, i, c]


@wide
def fill_state_tangent(law, w, z, v, raw, SQ, SV, SZ, first, Sraw, out):  # type: ignore[no-untyped-def]
    """Sensitivities of `fill_next_state`."""
    columns = SQ.shape[1]
    for j in range(len(v)):
        limited = v[j] != raw[j]
        for i in range(law.A.shape[1]):
            share, slope = weigh_input(w[j, 0] - w[j, 3], law.band[j, i])
            kq, kd = share * law.B[j, i, 3], share * law.B[j, i, 4]
            if slope != 0.0:
                kq -= slope * sum_input(law, w, z, j, i)
            back = -law.antiwindup[j, i] if limited else 0.0
            for c in range(columns):
                out[j, i, c] = kq * SQ[first + j, c] + kd * SV[first + j, c] + back * Sraw[j, c]
            for k in range(law.A.shape[1]):
                factor = (1.0 if k == i else share) * law.A[j, i, k]
                for c in range(columns):
                    out[j, i, c] += factor * SZ[j, k, c]


@wide
def fill_compensated_torque(tree, law, s, q, dq, SQ, SV, u, SU):  # type: ignore[no-untyped-def]
    """Torque u of the limited outputs s.v with a model's compensation, and its tangent."""
    n, columns = SU.shape
    computed = law.compensation == COMPUTED_TORQUE
    gain, v, raw, a, M = law.gain, s.v, s.raw, s.trial, s.M
    fill_mass_and_bias(tree, law.phi, law.rotors, s, q, dq if computed else s.still)
    for j in range(n):
        a[j] = gain[j] * v[j] if computed else 0.0
    for j in range(n):
        u[j] = s.tau[j]
        if computed:
            for k in range(n):
                u[j] += M[j, k] * a[k]
        else:
            u[j] += gain[j] * v[j]
    if columns == 0:
        return
    linearise_bodies(tree, s, a)
    for j in range(n):
        for c in range(columns):
            SU[j, c] = 0.0
        for k in range(n):
            factor = 0.0
            if v[k] == raw[k]:
                weight = M[j, k] if computed else 1.0 * (j == k)
                factor = weight * gain[k]
            kq = s.K[j, k]
            kd = s.D[j, k] if computed else 0.0
            for c in range(columns):
                SU[j, c] += factor * s.Sraw[k, c] + kq * SQ[k, c] + kd * SV[k, c]


@inner
def interpolate_reference(reference, i, k, part, period, j):  # type: ignore[no-untyped-def]
    """Derivative i of joint j's reference, `part` of the way from sample k to the next.

    Cubic in position and velocity, whose slopes at the samples are known, and in acceleration
    the slope of the latter; else the order of the integrator would be lost.
    """
    a = reference[i, k, j]
    if part == 0.0 or k + 1 >= reference.shape[1]:
        return a
    b = reference[i, k + 1, j]
    if i == 2:
        rise = (reference[1, k + 1, j] - reference[1, k, j]) / period
        bend = 6.0 * part * (1.0 - part) * rise
        return bend + (1.0 - part) * (1.0 - 3.0 * part) * a + part * (3.0 * part - 2.0) * b
    slope_a, slope_b = period * reference[i + 1, k, j], period * reference[i + 1, k + 1, j]
    rest = 1.0 - part
    return rest * rest * ((1.0 + 2.0 * part) * a + part * slope_a) + part * part * (
        (1.0 + 2.0 * rest) * b - rest * slope_b
    )


@entry
def average_held_targets(reference, x, span, period, w, late):  # type: ignore[no-untyped-def]
    """Mean over a step of targets that are held from sample to sample, at sample x on.

    Targets that change within a step act as their mean over it, which is linear in their
    delay from one sample to the next: `late` receives the derivatives by the delay [1/s].
    """
    last = reference.shape[1] - 1
    cell = int(np.ceil(x)) - 1
    share = min(1.0, (cell + 1 - x) / span)
    slope = 0.0 if share >= 1.0 else 1.0 / (span * period)
    before, after = min(max(cell, 0), last), min(max(cell + 1, 0), last)
    for j in range(len(w)):
        for i in range(3):
            a, b = reference[i, before, j], reference[i, after, j]
            w[j, i] = share * a + (1.0 - share) * b
            late[j, i] = slope * (a - b)


@inner
def add_parameter_tangent(parameter, D, late, Sraw):  # type: ignore[no-untyped-def]
    """Add what biases and the delay of the targets do to the outputs at a given motion."""
    for c in range(len(parameter)):
        kind, joint, column = parameter[c]
        if kind == BIAS:
            Sraw[joint, column] += D[joint, 3]
        elif kind == DELAY:
            for j in range(len(D)):
                for i in range(3):
                    Sraw[j, column] += D[j, i] * late[j, i]


@wide
def fill_plain_torque(law, v, raw, parameter, Sraw, u, SU):  # type: ignore[no-untyped-def]
    """``gain * v``, and its tangent: of outputs beyond their limits none but that by the gain."""
    for j in range(len(v)):
        u[j] = law.gain[j] * v[j]
        factor = law.gain[j] if v[j] == raw[j] else 0.0
        for c in range(SU.shape[1]):
            SU[j, c] = factor * Sraw[j, c]
    if SU.shape[1]:
        for c in range(len(parameter)):
            if parameter[c, 0] == GAIN:
                SU[parameter[c, 1], parameter[c, 2]] += v[parameter[c, 1]]


@inner
def decide_torque(tree, law, inputs, s, k, part, begin, span, dq, z, SQ, SV, SZ, u):  # type: ignore[no-untyped-def]
    """What the controllers read (s.measured is given), their outputs, and their torque u.

    `part` is the share of sample k that has passed; the step has begun at `begin` and has the
    length `span`. Leaves s.w, s.late, s.v, s.raw, s.Snow.
    """
    n, columns = s.Snow.shape
    first = len(dq) - n
    reference, forward, w, v, raw = inputs.reference, inputs.forward, s.w, s.v, s.raw
    if law.held:
        average_held_targets(reference, k + begin - law.late, span, inputs.period, w, s.late)
    else:
        for i in range(3):
            for j in range(n):
                w[j, i] = interpolate_reference(reference, i, k, part, inputs.period, j)
    for j in range(n):
        w[j, 3], w[j, 4] = s.measured[j], dq[first + j]
    fill_linear_output(law.C, law.D, law.limit, w, z, v, raw)
    if columns:
        fill_linear_tangent(law.C, law.D, SQ, SV, SZ, first, s.Sraw)
        add_parameter_tangent(law.parameter, law.D, s.late, s.Sraw)
    if law.compensation == PLAIN:
        fill_plain_torque(law, v, raw, law.parameter, s.Sraw, u, s.Snow)
    else:
        fill_compensated_torque(tree, law, s, s.measured, dq, SQ, SV, u, s.Snow)
    if len(forward):
        following = min(k + 1, len(forward) - 1)
        for j in range(n):
            s.push[j] = forward[k, j] + part * (forward[following, j] - forward[k, j])
            u[j] += s.push[j]


@inner
def interpolate_signal(signal, k, share, out):  # type: ignore[no-untyped-def]
    """A sampled signal between samples k and k + 1, into `out`; the last sample is held."""
    following = min(k + 1, len(signal) - 1)
    for j in range(signal.shape[1]):
        out[j] = signal[k, j] + share * (signal[following, j] - signal[k, j])


@inner
def measure_positions(q, bias, noise, k, count, first, out):  # type: ignore[no-untyped-def]
    """Joint positions as the encoder gives them: bias and noise added, rounded to counts."""
    for j in range(len(out)):
        value = q[first + j] + bias[j]
        if len(noise):
            value += noise[k, j]
        if count[j] > 0.0:
            value = np.round(value / count[j]) * count[j]
        out[j] = value

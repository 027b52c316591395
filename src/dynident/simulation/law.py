"""The control law inside the kernel: outputs, states, model compensation, tangents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import entry, inner, wide
from dynident.plant.state import fill_mass_and_bias, linearise_bodies

PLAIN, GRAVITY, COMPUTED_TORQUE = 0, 1, 2
GAIN, BIAS, DELAY, SPEED, PLACE, LIMIT = range(6)
DAMPING, INTEGRAL, DEADBAND, PUNCH, SPEED_LIMIT = range(6, 11)
"""Parameters of the loop itself that a motion is differentiated by."""
CHANGE, SLOPE, SIGN, RISE = 0, 1, 2, 3
"""What a dead band makes of an error e: f(e) - e, its slope, the sign h(e) of f, its slope."""


class ControlLaw(NamedTuple):
    """A `Controller` on the integrator's clock."""

    A: Array
    B: Array
    C: Array
    D: Array
    antiwindup: Array
    band: Array
    gain: Array
    limit: Array
    deadband: Array
    punch: Array
    edge: float
    """`A`, `B`, `C`, `D`, `antiwindup`, `band`, `gain`, `limit`, `deadband`, `punch`, `edge`: see
    `dynident.control.controller.Controller`."""
    hold: int
    """Integration steps between two outputs; 0 is continuous."""
    delay: int
    """Integration steps from measurement to torque."""
    compensation: int
    """PLAIN, GRAVITY or COMPUTED_TORQUE."""
    phi: Array
    """Shape (bodies, 10)."""
    rotors: Array
    """The model that compensates, shape (dof, dof)."""
    held: int
    """1 where targets are held from sample to sample; 0 where they move smoothly between."""
    late: float
    """Samples by which held targets come late."""
    bias: Array
    """What the encoders read at zero [rad or m], shape (n,)."""
    reads: Integers
    """Shape (n,). The joint whose encoder each of them reads: its own, but for a lost motion
    between."""
    parameter: Integers
    """Shape (k, 3). Loop parameters to differentiate by: GAIN and the others, the joint, the
    column."""


@entry
def bend_error(e, band, edge):  # type: ignore[no-untyped-def]
    """``f(e) = s(e - b) - s(-e - b)`` less e, and what else `CHANGE` and the others name."""
    up, down = (e - band) / edge, (-e - band) / edge
    above = 1.0 / (1.0 + np.exp(-up)) if up > 0.0 else np.exp(up) / (1.0 + np.exp(up))
    below = 1.0 / (1.0 + np.exp(-down)) if down > 0.0 else np.exp(down) / (1.0 + np.exp(down))
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which does not overflow
    f = max(up, 0.0) + np.log1p(np.exp(-abs(up))) - max(down, 0.0) - np.log1p(np.exp(-abs(down)))
    over, under = above * (1.0 - above) / edge, below * (1.0 - below) / edge
    # by the dead band: f by -h, h by the last
    return edge * f - e, above + below - 1.0, above - below, over + under, under - over


@inner
def fill_linear_output(law, w, z, s):  # type: ignore[no-untyped-def]
    """Outputs s.v ``= sat(C z + D w)`` and s.raw without the limit, and its slopes by q: s.lean.

    Of servos the error among w is bent.
    """
    C, D, bent = law.C, law.D, s.bent
    for j in range(len(s.v)):
        u, lean = 0.0, D[j, 3]
        for i in range(5):
            u += D[j, i] * w[j, i]
        for i in range(C.shape[1]):
            u += C[j, i] * z[j, i]
        if law.edge > 0.0:
            bent[j, CHANGE], bent[j, SLOPE], bent[j, SIGN], bent[j, RISE], s.sharp[j] = bend_error(
                w[j, 0] - w[j, 3], law.deadband[j], law.edge
            )
            u += D[j, 0] * bent[j, CHANGE] + law.punch[j] * bent[j, SIGN]
            lean -= D[j, 0] * bent[j, SLOPE] + law.punch[j] * bent[j, RISE]
        s.lean[j] = lean
        s.raw[j] = u
        s.v[j] = min(max(u, -law.limit[j]), law.limit[j])


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
def sum_input(law, s, z, j, i):  # type: ignore[no-untyped-def]
    """What moves state i of joint j's controller, beside itself and its limit."""
    value = law.B[j, i, 0] * s.bent[j, CHANGE]
    for k in range(5):
        value += law.B[j, i, k] * s.w[j, k]
    for k in range(law.A.shape[1]):
        if k != i:
            value += law.A[j, i, k] * z[j, k]
    return value


@inner
def fill_next_state(law, s, z, out):  # type: ignore[no-untyped-def]
    """``A z + B w + antiwindup (sat(u) - u)``: the next state, or its rate."""
    for j in range(len(s.v)):
        for i in range(law.A.shape[1]):
            share, _ = weigh_input(s.w[j, 0] - s.w[j, 3], law.band[j, i])
            out[j, i] = (
                law.antiwindup[j, i] * (s.v[j] - s.raw[j])
                + law.A[j, i, i] * z[j, i]
                + share * sum_input(law, s, z, j, i)
            )


@wide
def fill_output_tangent(law, s, z, SQ, SV, SZ, first, moving):  # type: ignore[no-untyped-def]
    """Sensitivities of the unlimited outputs, s.Sraw: by states, parameters and, `moving`, motion.

    Leaves those of what is read and of targets, s.Sread and s.Saim.
    """
    C, D, w, late = law.C, law.D, s.w, s.late
    n, columns = s.Sraw.shape
    for j in range(n):
        kd, read = D[j, 4] if moving else 0.0, first + law.reads[j]
        for c in range(columns):
            s.Sread[j, c] = SQ[read, c] if moving else 0.0
            s.Saim[j, c] = 0.0
            s.Sraw[j, c] = kd * SV[read, c]
        for i in range(C.shape[1]):
            k = C[j, i]
            for c in range(columns):
                s.Sraw[j, c] += k * SZ[j, i, c]
    for c in range(len(law.parameter)):
        kind, joint, column = law.parameter[c]
        if kind == BIAS:
            s.Sread[joint, column] += 1.0
        elif kind == SPEED_LIMIT:
            s.Saim[joint, column] += s.hurry[joint]
        elif kind == DELAY:
            for j in range(n):
                s.Saim[j, column] += late[j, 0]
                s.Sraw[j, column] += D[j, 1] * late[j, 1] + D[j, 2] * late[j, 2]
        elif kind == DAMPING:
            s.Sraw[joint, column] -= w[joint, 4]
        elif kind == INTEGRAL:
            s.Sraw[joint, column] += z[joint, 0]
        elif kind == PUNCH:
            s.Sraw[joint, column] += s.bent[joint, SIGN]
        elif kind == DEADBAND:
            s.Sraw[joint, column] += (
                law.punch[joint] * s.sharp[joint] - D[joint, 0] * s.bent[joint, SIGN]
            )
    for j in range(n):
        by_q, by_target = s.lean[j], D[j, 0] + D[j, 3] - s.lean[j]
        for c in range(columns):
            s.Sraw[j, c] += by_q * s.Sread[j, c] + by_target * s.Saim[j, c]


@wide
def fill_state_tangent(law, s, z, SV, SZ, first, out):  # type: ignore[no-untyped-def]
    """Sensitivities of `fill_next_state`, after `fill_output_tangent`."""
    n, columns = s.Sraw.shape
    for j in range(n):
        limited, read = s.v[j] != s.raw[j], first + law.reads[j]
        for i in range(law.A.shape[1]):
            share, slope = weigh_input(s.w[j, 0] - s.w[j, 3], law.band[j, i])
            bend = share * law.B[j, i, 0] * s.bent[j, SLOPE]
            if slope != 0.0:
                bend += slope * sum_input(law, s, z, j, i)
            kq, kd = share * law.B[j, i, 3] - bend, share * law.B[j, i, 4]
            aim = share * law.B[j, i, 0] + bend
            back = -law.antiwindup[j, i] if limited else 0.0
            for c in range(columns):
                out[j, i, c] = (
                    kq * s.Sread[j, c] + aim * s.Saim[j, c] + kd * SV[read, c]
                    + back * s.Sraw[j, c]
                )  # fmt: skip
            for k in range(law.A.shape[1]):
                factor = (1.0 if k == i else share) * law.A[j, i, k]
                for c in range(columns):
                    out[j, i, c] += factor * SZ[j, k, c]
            for c in range(len(law.parameter)):
                kind, joint, column = law.parameter[c]
                if joint == j and kind == DEADBAND:
                    out[j, i, column] -= share * law.B[j, i, 0] * s.bent[j, SIGN]
                elif joint == j and kind == LIMIT and limited:
                    out[j, i, column] -= back * np.sign(s.raw[j])


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
def average_held(signal, x, span, out):  # type: ignore[no-untyped-def]
    """Mean over a step of a signal that is held from sample to sample, as of such targets."""
    last = len(signal) - 1
    cell = int(np.ceil(x)) - 1
    share = min(1.0, (cell + 1 - x) / span)
    before, after = min(max(cell, 0), last), min(max(cell + 1, 0), last)
    for j in range(len(out)):
        out[j] = share * signal[before, j] + (1.0 - share) * signal[after, j]


@wide
def fill_plain_tangent(law, v, raw, parameter, Sraw, SU):  # type: ignore[no-untyped-def]
    """Tangent of ``gain * v``: of outputs beyond their limits none but that by the gain."""
    for j in range(len(v)):
        factor = law.gain[j] if v[j] == raw[j] else 0.0
        for c in range(SU.shape[1]):
            SU[j, c] = factor * Sraw[j, c]
    for c in range(len(parameter)):
        kind, joint, column = parameter[c]
        if kind == GAIN:
            SU[joint, column] += v[joint]
        elif kind == LIMIT and v[joint] != raw[joint]:
            SU[joint, column] += law.gain[joint] * np.sign(raw[joint])


@inner
def decide_torque(tree, law, inputs, s, k, part, begin, span, dq, z, SQ, SV, SZ, u, sensitive):  # type: ignore[no-untyped-def]
    """What the controllers read (s.measured is given), their outputs, and their torque u.

    `part` is the share of sample k that has passed; the step has begun at `begin` and has the
    length `span`. Leaves s.w, s.late, s.v, s.raw and, if `sensitive`, s.Snow.
    """
    n = len(s.Snow)
    first = len(dq) - n
    reference, forward, w, v, raw = inputs.reference, inputs.forward, s.w, s.v, s.raw
    if law.held:
        at = k + begin - law.late
        average_held_targets(reference, at, span, inputs.period, w, s.late)
        if len(inputs.hurry):
            average_held(inputs.hurry, at, span, s.hurry)
    else:
        for i in range(3):
            for j in range(n):
                w[j, i] = interpolate_reference(reference, i, k, part, inputs.period, j)
    for j in range(n):
        w[j, 3], w[j, 4] = s.measured[j], dq[first + law.reads[j]]
    fill_linear_output(law, w, z, s)
    if sensitive:
        fill_output_tangent(law, s, z, SQ, SV, SZ, first, True)
    if law.compensation == PLAIN:
        for j in range(n):
            u[j] = law.gain[j] * v[j]
        if sensitive:
            fill_plain_tangent(law, v, raw, law.parameter, s.Sraw, s.Snow)
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

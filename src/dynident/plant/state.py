"""One state of the simulated robot: its acceleration, and how that moves with all else.

Everything a stage of an integrator needs, on scratch arrays that the caller owns.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import inner, spliced, wide
from dynident.dynamics.cholesky import factorise_ldl, solve_ldl, solve_ldl_columns
from dynident.dynamics.spatial import accelerate_bodies, gather_subtrees, move_bodies
from dynident.dynamics.tangent import fill_inertial_columns, linearise_dynamics
from dynident.friction.kernel import (
    BY_LOAD,
    BY_POSITION,
    BY_SPEED,
    BY_STATE,
    VALUE,
    DriveInstant,
    consult_law,
    weigh_column,
)
from dynident.plant.vectors import add_vector, copy_matrix, copy_vector
from dynident.robot.linkage import accelerate_passive, bind_loops, fold_passive

DONE, NOT_POSITIVE, DIVERGED, STUCK, LOCKED, OPEN = range(6)
"""How a rollout ends."""
STEPS = 100
"""Of Newton's method under loads."""
HALVINGS = 20
"""In a row, after which a longer step is taken all the same."""
SETTLED = 1e-12
"""Change of an acceleration, over its size, below which it has settled."""


@spliced
def smooth_sign(x):  # type: ignore[no-untyped-def]
    """``tanh(x)``, which beyond 20 is the sign to the last bit."""
    if x > 20.0:
        return 1.0
    if x < -20.0:
        return -1.0
    e = np.exp(2.0 * x)
    return (e - 1.0) / (e + 1.0)


@spliced
def compute_drive_speed(gears, i, first, dq):  # type: ignore[no-untyped-def]
    """How fast drive i turns; the first n drives are the joints' own."""
    n = gears.shape[1]
    if i < n:
        return dq[first + i]
    v = 0.0
    for j in range(n):
        v += gears[i, j] * dq[first + j]
    return v


@spliced
def add_drive_torque(gears, i, first, f, tau):  # type: ignore[no-untyped-def]
    """Add drive i's torque f to those of the joints, through the transpose of its gear."""
    n = gears.shape[1]
    if i < n:
        tau[first + i] += f
    else:
        for j in range(n):
            tau[first + j] += gears[i, j] * f


@inner
def add_drive_slope(gears, i, first, slope, K):  # type: ignore[no-untyped-def]
    """Add a slope of drive i's torque to the derivatives K by positions or velocities."""
    n = gears.shape[1]
    if i < n:
        K[first + i, first + i] += slope
    else:
        for j in range(n):
            for k in range(n):
                K[first + j, first + k] += gears[i, j] * gears[i, k] * slope


@inner
def write_drive_entry(gears, i, first, value, column, W):  # type: ignore[no-untyped-def]
    """Write drive i's entry of the regressor into a column of W."""
    for j in range(gears.shape[1]):
        if gears[i, j] != 0.0:
            W[first + j, column] = gears[i, j] * value


@spliced
def fill_drive_speeds(gears, width, rough, dq, speed, sign):  # type: ignore[no-untyped-def]
    """Speeds of all drives, and their signs where anything depends on them."""
    first = len(dq) - gears.shape[1]
    for i in range(len(gears)):
        speed[i] = compute_drive_speed(gears, i, first, dq)
        if rough[i]:
            sign[i] = smooth_sign(speed[i] / width[i])


@spliced
def add_friction_torques(gears, friction, speed, sign, tau):  # type: ignore[no-untyped-def]
    """Add the drives' friction ``a + b v + c s(v)`` to the torques."""
    first = len(tau) - gears.shape[1]
    for i in range(len(gears)):
        f = friction[i, 0] + friction[i, 1] * speed[i] + friction[i, 2] * sign[i]
        add_drive_torque(gears, i, first, f, tau)


@inner
def add_friction_slope(gears, friction, width, sign, D):  # type: ignore[no-untyped-def]
    """Add the slope of that to ``d tau / d dq``."""
    first = len(D) - gears.shape[1]
    for i in range(len(gears)):
        bend = friction[i, 2] * (1.0 - sign[i] * sign[i]) / width[i]
        add_drive_slope(gears, i, first, friction[i, 1] + bend, D)


@inner
def write_drive_columns(gears, gear, column, share, speed, sign, ddq, W):  # type: ignore[no-untyped-def]
    """The columns of rotors and of that friction, with the smoothed sign, into W."""
    first = len(W) - gears.shape[1]
    for c in range(len(gear)):
        i = gear[c]
        value = share[c, 0] + share[c, 1] * speed[i] + share[c, 2] * sign[i]
        if share[c, 3] != 0.0:
            value += share[c, 3] * compute_drive_speed(gears, i, first, ddq)
        write_drive_entry(gears, i, first, value, column[c], W)


@inner
def observe_drive(gears, i, width, speed, sign, q, load, period):  # type: ignore[no-untyped-def]
    """What the laws see of drive i."""
    position = compute_drive_speed(gears, i, len(q) - gears.shape[1], q)
    slope = (1.0 - sign[i] * sign[i]) / width[i]
    return DriveInstant(speed[i], position, sign[i], slope, load, 0.0, period)


# `bearing` is empty where no friction depends on loads, `rise` where no motion of a base is given.


@inner
def hold_base(rise, M, tau, external):  # type: ignore[no-untyped-def]
    """Write ``ddq = rise`` in the place of a base's equations, and what it does into the others.

    Nothing asks which wrench the base then takes: it is what its motion needs.
    """
    dof, m = len(M), len(rise)
    for i in range(m):
        for j in range(m, dof):
            tau[j] += M[j, i] * rise[i]
        for j in range(dof):
            M[i, j] = M[j, i] = 0.0
        M[i, i] = 1.0
        tau[i] = -rise[i]
        external[i] = 0.0


@inner
def hold_base_sensitivities(rise, X):  # type: ignore[no-untyped-def]
    """No parameter moves a base whose motion is given."""
    for i in range(len(rise)):
        for c in range(X.shape[1]):
            X[i, c] = 0.0


@inner
def fill_drive_loads(bearing, rotors, s, ddq):  # type: ignore[no-untyped-def]
    """Loads of the drives at an acceleration, into s.load, after `fill_mass_and_bias`.

    ``bearing (M ddq + bias)`` of the rigid bodies: s.M has the rotors, which are not a load.
    """
    if len(bearing):
        n, dof = bearing.shape[1], len(ddq)
        for i in range(len(bearing)):
            s.load[i] = 0.0
        for j in range(n):
            row = dof - n + j
            r = s.tau[row]
            for k in range(dof):
                r += (s.M[row, k] - rotors[row, k]) * ddq[k]
            for i in range(len(bearing)):
                s.load[i] += bearing[i, j] * r


@inner
def add_element_torques(gears, width, each, load, speed, sign, q, memory, table, tau):  # type: ignore[no-untyped-def]
    """Add the torques of the elements; leaves their tables."""
    first = len(tau) - gears.shape[1]
    for e in range(len(each.gear)):
        i = each.gear[e]
        at = observe_drive(gears, i, width, speed, sign, q, load[i], 0.0)
        consult_law(each.address[e, 0], at, each.shape[e], memory[e], table[e])
        add_drive_torque(gears, i, first, weigh_column(each.values[e], table[e], VALUE), tau)


@inner
def add_element_slopes(gears, each, table, K, D):  # type: ignore[no-untyped-def]
    """Add the elements' slopes to the derivatives of the torques, after `add_element_torques`."""
    first = len(D) - gears.shape[1]
    for e in range(len(each.gear)):
        i, values = each.gear[e], each.values[e]
        add_drive_slope(gears, i, first, weigh_column(values, table[e], BY_POSITION), K)
        add_drive_slope(gears, i, first, weigh_column(values, table[e], BY_SPEED), D)


@inner
def fill_load_slopes(bearing, gears, each, table, L):  # type: ignore[no-untyped-def]
    """How friction passes loads on: L, ``d friction = L d (rigid bodies' torque)``.

    After `add_element_torques`.
    """
    if len(bearing):
        n, dof = bearing.shape[1], len(L)
        first = dof - n
        for i in range(dof):
            for j in range(dof):
                L[i, j] = 0.0
        for e in range(len(each.gear)):
            i = each.gear[e]
            slope = weigh_column(each.values[e], table[e], BY_LOAD)
            for j in range(n):
                for k in range(n):
                    L[first + j, first + k] += gears[i, j] * slope * bearing[i, k]


@inner
def add_column_product(L, k, A, row):  # type: ignore[no-untyped-def]
    """``A[:, k] += L A[:, k]``."""
    for i in range(len(L)):
        row[i] = 0.0
        for j in range(len(L)):
            row[i] += L[i, j] * A[j, k]
    for i in range(len(L)):
        A[i, k] += row[i]


@inner
def add_load_to_mass(bearing, rotors, L, M, row):  # type: ignore[no-untyped-def]
    """``M + L (M - rotors)``: what an acceleration takes where friction bears the bodies."""
    if len(bearing):
        for k in range(len(M)):
            for i in range(len(M)):
                M[i, k] -= rotors[i, k]
            add_column_product(L, k, M, row)
            for i in range(len(M)):
                M[i, k] += rotors[i, k]


@inner
def add_load_to_slopes(bearing, slot, L, K, D, W, row):  # type: ignore[no-untyped-def]
    """The same of what moves the rigid bodies' torque, before the slopes of friction itself."""
    if len(bearing):
        for k in range(len(K)):
            add_column_product(L, k, K, row)
            add_column_product(L, k, D, row)
        for b in range(slot.shape[0]):
            for p in range(10):
                if slot[b, p] >= 0:
                    add_column_product(L, slot[b, p], W, row)


@inner
def find_locked_drive(bearing, gears, each, table):  # type: ignore[no-untyped-def]
    """The first drive whose friction takes up all its load, after `add_element_torques`; or -1."""
    if len(bearing):
        for i in range(len(gears)):
            slope = 0.0
            for e in range(len(each.gear)):
                if each.gear[e] == i:
                    slope += weigh_column(each.values[e], table[e], BY_LOAD)
            if not slope > -1.0:
                return i
    return -1


@inner
def write_element_columns(gears, each, table, W):  # type: ignore[no-untyped-def]
    """Columns of the elements' linear parameters and shapes into W, after `add_element_torques`."""
    first = len(W) - gears.shape[1]
    for c in range(len(each.parameter)):
        e, place = each.parameter[c, 0], each.parameter[c, 1]
        rows, states = each.counts[e, 0], each.counts[e, 1]
        if place < rows:
            value = table[e, place, VALUE]
        else:
            value = weigh_column(each.values[e], table[e], BY_STATE + states + place - rows)
        write_drive_entry(gears, each.gear[e], first, value, each.parameter[c, 2], W)


@inner
def subtract_memory_terms(gears, each, table, SM, X):  # type: ignore[no-untyped-def]
    """Take what the elements' states add from X, before the mass matrix divides it."""
    n = gears.shape[1]
    first = len(X) - n
    for e in range(len(each.gear)):
        i = each.gear[e]
        for k in range(each.counts[e, 1]):
            f = weigh_column(each.values[e], table[e], BY_STATE + k)
            for j in range(n):
                if gears[i, j] != 0.0:
                    add_vector(-gears[i, j] * f, SM[e, k], X[first + j])


@inner
def step_element_states(gears, width, rough, each, s, h, q, dq, memory, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """Step the elements' states over a time h at the speed that is now, and their tangents."""
    if len(each.gear):
        fill_drive_speeds(gears, width, rough, dq, s.speed, s.sign)
        n, columns, fresh = gears.shape[1], SQ.shape[1], s.fresh
        first = len(SV) - n
        for e in range(len(each.gear)):
            i, states = each.gear[e], each.counts[e, 1]
            if states == 0:
                continue
            rules = s.table[e]
            at = observe_drive(gears, i, width, s.speed, s.sign, q, 0.0, h)
            consult_law(each.address[e, 1], at, each.shape[e], memory[e], rules)
            for k in range(states):
                memory[e, k] = rules[k, VALUE]
                for c in range(columns):
                    fresh[k, c] = 0.0
                for r in range(states):
                    add_vector(rules[k, BY_STATE + r], SM[e, r], fresh[k])
                for j in range(n):
                    if gears[i, j] != 0.0:
                        add_vector(gears[i, j] * rules[k, BY_SPEED], SV[first + j], fresh[k])
                        add_vector(gears[i, j] * rules[k, BY_POSITION], SQ[first + j], fresh[k])
            for c in range(len(each.parameter)):
                place = each.parameter[c, 1] - each.counts[e, 0]
                if each.parameter[c, 0] == e and place >= 0:
                    for k in range(states):
                        fresh[k, each.parameter[c, 2]] += rules[k, BY_STATE + states + place]
            for k in range(states):
                copy_vector(fresh[k], SM[e, k])


@spliced
def fill_mass_and_bias(tree, phi, rotors, s, q, dq):  # type: ignore[no-untyped-def]
    """Mass matrix, rotors included, and the torques at zero acceleration: s.M and s.tau.

    Of a closed chain as its driven joints see them, those of passive ones set apart.
    """
    M = s.M
    move_bodies(tree, phi, q, dq, s.bodies)
    gather_subtrees(tree, s.bodies, M, s.tau)
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] += rotors[i, j]
    bind_loops(s.chain, q, dq, M, s.tau)


@spliced
def solve_acceleration(M, tau, applied, external, ddq):  # type: ignore[no-untyped-def]
    """``M ddq = applied + external - tau``; the row where M fails, or -1. M is factorised."""
    dof, n = len(M), len(applied)
    failed = factorise_ldl(M)
    if failed >= 0:
        return failed
    for i in range(dof):
        ddq[i] = external[i] - tau[i]
    for j in range(n):
        ddq[dof - n + j] += applied[j]
    solve_ldl(M, ddq)
    return -1


@spliced
def fill_residual(s, ddq, out):  # type: ignore[no-untyped-def]
    """``s.now + s.external - s.tau - s.M ddq`` into the column `out`; the sum of its squares."""
    dof, n, M = len(s.M), len(s.now), s.M
    size = 0.0
    for i in range(dof):
        r = s.external[i] - s.tau[i]
        if i >= dof - n:
            r += s.now[i - dof + n]
        for j in range(dof):
            r -= M[i, j] * ddq[j]
        out[i, 0] = r
        size += r * r
    return size


@spliced
def linearise_bodies(tree, s, ddq):  # type: ignore[no-untyped-def]
    """After `fill_mass_and_bias`: derivatives of the rigid bodies' torque, s.K and s.D."""
    accelerate_bodies(tree, ddq, s.bodies)
    linearise_dynamics(tree, s.bodies, s.K, s.D)


@spliced
def add_all_friction(plant, s, q, dq, memory):  # type: ignore[no-untyped-def]
    """Add all friction to s.tau; leaves the drives' speeds and signs, and the laws' tables.

    Under the loads of `fill_drive_loads`, where any depends on them; s.L then is how.
    """
    gears, width = plant.gears, plant.width
    fill_drive_speeds(gears, width, plant.rough, dq, s.speed, s.sign)
    add_friction_torques(gears, plant.friction, s.speed, s.sign, s.tau)
    if len(plant.elements.gear):
        add_element_torques(
            gears, width, plant.elements, s.load, s.speed, s.sign, q, memory, s.table, s.tau
        )
        fill_load_slopes(plant.bearing, gears, plant.elements, s.table, s.L)
    fold_passive(s.chain, s.tau)


@spliced
def differentiate_plant(tree, plant, s, ddq):  # type: ignore[no-untyped-def]
    """Derivatives of the plant's torque by position, velocity, parameters: s.K, s.D, s.W.

    After `add_all_friction` at the same state.
    """
    gears = plant.gears
    linearise_bodies(tree, s, ddq)
    fill_inertial_columns(tree, plant.slot, s.bodies, s.W)
    if len(plant.bearing):
        add_load_to_slopes(plant.bearing, plant.slot, s.L, s.K, s.D, s.W, s.row)
    add_friction_slope(gears, plant.friction, plant.width, s.sign, s.D)
    write_drive_columns(gears, plant.gear, plant.column, plant.share, s.speed, s.sign, ddq, s.W)
    if len(plant.elements.gear):
        add_element_slopes(gears, plant.elements, s.table, s.K, s.D)
        write_element_columns(gears, plant.elements, s.table, s.W)


@spliced
def fill_sensitivity_rhs(plant, s, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """What the mass matrix turns into those of the acceleration, into s.X."""
    combine_sensitivities(s.K, s.D, s.W, s.U, SQ, SV, s.X)
    if len(plant.elements.gear):
        subtract_memory_terms(plant.gears, plant.elements, s.table, SM, s.X)


@wide
def combine_sensitivities(K, D, W, U, SQ, SV, out):  # type: ignore[no-untyped-def]
    """``U - W - K SQ - D SV``: what the mass matrix turns into d ddq / d beta."""
    n, columns = out.shape
    for i in range(n):
        for c in range(columns):
            out[i, c] = U[i, c] - W[i, c]
        for j in range(n):
            k, d = K[i, j], D[i, j]
            if k != 0.0 or d != 0.0:  # between limbs all is zero
                for c in range(columns):
                    out[i, c] -= k * SQ[j, c] + d * SV[j, c]


@inner
def solve_under_load(bearing, plant, s, q, dq, memory, ddq):  # type: ignore[no-untyped-def]
    """``torques = tau(q, dq, ddq)`` solved for ddq, after `fill_mass_and_bias`: (status, row).

    Friction under load depends on the torque that the drive bears, and so on the acceleration
    itself: ``r + rotors ddq + f(r) = torques`` with the rigid bodies' torque ``r = M ddq + bias``
    is solved by Newton's method, from the last acceleration on. In the loads f is made of lines, or
    nearly: a few steps end it. Where f falls by as much as its load grows, on the side of this load
    or on the other, a motion is not determined.
    """
    if len(bearing) == 0:
        add_all_friction(plant, s, q, dq, memory)
        failed = solve_acceleration(s.M, s.tau, s.now, s.external, ddq)
        return (DONE if failed < 0 else NOT_POSITIVE), failed
    dof, n, J = len(ddq), len(s.now), s.J
    copy_matrix(s.M, J)
    failed = factorise_ldl(J)
    if failed >= 0:
        return NOT_POSITIVE, failed
    copy_vector(s.tau, s.bias)
    copy_vector(ddq, s.trial)
    trial, step, previous = s.trial, s.step, np.inf
    for iteration in range(STEPS):
        copy_vector(s.bias, s.tau)
        fill_drive_loads(bearing, plant.rotors, s, trial)
        add_all_friction(plant, s, q, dq, memory)
        size = fill_residual(s, trial, step)
        if size > previous and iteration % HALVINGS:
            # a bend was jumped over: halve the step
            for i in range(dof):
                trial[i] = 0.5 * (trial[i] + ddq[i])
            continue
        previous = size
        copy_vector(trial, ddq)
        copy_matrix(s.M, J)
        add_load_to_mass(bearing, plant.rotors, s.L, J, s.row)
        if not solve_dense(J, step):
            return LOCKED, dof - n
        change, largest = 0.0, 1.0
        for i in range(dof):
            trial[i] += step[i, 0]
            change = max(change, abs(step[i, 0]))
            largest = max(largest, abs(trial[i]))
        if change <= SETTLED * largest:
            copy_vector(trial, ddq)
            copy_vector(s.bias, s.tau)
            fill_drive_loads(bearing, plant.rotors, s, ddq)
            return judge_locking(bearing, plant, s, q, dq, memory)
    status, failed = judge_locking(bearing, plant, s, q, dq, memory)
    return (STUCK, dof - n) if status == DONE else (status, failed)


@inner
def judge_locking(bearing, plant, s, q, dq, memory):  # type: ignore[no-untyped-def]
    """Whether no drive locks itself under its load, or the opposite one: (status, row).

    Leaves the tables and s.L of s.load itself.
    """
    if len(bearing) == 0:
        return DONE, -1
    stuck = -1
    for _ in range(2):
        for i in range(len(s.load)):
            s.load[i] = -s.load[i]
        add_all_friction(plant, s, q, dq, memory)
        stuck = max(stuck, find_locked_drive(bearing, plant.gears, plant.elements, s.table))
    if stuck < 0:
        return DONE, -1
    joint = 0
    for j in range(plant.gears.shape[1]):
        if plant.gears[stuck, j] != 0.0:
            joint = j
    return LOCKED, len(dq) - plant.gears.shape[1] + joint


@spliced
def solve_response(tree, plant, s, q, dq, memory, SQ, SV, SM, ddq, sensitive):  # type: ignore[no-untyped-def]
    """Acceleration under s.now and s.external, into ddq; if `sensitive` its slopes into s.X.

    Of a base whose motion is given the acceleration is s.rise. Returns status and row: DONE, or why
    not, and at which velocity.
    """
    fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
    fold_passive(s.chain, s.external)
    if len(s.rise):
        hold_base(s.rise, s.M, s.tau, s.external)
    status, failed = solve_under_load(plant.bearing, plant, s, q, dq, memory, ddq)
    accelerate_passive(s.chain, ddq)
    if status == DONE and sensitive:
        differentiate_plant(tree, plant, s, ddq)
        fill_sensitivity_rhs(plant, s, SQ, SV, SM)
        hold_base_sensitivities(s.rise, s.X)
        solve_sensitivities(plant.bearing, plant.rotors, s)
    return status, failed


@inner
def solve_sensitivities(bearing, rotors, s):  # type: ignore[no-untyped-def]
    """Sensitivities by what an acceleration takes: the mass matrix that is factorised, or more."""
    if len(bearing) == 0:
        solve_ldl_columns(s.M, s.X)
    else:
        copy_matrix(s.M, s.J)
        add_load_to_mass(bearing, rotors, s.L, s.J, s.row)
        solve_dense(s.J, s.X)


@wide
def solve_dense(J, X):  # type: ignore[no-untyped-def]
    """Gaussian elimination with row pivots: ``J X = X`` for all columns; False if singular."""
    n, columns = X.shape
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(J[r, i]) > abs(J[pivot, i]):
                pivot = r
        if not abs(J[pivot, i]) > 0.0:
            return False
        if pivot != i:
            for c in range(n):
                J[i, c], J[pivot, c] = J[pivot, c], J[i, c]
            for c in range(columns):
                X[i, c], X[pivot, c] = X[pivot, c], X[i, c]
        for r in range(i + 1, n):
            factor = J[r, i] / J[i, i]
            if factor != 0.0:
                for c in range(i + 1, n):
                    J[r, c] -= factor * J[i, c]
                for c in range(columns):
                    X[r, c] -= factor * X[i, c]
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            X[i, c] /= J[i, i]
        for r in range(i):
            factor = J[r, i]
            if factor != 0.0:
                for c in range(columns):
                    X[r, c] -= factor * X[i, c]
    return True

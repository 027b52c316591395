"""Two bodies and a spring as C99: what motors do, and what is left of the springs' balance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.dynamics.whole import WholeModel
from dynident.export.c_code import (
    ZERO,
    CStatements,
    Value,
    express_drive_friction,
    format_sum,
    to_c_identifier,
    unroll_newton_euler,
)
from dynident.export.springs import JointSpring


def render_elastic_function(model: WholeModel, joints: Sequence[JointSpring]) -> str:
    """A function behind that of the stiff robot; nothing where no joint has a spring.

    ``NAME_elastic_inverse_dynamics(q, dq, ddq, delta, ddelta, dddelta, tau, left)``: of links, and
    of deflections of all joints with two derivatives, zero where they are stiff, the torques of
    motors, ``bodies(q) + rotors and friction(q + delta)``, and, of each joint with a spring,
    ``bodies - K delta - D ddelta - Kc delta^3 - offset``, which is zero along its motion (Spong
    1987): the accelerations of links follow from `left`, those of motors from `tau`.
    """
    idim, tree = model.idim, model.idim.tree
    springs = {own.joint: own for own in joints}
    if not springs:
        return ""
    code, n, dof = CStatements(), idim.robot.n, tree.dof
    first, nq = dof - n, dof + idim.robot.floating
    load = unroll_newton_euler(code, model)
    _, elements = express_drive_friction(code, model, None, load, (True,))
    drives: list[Value] = [ZERO] * dof
    for j, k in np.ndindex(n, n):
        rotor = (model.rotors[first + j, first + k], "")
        drives[first + j] = code.sum((drives[first + j],), (rotor, (1.0, f"ddm[{first + k}]")))
    _, friction = express_drive_friction(code, model, None, drives, (False,), ("dm", "qm"))
    lines = [f"tau[{i}] = {format_sum({name: value})};" for i, (value, name) in enumerate(load)]
    lines += [*elements, f"for (int i = 0; i < {dof}; ++i) {{ left[i] = 0.0; }}"]
    lines += [
        f"left[{first + j}] = tau[{first + j}] - ({format_spring(springs[name], j)});"
        for j, name in enumerate(idim.robot.joint_names)
        if name in springs
    ]
    lines += [
        f"tau[{i}] += {format_sum({name: value})};"
        for i, (value, name) in enumerate(drives)
        if value != 0.0
    ]
    lines += friction
    moved = (("qm", "q", nq, "delta"), ("dm", "dq", dof, "ddelta"), ("ddm", "ddq", dof, "dddelta"))
    sides = [
        f"double {own}[{size}];\n"
        f"    for (int i = 0; i < {size}; ++i) {{ {own}[i] = {link}[i]; }}\n"
        f"    for (int i = 0; i < {n}; ++i) {{ {own}[{size - n} + i] += {bent}[i]; }}"
        for own, link, size, bent in moved
    ]
    used = ["(void)q; (void)dq; (void)ddq; (void)qm; (void)dm; (void)ddm;", *code.used(lines)]
    inside = "\n".join(f"    {line}" for line in (*sides, *used, *lines))
    arguments = ", ".join(
        f"const double {own}[{size}]"
        for own, size in (
            *(("q", nq), ("dq", dof), ("ddq", dof)),
            *((bent, n) for bent in ("delta", "ddelta", "dddelta")),
        )
    )
    head = f"void {to_c_identifier(idim.robot.name)}_elastic_inverse_dynamics({arguments}, "
    head += f"double tau[{dof}], double left[{dof}])"
    return f"""
/* Of links at q and motors at q + delta, {len(springs)} with springs: torques of the motors, and
   what the bodies take beyond what the springs give, zero along the motion. */
{head};

{head}
{{
{inside}
}}
"""


def format_spring(own: JointSpring, j: int) -> str:
    """The torque of joint j's spring by its deflection."""
    terms = {
        f"delta[{j}]": own.stiffness,
        f"ddelta[{j}]": own.damping,
        f"delta[{j}] * delta[{j}] * delta[{j}]": own.cubic,
        "": own.reference * own.stiffness,
    }
    return format_sum({term: value for term, value in terms.items() if value != 0.0})

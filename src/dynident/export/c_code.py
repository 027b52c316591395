"""Inverse dynamics of an identified model as C99 without dependencies.

Recursive Newton-Euler, unrolled over the robot's bodies: what is known of the model, its
placements, inertials, rotors and friction, is folded into the arithmetic, and what is multiplied
by zero is not there. Each body's frame is turned so that its joint's axis is z, which leaves four
multiplications to a turn of the joint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import transform_body
from dynident.dynamics.tree import FREE_FLYER, PRISMATIC, REVOLUTE, Tree
from dynident.dynamics.whole import WholeModel
from dynident.export.c_loops import render_loops
from dynident.friction.bristles import (
    SPECTRUM,
    fill_dahl_friction,
    fill_lugre_friction,
    fill_spectrum_friction,
)
from dynident.friction.elements import (
    fill_counterweight_torque,
    fill_gas_spring_torque,
    fill_linkage_torque,
    fill_ripple_torque,
    fill_spring_torque,
)
from dynident.friction.kernel import Law
from dynident.friction.memoryless import (
    fill_bompos_friction,
    fill_cube_root_friction,
    fill_polynomial_friction,
    fill_sigmoid_friction,
    fill_stribeck_friction,
    fill_stribeck_with_exponent,
    fill_tanh_sech_friction,
    fill_uneven_friction,
)

Value = tuple[float, str]
"""A number times a variable; a number alone where there is no variable's name."""
Vector = tuple[Value, Value, Value]
Product = tuple[Value, ...]

ZERO, ONE, MINUS = (0.0, ""), (1.0, ""), (-1.0, "")
STILL: Vector = (ZERO, ZERO, ZERO)
ROUND = 4.0 * np.finfo(float).eps
"""Entries of rotations so near to 0, 1 or -1 are these."""
VARIABLE = re.compile(r"\bt\d+\b")
KEYWORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while",
})  # fmt: skip

C_LAWS: dict[Law, str] = {  # what has a memory as it settles where the speed lasts
    fill_cube_root_friction: "out[0] = cbrt(fabs(v)) * s;",
    fill_polynomial_friction: """const double v2 = v * v;
out[0] = v * v2;
out[1] = v * v2 * v2;""",
    fill_stribeck_friction: """const double x = v / p[0];
out[0] = exp(-x * x) * s;""",
    fill_stribeck_with_exponent: "out[0] = exp(-pow(fabs(v) / p[0], p[1])) * s;",
    fill_uneven_friction: """out[0] = sin(q) * s;
out[1] = cos(q) * s;""",
    fill_bompos_friction: """out[0] = -exp(-fabs(v) / p[0]) * s;
out[1] = v != 0.0 ? -exp(-1.0 / (p[1] * fabs(v))) * s : 0.0;""",
    fill_tanh_sech_friction: """out[0] = tanh(p[1] * v);
out[1] = out[0] / cosh(fmin(fabs(p[0] * v), 300.0));""",
    fill_sigmoid_friction: """const double half = 0.5 * p[0];
out[0] = 0.5 * (tanh(half * (v + p[1])) - tanh(half * p[1]));""",
    fill_dahl_friction: "out[0] = s;",
    fill_spectrum_friction: f"for (int k = 0; k < {len(SPECTRUM)}; ++k) {{ out[k] = s; }}",
    fill_lugre_friction: """const double x = v / p[2];
out[0] = p[0] * (1.0 + p[1] * exp(-x * x)) * s;
out[1] = v * (1.0 - s * s);""",
    fill_spring_torque: """out[0] = q;
out[1] = 1.0;""",
    fill_gas_spring_torque: """const double b = p[0], c = p[1], d = q + p[2];
const double length = sqrt(b * b + c * c - 2.0 * b * c * cos(d));
out[0] = b * c * sin(d) / length / (1.0 - (length - (b - c)) / p[3]);""",
    fill_ripple_torque: """out[0] = sin(p[0] * q);
out[1] = cos(p[0] * q);""",
    fill_counterweight_torque: "out[0] = sin(q + p[0]);",
    fill_linkage_torque: """const double b = p[0], c = p[1], r = p[3], d = q + p[4];
const double x = c * cos(d) - b, y = c * sin(d), length = sqrt(x * x + y * y);
const double opening = acos((r * r + length * length - p[2] * p[2]) / (2.0 * r * length));
const double psi = atan2(y, x) - p[6] * opening;
const double along = c * (r * sin(psi - d) - b * sin(d));
const double against = r * (c * sin(psi - d) - b * sin(psi));
out[0] = cos(psi + p[5]) * along / against;""",
}
"""What a law of friction, or another element's, is in C, at speed v, position q, sign s and shapes
p: a line for each row of its table. A law that is not here is refused."""


class CStatements:
    """C statements, one a variable; constants are folded and repetitions left out."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, str]] = []
        self._known: dict[str, str] = {}

    def variable(self, expression: str) -> Value:
        """The variable that has the value of an expression."""
        if expression not in self._known:
            self._known[expression] = f"t{len(self._known)}"
            self.statements.append((self._known[expression], expression))
        return 1.0, self._known[expression]

    def sum(self, *products: Product) -> Value:
        """A sum of products."""
        constant, terms = 0.0, dict[str, float]()
        for product in products:
            factor = float(np.prod([value for value, _ in product]))
            name = " * ".join(sorted(name for _, name in product if name))
            if not name:
                constant += factor
            else:
                terms[name] = terms.get(name, 0.0) + factor
        terms = {name: factor for name, factor in terms.items() if factor != 0.0}
        if not terms:
            return constant, ""
        if len(terms) == 1 and constant == 0.0:
            ((name, factor),) = terms.items()
            return (factor, self.variable(name)[1]) if " " in name else (factor, name)
        if constant != 0.0:
            terms[""] = constant
        return self.variable(format_sum(terms))

    def plus(self, *vectors: Vector) -> Vector:
        """A sum of vectors."""
        x, y, z = (self.sum(*((vector[i],) for vector in vectors)) for i in range(3))
        return x, y, z

    def turned(self, matrix: Array, vector: Vector) -> Vector:
        """A constant matrix times a vector."""
        x, y, z = (
            self.sum(*(((float(row[k]), ""), vector[k]) for k in range(3))) for row in matrix
        )
        return x, y, z

    def cross(self, a: Vector, b: Vector, *more: Vector) -> Vector:
        """``a x b``, and vectors added to it."""
        x, y, z = (
            self.sum((a[i], b[k]), ((-1.0, ""), a[k], b[i]), *((vector[j],) for vector in more))
            for j, i, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )
        return x, y, z

    def used(self, lines: Sequence[str]) -> Iterator[str]:
        """The statements that some lines need."""
        needed = set(VARIABLE.findall("\n".join(lines)))
        kept = []
        for name, expression in reversed(self.statements):
            if name in needed:
                needed |= set(VARIABLE.findall(expression))
                kept.append(f"const double {name} = {expression};")
        return reversed(kept)


def format_sum(terms: dict[str, float]) -> str:
    """``0.5 * a - b + 2.0`` of factors by name."""
    text = ""
    for name, factor in terms.items():
        size = format_c_number(abs(factor)) + f" * {name}" * bool(name)
        if name and abs(factor) == 1.0:
            size = name
        sign = "-" if factor < 0.0 else "+"
        text += f" {sign} {size}" if text else f"{'-' * (factor < 0.0)}{size}"
    return text


def format_c_number(value: float) -> str:
    """A double that C reads as the same one."""
    text = repr(float(value))
    return text if value >= 0.0 else f"({text})"


def make_constant_vector(values: Sequence[float] | Array) -> Vector:
    """A constant vector."""
    x, y, z = ((float(value), "") for value in values)
    return x, y, z


def c_code(model: WholeModel, name: str | None = None, width: npt.ArrayLike | None = None) -> str:
    """The inverse dynamics of a model as a C99 file.

    It defines ``void NAME_inverse_dynamics(const double q[nq], const double dq[nv], const double
    ddq[nv], double tau[nv])`` with what `WholeModel.inverse_dynamics` has: gravity, rotors, coupled
    ones too, friction, offsets and other elements. It needs ``math.h`` alone, allocates nothing and
    keeps nothing between calls. Of a closed chain q has to be closed, as ``int NAME_close(double
    q[nq])`` does it from nearby; entries of passive joints of dq and ddq are not read.

    Parameters
    ----------
    model : WholeModel
    name : str, optional
        The robot's by default, as far as it is an identifier.
    width : array_like, shape () or (n,), optional
        Of the smoothed sign of Coulomb friction, as in `WholeModel.inverse_dynamics`.

    Raises
    ------
    InputError
        For friction that depends on more than the motion, or has no form in C; for a
        name that is none in C.
    """
    idim, tree = model.idim, model.idim.tree
    model.refuse_more_than_motion("C code")
    called = to_c_identifier(idim.robot.name) if name is None else name
    if not re.fullmatch(r"[A-Za-z_]\w*", called, re.ASCII) or called in KEYWORDS:
        raise InputError(f"{called!r} is not a name that a function of C can have")
    code = CStatements()
    tau = unroll_newton_euler(code, model)
    first = tree.dof - idim.robot.n
    for j, k in np.ndindex(idim.robot.n, idim.robot.n):
        armature = model.rotors[first + j, first + k]
        tau[first + j] = code.sum((tau[first + j],), ((armature, ""), (1.0, f"ddq[{first + k}]")))
    helpers, lines = express_drive_friction(code, model, model.widths(width), tau)
    nq = tree.dof + idim.robot.floating
    arguments = f"const double q[{nq}], const double dq[{tree.dof}], const double ddq[{tree.dof}]"
    lines = [*(f"tau[{i}] = {format_sum({n: v})};" for i, (v, n) in enumerate(tau)), *lines]
    body = ["(void)q; (void)dq; (void)ddq;", *code.used(lines), *lines]
    inside = "\n".join(f"    {line}" for line in body)
    taken = f"({arguments}, double tau[{tree.dof}])"
    if idim.robot.loops:
        whole = [
            f"static void tree_dynamics{taken}\n{{\n{inside}\n}}\n",
            render_loops(idim.robot, called),
        ]
    else:
        own = f"void {called}_inverse_dynamics{taken}"
        whole = [f"{own};\n", f"{own}\n{{\n{inside}\n}}\n"]
    parts = [render_c_comment(model, called), "#include <math.h>\n", *helpers, *whole]
    return "\n".join(parts)


def render_c_comment(model: WholeModel, called: str) -> str:
    """What stands at the top of the file."""
    robot = model.idim.robot
    joints = "\n".join(
        f"     {robot.floating * 6 + j}  {joint.name.replace('*/', '* /')} "
        f"[{'rad' if joint.kind == 'revolute' else 'm'}]"
        for j, joint in enumerate(robot.joints)
    )
    base = (
        "   q begins with the base's place [m] and quaternion x, y, z, w; dq and ddq with its\n"
        "   twist in its own frame, the linear part first. The joints follow.\n" * robot.floating
    )
    if robot.loops:
        base = (
            f"   Loops are closed by {called}_close(q): passive joints begin near where they are,\n"
            "   and end where they have to be. Their dq and ddq are not read, their tau is zero.\n"
        )
    gravity = ", ".join(f"{g:g}" for g in robot.gravity)
    return f"""/* Inverse dynamics of an identified robot, written by dynident.

   tau = {called}_inverse_dynamics(q, dq, ddq): bodies under gravity ({gravity}) m/s^2, rotors,
   friction and offsets, in SI units. It may be called from several threads.

   Entries of dq, ddq and tau by joint:
{joints}
{base}*/
"""


def to_c_identifier(text: str) -> str:
    """A robot's name as one of C."""
    found = re.sub(r"\W", "_", text, flags=re.ASCII)
    return found if re.match(r"[A-Za-z_]", found) and found not in KEYWORDS else f"robot_{found}"


class BodyPlacement(NamedTuple):
    """Where a body is on the one that carries it, in frames whose z is the axis of their joint.

    `outer` and `place` take its frame to the carrier's where its joint is at zero.
    """

    outer: Array
    place: Vector
    sine: Value
    cosine: Value

    def inward(self, code: CStatements, vector: Vector) -> Vector:
        """A vector of the carrier in the body's own axes."""
        x, y, z = code.turned(self.outer.T, vector)
        s, c = self.sine, self.cosine
        return code.sum((c, x), (s, y)), code.sum((c, y), (MINUS, s, x)), z

    def outward(self, code: CStatements, vector: Vector) -> Vector:
        """A vector of the body in the carrier's axes."""
        x, y, z = vector
        s, c = self.sine, self.cosine
        turned = code.sum((c, x), (MINUS, s, y)), code.sum((s, x), (c, y)), z
        return code.turned(self.outer, turned)


class MovedBody(NamedTuple):
    """Angular velocity and acceleration of a body, its acceleration, and what moves levers."""

    w: Vector
    alpha: Vector
    a: Vector
    U: tuple[Vector, Vector, Vector]


def unroll_newton_euler(code: CStatements, model: WholeModel) -> list[Value]:
    """Torques of the rigid bodies, outward and inward (Luh, Walker and Paul, 1980)."""
    tree, phi = model.idim.tree, model.phi
    frames = [np.eye(3) if kind == FREE_FLYER else turn_axis_to_z(axis)
              for kind, axis in zip(tree.kind, tree.axis, strict=True)]  # fmt: skip
    placed: list[BodyPlacement] = []
    moved: list[MovedBody] = []
    f: list[Vector] = []
    n: list[Vector] = []
    for b in range(tree.bodies):
        up = int(tree.parent[b])
        placed.append(place_body(code, tree, frames, b))
        moved.append(move_body(code, tree, b, placed[b], moved[up] if up >= 0 else None))
        turned = not np.array_equal(frames[b], np.eye(3))
        body = transform_body(phi[b], frames[b], np.zeros(3)) if turned else phi[b]
        force, moment = express_body_wrench(code, body, *moved[b])
        f.append(force)
        n.append(moment)
    tau: list[Value] = [ZERO] * tree.dof
    for b in reversed(range(tree.bodies)):
        up, row = int(tree.parent[b]), int(tree.row[b])
        if tree.kind[b] == FREE_FLYER:
            tau[:6] = [*f[b], *n[b]]
            continue
        tau[row] = f[b][2] if tree.kind[b] == PRISMATIC else n[b][2]
        if up >= 0:
            pushed_up, twisted = (placed[b].outward(code, vector) for vector in (f[b], n[b]))
            f[up] = code.plus(f[up], pushed_up)
            n[up] = code.cross(placed[b].place, pushed_up, n[up], twisted)
    return tau


def place_body(code: CStatements, tree: Tree, frames: Sequence[Array], b: int) -> BodyPlacement:
    """Where a body is on its carrier, by the position of its joint."""
    if tree.kind[b] == FREE_FLYER:
        return BodyPlacement(np.eye(3), STILL, ZERO, ONE)
    up, floating = int(tree.parent[b]), tree.kind[0] == FREE_FLYER
    carrier = np.eye(3) if up < 0 else frames[up]
    outer = snap_to_integers(carrier @ tree.rotation[b, 0] @ frames[b].T)
    place = make_constant_vector(snap_to_integers(carrier @ tree.translation[b]))
    position = f"q[{int(tree.row[b]) + bool(floating)}]"
    if tree.kind[b] == REVOLUTE:
        sine, cosine = (code.variable(f"{name}({position})") for name in ("sin", "cos"))
        return BodyPlacement(outer, place, sine, cosine)
    slide: Vector = make_constant_vector(outer[:, 2])
    x, y, z = (code.sum((o,), (s, (1.0, position))) for o, s in zip(place, slide, strict=True))
    return BodyPlacement(outer, (x, y, z), ZERO, ONE)


def move_body(
    code: CStatements, tree: Tree, b: int, placed: BodyPlacement, carrier: MovedBody | None
) -> MovedBody:
    """The motion of a body by that of its carrier and of its joint."""
    row = int(tree.row[b])
    rate, acceleration = (1.0, f"dq[{row}]"), (1.0, f"ddq[{row}]")
    if tree.kind[b] == FREE_FLYER:
        w, alpha, a = express_base_motion(code, tree.gravity)
        return MovedBody(w, alpha, a, express_lever_matrix(code, w, alpha))
    if carrier is None:
        w, alpha = STILL, STILL
        a = placed.inward(code, make_constant_vector(-tree.gravity))
    else:
        w, alpha = placed.inward(code, carrier.w), placed.inward(code, carrier.alpha)
        x, y, z = (
            code.sum((carrier.a[i],), *((carrier.U[i][k], placed.place[k]) for k in range(3)))
            for i in range(3)
        )
        a = placed.inward(code, (x, y, z))
    if tree.kind[b] == REVOLUTE:
        alpha = (
            code.sum((alpha[0],), (w[1], rate)),
            code.sum((alpha[1],), (MINUS, w[0], rate)),
            code.sum((alpha[2],), (acceleration,)),
        )
        w = (w[0], w[1], code.sum((w[2],), (rate,)))
    else:
        a = (
            code.sum((a[0],), ((2.0, ""), w[1], rate)),
            code.sum((a[1],), ((-2.0, ""), w[0], rate)),
            code.sum((a[2],), (acceleration,)),
        )
    return MovedBody(w, alpha, a, express_lever_matrix(code, w, alpha))


def turn_axis_to_z(axis: Array) -> Array:
    """A rotation that turns an axis into z; one that only renames the axes where it can."""
    place = int(np.argmax(np.abs(axis)))
    if np.abs(axis[place]) == 1.0:
        frame = np.roll(np.eye(3), 2 - place, axis=0)
        return frame if axis[place] > 0.0 else np.diag([1.0, -1.0, -1.0]) @ frame
    x = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(axis, x), axis])


def snap_to_integers(matrix: Array) -> Array:
    """Without what rounding has left beside 0, 1 and -1."""
    whole = np.round(matrix)
    return np.asarray(np.where(np.abs(matrix - whole) < ROUND, whole, matrix))


def express_base_motion(code: CStatements, gravity: Array) -> tuple[Vector, Vector, Vector]:
    """Angular velocity and acceleration of a free base, and its acceleration beside gravity's."""
    x, y, z, u = ((1.0, f"q[{k}]") for k in range(3, 7))
    two = (2.0, "")

    def entry(square: tuple[Value, Value] | None, *products: tuple[Value, Value, float]) -> Value:
        parts: list[Product] = [(two, (sign, ""), p, r) for p, r, sign in products]
        if square is not None:
            parts += [(ONE,), *((two, MINUS, p, p) for p in square)]
        return code.sum(*parts)

    R = [
        [entry((y, z)), entry(None, (x, y, 1.0), (u, z, -1.0)),
         entry(None, (x, z, 1.0), (u, y, 1.0))],
        [entry(None, (x, y, 1.0), (u, z, 1.0)), entry((x, z)),
         entry(None, (y, z, 1.0), (u, x, -1.0))],
        [entry(None, (x, z, 1.0), (u, y, -1.0)), entry(None, (y, z, 1.0), (u, x, 1.0)),
         entry((x, y))],
    ]  # fmt: skip
    v, w, dv, dw = (
        (
            (1.0, f"{signal}[{first}]"),
            (1.0, f"{signal}[{first + 1}]"),
            (1.0, f"{signal}[{first + 2}]"),
        )
        for signal, first in (("dq", 0), ("dq", 3), ("ddq", 0), ("ddq", 3))
    )
    weight: list[Value] = [
        code.sum(*(((-float(gravity[k]), ""), R[k][i]) for k in range(3))) for i in range(3)
    ]
    return w, dw, code.cross(w, v, dv, (weight[0], weight[1], weight[2]))


def express_lever_matrix(code: CStatements, w: Vector, al: Vector) -> tuple[Vector, Vector, Vector]:
    """``[al]x + [w]x [w]x``: what a lever is multiplied by to have its end's acceleration."""
    minus = (-1.0, "")
    squares = [code.sum((each, each)) for each in w]
    xy, xz, yz = code.sum((w[0], w[1])), code.sum((w[0], w[2])), code.sum((w[1], w[2]))
    return (
        (code.sum((minus, squares[1]), (minus, squares[2])), code.sum((xy,), (minus, al[2])),
         code.sum((xz,), (al[1],))),
        (code.sum((xy,), (al[2],)), code.sum((minus, squares[0]), (minus, squares[2])),
         code.sum((yz,), (minus, al[0]))),
        (code.sum((xz,), (minus, al[1])), code.sum((yz,), (al[0],)),
         code.sum((minus, squares[0]), (minus, squares[1]))),
    )  # fmt: skip


def express_body_wrench(
    code: CStatements,
    phi: Array,
    w: Vector,
    al: Vector,
    a: Vector,
    U: tuple[Vector, Vector, Vector],
) -> tuple[Vector, Vector]:
    """Force and moment that move a body, about its frame's origin."""
    mass, h = (float(phi[0]), ""), make_constant_vector(phi[1:4])
    xx, xy, yy, xz, yz, zz = phi[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    x, y, z = (code.sum((mass, a[i]), *((U[i][k], h[k]) for k in range(3))) for i in range(3))
    momentum = code.turned(inertia, w)
    moment = code.cross(w, momentum, code.turned(inertia, al), code.cross(h, a))
    return (x, y, z), moment


def express_drive_friction(
    code: CStatements,
    model: WholeModel,
    widths: Array | None,
    tau: list[Value],
    side: tuple[bool, ...] = (False, True),
    motion: tuple[str, str] = ("dq", "q"),
) -> tuple[list[str], list[str]]:
    """Adds friction of constants to the torques; helpers and lines for the laws of all other.

    Of what acts on motors, False in `side`, on links, True, or both, along speeds and positions of
    such names.
    """
    idim = model.idim
    first, nq = idim.tree.dof - idim.robot.n, idim.robot.dof + idim.robot.floating - idim.robot.n
    helpers: dict[str, str] = {}
    lines: list[str] = []
    linear = idim.linear(model.theta)
    for k, friction in enumerate(idim.frictions):
        if friction.link not in side:
            continue
        gear, law = idim.gears[friction.gear], friction.model.law
        turns = [(float(turn), "") for turn in gear.turns]
        v, q = (
            code.sum(*((turn, (1.0, f"{signal}[{at + j}]")) for j, turn in enumerate(turns)))
            for signal, at in zip(motion, (first, nq), strict=True)
        )
        speed = format_sum({v[1]: v[0]})
        sign = f"({speed} > 0.0) - ({speed} < 0.0)"
        if widths is not None:
            sign = f"tanh({speed} / {format_c_number(float(widths[gear.number - 1]))})"
        parts: list[Product] = []
        for value, each in zip(linear[k], friction.model.parameters, strict=True):
            if each.weights is None or value == 0.0:
                continue
            constant, slope, step = each.weights
            moving = ONE
            if step != 0.0:
                s = code.variable(sign)
                parts.append(((float(value) * step, ""), s))
                if widths is None and constant != 0.0:
                    moving = code.sum((s, s))
            parts += [((float(value) * constant, ""), moving), ((float(value) * slope, ""), v)]
        acting = [float(linear[k][row]) for row in friction.model.rows]
        if law is not None and any(acting):
            if law not in C_LAWS:
                raise InputError(f"{idim.robot.name}: friction law {law.__name__!r} has no C code")
            helpers[law.__name__] = render_law_function(law)
            shape = [format_c_number(value) for value in idim.shape[friction.shape]] or ["0.0"]
            call = f"{law.__name__}({speed}, {format_sum({q[1]: q[0]})}, {sign}, p, out);"
            lines += call_law(call, shape, acting, first, gear.turns)
        force_here = code.sum(*parts)
        for j, turn in enumerate(turns):
            if turn != ZERO:
                tau[first + j] = code.sum((tau[first + j],), (turn, force_here))
    return list(helpers.values()), lines


def call_law(
    call: str, shape: Sequence[str], acting: Sequence[float], first: int, turns: Array
) -> list[str]:
    """Lines of a block that calls a law and adds what it gives to the torques of its joints."""
    force = " + ".join(f"{format_c_number(c)} * out[{r}]" for r, c in enumerate(acting) if c != 0.0)
    added = [
        f"    tau[{first + j}] += {format_c_number(float(turn))} * ({force});"
        for j, turn in enumerate(turns)
        if turn != 0.0
    ]
    return [
        "{",
        f"    const double p[{len(shape)}] = {{{', '.join(shape)}}};",
        f"    double out[{len(acting)}];",
        f"    {call}",
        *added,
        "}",
    ]


def render_law_function(law: Law) -> str:
    """A law as a function of C."""
    inside = "\n".join(f"    {line}" for line in C_LAWS[law].splitlines())
    return (
        f"static void {law.__name__}(double v, double q, double s, const double *p, double *out)\n"
        f"{{\n    (void)v; (void)q; (void)s; (void)p;\n{inside}\n}}\n"
    )

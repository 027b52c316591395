"""Flags of the methods' options, so that --help loads nothing else.

Made by docs/make_options.py from the fields of the option families; do not edit.
"""

from __future__ import annotations

from typing import NamedTuple


class Flag(NamedTuple):
    """An option as the command line has it: its name, its kind and its help."""

    name: str
    kind: str
    words: str


DEFAULTS = {
    "friction": "coulomb-viscous",
    "bandwidth": "10, at most a twentieth of the rate, and a warning",
    "method": "pc-idim-ls",
    "methods": "wls,pc-idim-ls",
}
"""What is taken where a flag that is no option is not given, for its help."""

FLAGS = (
    Flag(
        "essential",
        "word",
        "Of ols, wls: rule by which base parameters that the log does not determine are "
        "eliminated (ratio, f-test, torque-range).",
    ),
    Flag(
        "covariance",
        "word",
        "Of every method: what the rows' errors are taken to be; by default scatter "
        "where all logs are averaged over periods and the model leaves nothing but their "
        "noise, else hac where the residuals are not white but for what the filters do "
        "(sandwich, filtered, robust, bartlett, hac, scatter).",
    ),
    Flag(
        "loss",
        "word",
        "Of irls: of outliers; bisquare starts from Huber's answer (huber, bisquare).",
    ),
    Flag(
        "position_std",
        "numbers",
        "Of ml: standard deviation of the encoders' white noise; by what the position "
        "filter takes away by default [rad or m].",
    ),
    Flag(
        "torque_std",
        "numbers",
        "Of ml: standard deviation of white noise of the joints' torques, as logged; "
        "estimated by default [Nm or N].",
    ),
    Flag(
        "wrench_std",
        "numbers",
        "Of ml: standard deviations of the forces and of the moments of measured "
        "wrenches, as logged; part of the equations' estimated noise by default [N, Nm].",
    ),
    Flag(
        "gain_update",
        "switch",
        "Of idim-iv, 2sls, didim, pc-idim-iv, pc-didim: keep the bandwidth of the "
        "simulated loop while the estimated inertia moves.",
    ),
    Flag(
        "links",
        "word",
        "Of cloe: their inertials: free, in base parameters; fixed as the robot file has "
        "them, as for logs without torque by default; or fitted about these under a "
        "prior (free, fixed, prior).",
    ),
    Flag(
        "loop",
        "word",
        "Of cloe: what is fitted of the loop where links are not free: the delay of its "
        "targets, each encoder's bias, each drive's gain, or several of them with commas "
        "between; the delay by default.",
    ),
    Flag(
        "mount",
        "word",
        "Of cloe: axes of the base that give way to springs and dampers, which are "
        "fitted too, links being fixed: of x, y, z, roll, pitch and yaw, with commas "
        "between.",
    ),
    Flag(
        "prior",
        "word",
        "Of nls, ga, pf, pc-*: centre of the prior: the robot file's inertials (nominal, "
        "where it has any) or none (nominal, none).",
    ),
    Flag(
        "metric",
        "word",
        "Of nls, ga, pf, pc-*: by which links' distances from the centre are measured; "
        "pullback by default (pullback, euclidean, weighted, entropic).",
    ),
    Flag(
        "prior_weight",
        "number or word",
        "Of nls, ga, pf, pc-*: of the squared distance from the centre: 1, by default, "
        "believes each link within its own size; held-out lets blocks of the log choose.",
    ),
    Flag(
        "consistency",
        "word",
        "Of nls, ga, pf, pc-*: what consistency means (pseudo-inertia, inertia, base, none).",
    ),
    Flag(
        "bootstrap",
        "whole number",
        "Of pc-*: replicates of the bootstrap of the error bars where constraints are "
        "active; 0 for the covariance on their faces.",
    ),
    Flag(
        "seed",
        "whole number",
        "Of ga, pf, pc-*: of the random numbers of the bootstrap and of searches.",
    ),
    Flag(
        "memory",
        "number",
        "Of rls, ekf: time after which a sample weighs 1/e; nothing is forgotten unless "
        "it is given [s].",
    ),
    Flag(
        "memory_friction",
        "number",
        "Of rls, ekf: the same for the drives' friction alone, whose parameters then "
        "forget otherwise than the bodies' and rotors' [s].",
    ),
    Flag(
        "directional",
        "switch",
        "Of rls, ekf: forget only along the directions in parameter space that new rows "
        "see; all of them together are then forgotten about as many times more slowly as "
        "there are parameters.",
    ),
    Flag(
        "sigma",
        "numbers",
        "Of rls, kf, ekf: standard deviation of the torque errors of each group of rows, "
        "as a rule a joint; that of wls on the same log unless given, in track that of a "
        "result it starts from [Nm or N].",
    ),
    Flag(
        "walk",
        "number",
        "Of kf: standard deviation of the bodies' and rotors' parameters after a second "
        "of a random walk, over the value that moves the torques by 100 sigma.",
    ),
    Flag(
        "walk_friction",
        "number",
        "Of kf: the same of the drives' friction.",
    ),
    Flag(
        "shape_std",
        "number",
        "Of ekf: standard deviation of each shape parameter before the log, over its usual value.",
    ),
    Flag(
        "ranges",
        "table",
        "Of nls, ga, pf: [low, high] of parameters by name; those of others come from "
        "the robot file's inertials and from the torque.",
    ),
    Flag(
        "objective",
        "word",
        "Of nls, ga, pf: of a search: weighted least squares, or the joints' mean errors "
        "and their standard deviations, added up (least-squares, mean-and-spread).",
    ),
    Flag(
        "spread_weight",
        "number",
        "Of nls, ga, pf: of the standard deviations in the objective mean-and-spread.",
    ),
    Flag(
        "begin",
        "table",
        "Of nls, ga, pf: values of base parameters at which a search begins, by name; "
        "others begin in the middle of their ranges.",
    ),
    Flag(
        "population",
        "whole number",
        "Of ga: sets of parameters in each generation.",
    ),
    Flag(
        "generations",
        "whole number",
        "Of ga: of the genetic algorithm, at most.",
    ),
    Flag(
        "search_state",
        "word",
        "Of ga, pf: file of a search's state: it goes on from there where the file "
        "exists, and writes it every 10 s, when it is stopped and at its end.",
    ),
    Flag(
        "particles",
        "whole number",
        "Of pf: of the particle filter.",
    ),
    Flag(
        "steps",
        "whole number",
        "Of pf: of weighing and resampling, at most.",
    ),
    Flag(
        "rows",
        "word",
        "Of every method: what is fitted: decimated rows, all samples, or those of a "
        "noise-model; errors are those of the decimated rows all the same (decimated, "
        "all, noise-model).",
    ),
    Flag(
        "lowpass_hz",
        "number",
        "Of every method: low-pass of the all-samples errors; the largest torque cutoff "
        "by default [Hz].",
    ),
    Flag(
        "score",
        "word",
        "Of every method: moving: beside the errors of all samples those of moving ones, "
        "as at rest friction is no function of speed (all, moving).",
    ),
    Flag(
        "doctor",
        "switch",
        "Of every method: look for another reading of each log that explains it better; "
        "nothing is repaired.",
    ),
)

SELECT_FLAGS = (
    Flag(
        "block",
        "number",
        "Length of the blocks that logs are cut into [s]; 1.0.",
    ),
    Flag(
        "gain",
        "number",
        "Least share by which the next block has to lower the standard deviations, in "
        "the mean over sub-chains and parameters; the choice ends there; 0.02.",
    ),
    Flag(
        "repeat",
        "number",
        "How near, in standard deviations of q, dq and ddq, an instant has to be to one "
        "that was chosen for it to be a repeat; 0 takes repeats too; 0.1.",
    ),
)

TRACK_FLAGS = (
    Flag(
        "cutoff",
        "number",
        "Of the causal filter of all signals; 2 bandwidths by default [Hz].",
    ),
    Flag(
        "every",
        "number",
        "Time between two estimates that are written [s]; 1.0.",
    ),
    Flag(
        "consistent",
        "switch",
        "Follow physically consistent parameters, under the default prior, too.",
    ),
    Flag(
        "sigma",
        "numbers",
        "Standard deviation of the torque errors of each group of rows, as a rule a "
        "joint; that of wls on the same log unless given, in track that of a result it "
        "starts from [Nm or N].",
    ),
    Flag(
        "memory",
        "number",
        "Time after which a sample weighs 1/e; nothing is forgotten unless it is given [s].",
    ),
    Flag(
        "memory_friction",
        "number",
        "The same for the drives' friction alone, whose parameters then forget otherwise "
        "than the bodies' and rotors' [s].",
    ),
    Flag(
        "directional",
        "switch",
        "Forget only along the directions in parameter space that new rows see; all of "
        "them together are then forgotten about as many times more slowly as there are "
        "parameters.",
    ),
    Flag(
        "walk",
        "number",
        "Standard deviation of the bodies' and rotors' parameters after a second of a "
        "random walk, over the value that moves the torques by 100 sigma; 0.0.",
    ),
    Flag(
        "walk_friction",
        "number",
        "The same of the drives' friction; 0.0.",
    ),
    Flag(
        "window",
        "number",
        "Over which innovations are summed; the test is made twice in it [s]; 0.25.",
    ),
    Flag(
        "settle",
        "number",
        "Time of motion in which the innovations' own level is learnt, without tests [s]; 3.0.",
    ),
    Flag(
        "false_alarms",
        "number",
        "How many are admitted in an hour of motion; 0.1.",
    ),
)

EXCITE_FLAGS = (
    Flag(
        "trajectory",
        "word",
        "Periodic Fourier series, quintic B-splines, smoothed bang-bang moves, or "
        "quintic polynomials through points (fourier, spline, bang-bang, quintic); "
        "fourier.",
    ),
    Flag(
        "duration",
        "number",
        "Of a period, or of a motion that is made once; 10 [s].",
    ),
    Flag(
        "harmonics",
        "whole number",
        "Multiples of the fundamental of a Fourier series; 5.",
    ),
    Flag(
        "ramp",
        "number",
        "Quintic ramps from rest and to rest around the periods, instead of rest at the "
        "ends of each [s].",
    ),
    Flag(
        "intervals",
        "whole number",
        "Between the knots of a spline; 12.",
    ),
    Flag(
        "knots",
        "numbers",
        "Of a spline, instead of equidistant ones [s].",
    ),
    Flag(
        "free_knots",
        "switch",
        "Search the knots of a spline too: each start but the first draws its own.",
    ),
    Flag(
        "points",
        "whole number",
        "Through which bang-bang and quintic motions lead; 8.",
    ),
    Flag(
        "smoothing",
        "number",
        "Share of bang-bang's ramps of acceleration; 0.5.",
    ),
    Flag(
        "speed",
        "numbers",
        "Largest speeds, instead of the file's [rad/s or m/s].",
    ),
    Flag(
        "acceleration",
        "numbers",
        "Largest accelerations; limited by the torques alone unless given.",
    ),
    Flag(
        "jerk",
        "numbers",
        "Largest jerks; not limited unless given.",
    ),
    Flag(
        "torque",
        "numbers",
        "Largest torques, instead of the file's [Nm or N].",
    ),
    Flag(
        "base_wrench",
        "numbers",
        "Three forces and three moments that the base, a table or a vehicle, bears [N, Nm].",
    ),
    Flag(
        "lower",
        "numbers",
        "Lowest positions, instead of the file's [rad or m].",
    ),
    Flag(
        "upper",
        "numbers",
        "Highest positions, instead of the file's [rad or m].",
    ),
    Flag(
        "margin",
        "number",
        "Share of the torques kept in reserve because the nominal model may be wrong by it; 0.2.",
    ),
    Flag(
        "share",
        "number",
        "Of the file's speeds and ranges that is used; 1.0.",
    ),
    Flag(
        "clearance",
        "number",
        "Between links, and between them and obstacles [m]; 0.01.",
    ),
    Flag(
        "collision",
        "switch",
        "Watch the robot's own links, drawn in its URDF.",
    ),
    Flag(
        "floor",
        "number or word",
        "Height in the base frame of the plane under the robot, which no link passes "
        "[m]; true: where the base stands, false: there is none.",
    ),
    Flag(
        "srdf",
        "word",
        "SRDF whose <disable_collisions> pairs of links are not watched either.",
    ),
    Flag(
        "initial",
        "numbers",
        "Position at which the trajectory begins; free unless given [rad or m].",
    ),
    Flag(
        "load",
        "number",
        "Mass at the last link, in the nominal model and what is predicted [kg]; 0.0.",
    ),
    Flag(
        "load_centre",
        "numbers",
        "Where it is, in the last link's joint frame [m]; [0.0, 0.0, 0.0].",
    ),
    Flag(
        "criterion",
        "word",
        "What is minimised: d (volume of the confidence ellipsoid, whatever the units), "
        "a (mean variance), e (variance of the worst combination), condition (condition "
        "number of the rows in SI units), column-condition (condition number with each "
        "column over its norm), presse-gautier (condition number with each column times "
        "its nominal value), std (variances of the wanted base parameters), torque "
        "(variance of the torques that will be predicted on a task), unknown (what the "
        "robot's file and logs leave unknown); d.",
    ),
    Flag(
        "wanted",
        "words",
        "Base parameters whose standard deviations the criterion std takes.",
    ),
    Flag(
        "sigma",
        "numbers",
        "Standard deviation of the torques' noise per sample; 1 % of the largest torques "
        "unless given [Nm or N].",
    ),
    Flag(
        "sensor",
        "word",
        "Link that a force/torque sensor holds, at the hand or in the chain, whose rows "
        "count too: of what is beyond it, as [robot] beyond identifies it.",
    ),
    Flag(
        "sensor_sigma",
        "numbers",
        "Standard deviations of the noise of the sensor's forces and of its moments, per "
        "sample [N, Nm].",
    ),
    Flag(
        "rate",
        "number",
        "Samples a second, of the trajectory and of the log [Hz]; 1000.0.",
    ),
    Flag(
        "periods",
        "whole number",
        "How often a periodic trajectory is made; 1.",
    ),
    Flag(
        "drop_below",
        "numbers",
        "Rows will not be fitted whose joint is slower [rad/s or m/s]; 0.0.",
    ),
    Flag(
        "starts",
        "whole number",
        "Random motions from which the search begins; 4.",
    ),
    Flag(
        "time",
        "number",
        "After which no further step is begun; what is being proved then has half as "
        "long again, 5 s at least [s]; 60.0.",
    ),
    Flag(
        "iterations",
        "whole number",
        "From each start, at most; 300.",
    ),
    Flag(
        "seed",
        "whole number",
        "Of the starts; 0.",
    ),
    Flag(
        "polish",
        "switch",
        "Polish by CMA-ES afterwards, for criteria with kinks (needs the package cma).",
    ),
)

NEAREST_FLAGS = (
    Flag(
        "metric",
        "word",
        "By which links' distances from the centre are measured; pullback by default "
        "(pullback, euclidean, weighted, entropic).",
    ),
)

PAYLOAD_FLAGS = (
    Flag(
        "link",
        "word",
        "What carries it: a moving link, or a frame of the URDF that is fixed to one; "
        "the last moving link unless given.",
    ),
    Flag(
        "frame",
        "word",
        "Of the URDF, on the same link, in which the load is reported: the flange; link "
        "unless given.",
    ),
    Flag(
        "mass",
        "number",
        "Of the load, where it is known: then the drives' gains are estimated [kg].",
    ),
    Flag(
        "gains",
        "word",
        "Of a known mass: one gain in all, or one a joint (all, joint); all.",
    ),
    Flag(
        "seed",
        "whole number",
        "Of the draws that the intervals are of; 0.",
    ),
)

SAMPLE_FLAGS = (
    Flag(
        "n",
        "whole number",
        "How many draws; 256.",
    ),
    Flag(
        "seed",
        "whole number",
        "Of the random numbers; 0.",
    ),
)

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
        "Of every method: what the rows' errors are taken to be; unless told otherwise "
        "hac where the residuals are not white (sandwich, robust, bartlett, hac).",
    ),
    Flag(
        "loss",
        "word",
        "Of irls: of outliers; bisquare starts from Huber's answer (huber, bisquare).",
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
        "them, as for logs without torque unless told otherwise; or fitted about these "
        "under a prior (free, fixed, prior).",
    ),
    Flag(
        "loop",
        "word",
        "Of cloe: what is fitted of the loop where links are not free: the delay of its "
        "targets, each encoder's bias, each drive's gain, or several of them with commas "
        "between; the delay unless told otherwise.",
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
        "Of nls, ga, pf, pc-*: of the prior; pullback unless told otherwise (pullback, "
        "euclidean, weighted, entropic).",
    ),
    Flag(
        "prior_weight",
        "number or word",
        "Of nls, ga, pf, pc-*: of the squared distance from the centre: 1, unless told "
        "otherwise, believes each link within its own size; held-out lets blocks of the "
        "log choose.",
    ),
    Flag(
        "consistency",
        "word",
        "Of nls, ga, pf, pc-*: what consistency means (pseudo-inertia, inertia, base, none).",
    ),
    Flag(
        "parametrisation",
        "word",
        "Of nls, ga, pf, pc-*: how the consistent set is searched: under its cones, or "
        "by log-Cholesky (cones, log-cholesky).",
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
        "Of rls: time after which a sample weighs 1/e; nothing is forgotten unless it is "
        "given [s].",
    ),
    Flag(
        "memory_friction",
        "number",
        "Of rls: the same for the drives' friction alone, whose parameters then forget "
        "otherwise than the bodies' and rotors' [s].",
    ),
    Flag(
        "directional",
        "switch",
        "Of rls: forget only along the directions in parameter space that new rows see; "
        "all of them together are then forgotten about as many times more slowly as "
        "there are parameters.",
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
        "unless told otherwise [Hz].",
    ),
    Flag(
        "doctor",
        "switch",
        "Of every method: look for another reading of each log that explains it better; "
        "nothing is mended.",
    ),
)

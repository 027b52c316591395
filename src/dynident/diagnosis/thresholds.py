"""What decides, in one table."""

# ---- explaining a log: errors are relative ones, root mean square over the groups

WORTH = 0.75  # share of the error that a finding leaves at most
LASTING = 1.0  # and below half the cutoffs: 0.98 of damage measured, 1.003 of noise, xMate
OF_NOISE = 0.5  # share of the error of noise that a ripple leaves at least
WORTH_AGAINST = 0.9  # share at most where it settles what logs contradict each other
WORTH_MANY = 0.65  # of more numbers than one thing has: 0.757 measured, beside other logs 0.885
WORTH_SURE = 0.97  # the same of one number that is sure, of rates beside other logs: 0.98 measured
CLEAR = 0.35  # or share of one joint's error, where no other joint's grows: 0.37 and above measured
CLEAR_SIGN = 0.5  # the same of a torque's sign, which nothing else is like
RELIEVED = 0.5  # share of the others' error that is left without a joint that nothing explains
SOUND = 0.005  # error below which nothing is looked for
WHITE = 0.3  # correlation of neighbouring residuals below which nothing is left to explain
UNSURE = 1.5  # times as large as correlations of residuals make it, noise may be
DOUBTFUL = 0.1  # error from which a joint may be another, or turned round
ASTRAY = 0.05  # the same of combinations that joints are in
POOR = 0.25  # error of the base's wrench from which something is looked for in passing
CONTRADICTED = 1.2  # error of consistent models over any's from which a log contradicts them
TIED = 1.05  # error over the smallest that is no worse, as much a fitted number; the file decides
HOPELESS = 2.0  # least squares' error over the best explanation's from which no more is fitted
UNRELATED = 0.6  # error that, without a finding, says that torque and motion do not belong
BEYOND = 1.6  # times the file's inertials are in torques, or one over: 0.77 to 1.31 measured
APART_BY_FILE = 1.6  # the same of one joint over the others
AGREEING = 1.25  # and of later ones that agree with these
BY_BODIES = 0.2  # error of the file's bodies up to which they explain a log
DENIED = 3.0  # times as large under a reading, which they deny then
QUICK = 2.0  # times its inertia over its weight that are in torques: 0.55 to 1.16 measured
TELLING = 4.0  # standard errors from none of what a joint has of these, to tell
AS_FILED = 0.05  # error of the file's bodies below which they speak against no log
BY_FILE = 0.75  # share of their error that a reading leaves at most; 0.80 and above measured
BY_FILE_SLOWER = 0.6  # the same of slower clocks, which smooth: 0.72 of logs that lost rows
ZERO_BLUR = 0.2  # error of an encoder's zero by the file: rms measured
ZERO_LEAST = 0.05  # and at least: 0.04 measured of simulated bodies 15 % off [rad or m]
ZERO_SURE = 2.5  # so many times as far from none: 2.49 of bodies 15 % off, 2.54 of a true one
ZERO_HELD = 0.5  # share of it that is left with any tool: less of one measured zero of twelve
LARGEST_ZERO = 0.5  # that is looked for so [rad or m]
LAWFUL = 0.1  # error by a controller's law that explains a torque: 0.03 measured, EMPS
HEAVY = 0.2  # share of the file's largest weight that a joint bears, to say whether it does
BORNE = 0.3  # share of it that external torques have at most: 0.8 and above measured of whole ones
MOVED = 0.4  # the same of what motion asks for: 0.56 and above measured of those without gravity
SWINGING = 0.6  # share of its weight that a joint's motion leaves at most, where both balance
OFF_SWING = 4.0  # times that the file's inertia is off there at most, or one over
SEEN = 0.75  # share that they explain of what drives leave of a joint's square, to tell

# ---- logs beside each other

APART = 1.05  # error of one model of all over models of their own from which they disagree
JOINT_APART = 1.25  # the same of a joint
SAME_FAULT = 0.45  # error that explains a log alone over that of making logs agree: 0.33, and 0.55
UNSETTLED = 0.2  # share of the squared contradiction that a reading may leave
UNSETTLED_FITTED = 0.05  # the same of one that has numbers fitted for it

# ---- torques that are next to nothing for their drives

QUIET = 0.01  # share of a drive's effort limit below which what is left tells little
DROWNED = 0.2  # share of a torque that any model leaves, from which little is told by a small gain
SURE_QUIETLY = 12.0  # standard errors of one number that tells even so: 9.9 measured
LOUDLY = 0.3  # share of the error of such a torque that is left by what tells something
AT_WORK = 0.05  # share of its limit that some drive uses, if limits and torques have one unit
BLUR = 0.03  # share of its torque that any model leaves of a joint: TX40, KR300, LWR4+, Panda
ROUGH_DRIVE = 0.004  # the same, over the drive's effort limit: LWR4+, UR10, Panda, TIAGo

# ---- how much is looked at

MOST = 1000  # instants of a log, thoroughly
FEW = 300  # in passing
BRIEF = 60  # for what is hardly likely
ROUGH = 0.9  # how much smaller errors may seem at so few
SCREENED = 3  # readings of the motion that are read at all instants, for each that is fitted
CONTRADICTORY = 24  # the same where least squares ranks by bodies that nothing has
FITTED = 8  # suspects that are fitted with consistent bodies in passing
MOST_OF_A_KIND = 2  # of each diagnosis
ROUNDS = 4  # findings of a log
THIN = 10.0  # rate that is enough for a filtered signal, over its cutoff
FAR_OFF = 50.0  # times a clock is wrong from which it is filtered anew: at 8, noise is one
CUTOFF_PERIODS = 20.0  # periods of a cutoff that a log lasts, to be filtered there

# ---- what has a size

PROMISING = 0.9  # share of the squared error that a first step leaves at most
UNSEEN = 1e-6  # share of a column that the regressor leaves, below which it has it already
DEPENDENT = 1e-6  # singular value over the largest below which columns depend on each other
TURNS = 5  # steps of Gauss and Newton at most, at few instants and then at all
SETTLED_STEP = 0.1  # step below which no other follows, over that of the differences
FARTHEST = 0.05  # share of the instants over which residuals are correlated at most
LATEST = 0.1  # delay of torques or of one position that is looked for [s]
DELAY_STEP = 0.008  # between those that are tried first [s]
LONGEST = 0.25  # the same of signals of sensors with clocks of their own [s]
LATENESS_STEP = 0.02  # between those [s]
SHORTEST_DELAY = 0.2  # [samples]
SLOWEST_FILTER = 0.2  # cutoff of a logger's filter that is looked for [Hz]
QUICKEST_FILTER = 40.0  # [Hz]
FILTER_STARTS = (0.6, 1.5, 3.0, 8.0)  # cutoffs from which the search starts [Hz]
LEFT_BEHIND = 0.3  # share of a torque's spread behind its filter: of less, much is soon explained
OFFSET_STEP = 0.3  # step of an encoder's zero at most [rad or m]
MOST_PERIODS = 100.0  # of a ripple, a turn
FEWEST_PERIODS = 1.5  # of it that the motion has to cover

# ---- what a robot or a log lacks, or has too much

SURE_OF_ALL = 4.0  # standard errors of a size with those of the model: 3.2 made, 4.9 measured
SURE = 6.0  # standard errors from which a spring is sure, though the error hardly falls
FAINTEST = 1e-3  # noise below which no more is told of a spring, over the joint's torque
SPRING_SHARE = 0.5  # share of what contradicts the file that a spring explains at least
OUTWEIGHED = 2.0  # over torque and bodies together, which may be half: 0.9 of springs, 3.3 of false
FORCED = 1.5  # error under constraints over that without, from which one is looked for
MOST_FORCED = 2  # for so many joints
WRONG_ALTOGETHER = 0.3  # error under constraints from which it is not a spring that is missing
MISSING = 0.5  # share of gravity, or friction, that torques without it have at most
SIGNED = 4  # rounds after which the signs of a torque are settled
WORST = 3  # joints with the largest errors, whose drives may be coupled otherwise
CREEPING = 0.02  # speed of the fastest joint that no log at less has [rad/s or m/s]
SLOWEST_RATE = 5.0  # at which a robot may be logged [Hz]
FASTEST_RATE = 2e4  # [Hz]
OTHER = 0.1  # by how much a torque is off those that other logs ask for
SCALE_ROUNDS = 3  # rounds after which factors of torques are settled

# ---- torques that were smoothed

SMOOTHED = 0.97  # share of what bodies ask for that torques have: 0.96 +- 0.03 measured
SMOOTHED_SURE = 4.0  # by so many standard errors less: 0.65 +- 0.09 of a sound log that was made

# ---- raw signals

CLIPPED = 0.01  # share of samples at an extreme
RUN = 5  # equal samples in a row that are not chance
ABRUPT = 0.1  # steps at a standstill over the rms of all from which it is not a rest
GOES_ON = 0.3  # share of its range that the other signal has while one is stuck
AS_EVER = 0.7  # spread of a torque over that in motion from which a joint does not rest
STUCK = 0.1  # share of a log over which a signal stands still
LEVELS = 200  # values at most that a coarse signal has
COARSE = 0.1  # steps of a torque over its standard deviation
NOISY = 0.3  # share of an acceleration that steps of its position make
REPEATED = 0.02  # share of samples that repeat the one before
SMALLER = 0.05  # share of a position's changes below its step: noise and slow motion
SHARED = 0.005  # share of its changes that are one step
ALIKE = 1.1  # changes up to this times as large are one step, rounded
FEW_STEPS = 4.5  # in a change, of which it tells that changes are multiples of a step
BETWEEN = 0.1  # of a step, that changes are off a multiple; 0.25 where they are of any size
FAST = 1.5  # speed over the robot file's limit
STRONGEST = 1e4  # torque that no drive has of which no limit is known [Nm or N]
IN_STEP = 1e-6  # share of positions that multiples of another joint's leave, of one profile
LITERAL = 0.005  # share of torques that a law, or bodies, by their targets leave of computed ones
OF_MOTION = 0.24  # of accelerations apart below half a cutoff: 0.18 to 0.20 of noise, 0.27 measured
SLOW_RATE = 25.0  # rate below which no robot is logged [Hz]
NEAR_TURN = 0.05  # how near to a turn a jump is a wrap
SPIKE = 15.0  # times as far from their neighbours as others, spikes are
FEW_SPIKES = 2  # such samples
LEAST_MOTION = 1e-3  # of all joints, below which a log tells nothing of a robot [rad or m]
LOST = 0.002  # share of the samples at which a motion doubles: none on any sound measured log
VISITS = 3.0  # of zero that a torque without sign makes, mean of the joints: 3.4 and above measured
TOUCHED = 0.2  # share of the largest torque between visits to zero; a tenth of it is zero

# ---- positions of simulations that follow targets: Z1 and Go2, fitted on either part, are sound

ASTRAY_SHARE = 0.2  # error over a joint's motion from which it is doubtful: 0.09 measured
LOST_SHARE = 0.5  # the same from which it is refuted
SMALL_SHARE = 0.01  # below which it tells nothing; sound joints have 0.004 to 0.09
STILL_SHARE = 0.05  # of the largest joint's motion that each is taken to have at least
NO_BETTER = 1.3  # error over that of a lag without a robot, that is doubtful: 1.10 measured
MUCH_WORSE = 2.0  # the same from which it is refuted
UNEVEN_TIME = 3.0  # error of the worst stretch over the median one's: 2.36 measured
STRETCHES = 10  # of a log, of about the same length
UNLIKE = 4.0  # held-out error of a joint over its fitted one: 2.11 measured

# ---- logs of encoders alone, by what their law asks of drives: readings of undamaged ones, Z1 and
# Go2, leave 0.85 of the mean error and more, of one joint's 0.47, of its torque's scale 0.36

TRACKED_HZ = 5.0  # cutoff: above it the stairs of targets are all that the law asks for
ZERO_FAR = 0.06  # offset of a position from its target that no drive makes: 0.018 measured [rad]
ZERO_MOVED = 0.02  # by which a zero is off that of another log: 0.002 measured [rad]
SCALED = 1.5  # times all joints' torque of the file, or one over: 0.87 to 1.11 measured
CLEAR_SCALE = 0.25  # share of a joint's error that another torque of it leaves: 0.36 measured
TOLD_BY_BODIES = 0.8  # share of the error without bodies: 0.42 to 0.75 measured where they count
HELD_TIME = 0.2  # for which an encoder that is stuck stands still at least [s]
PUSHED = (0.25, 0.5, 1.0, 2.0)  # lengths of a push that are tried [s]
PUSH_SHARE = 0.25  # of a log that it takes at most
STILL_MOVES = 0.7  # share of a joint's motion that is left without it

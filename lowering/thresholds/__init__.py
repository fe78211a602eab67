"""Tuned constants of the schedules: each with its unit, what it was tuned on, what was measured.

What belongs here was chosen because it makes programs faster, smaller or sooner compiled: from
which size on something pays, tile and block sizes, limits of effort. Facts of processors, formats
and proofs stay in the modules that need them.

Other modules write `from .. import thresholds` and read `thresholds.MAX_PRIVATE_BYTES` where they
use it. They import no name from here, so that a test or a hunt that sets one sets it everywhere;
`tests/programs/thresholds.py` says which values the hunts draw. No two have the same name.

An entry names the kind of program that it is about. Where it says `Measured`, a time was recorded;
everywhere else none was, and the entry says what is traded off.
"""

from .analysis import *
from .cpu import *
from .cpu_gemm import *
from .gpu import *
from .passes import *
from .transform import *

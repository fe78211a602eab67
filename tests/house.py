"""The plan of the house, as data; test_house.py holds the sources to it.

`ORDER` is read from top to bottom: a file imports only files below it. A new source file takes a
line there. Every other table holds exceptions, each with its reason.
"""

ORDER = """
benchmarks: __init__ __main__ command options chart table startup measure results ceilings machine
benchmarks: process environments worker cells lengths
benchmarks/peers: on_torch_compile on_torch on_jax on_numba on_numpy on_plusequals library __init__
benchmarks/elementwise: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/rows: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/reductions: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/stencils: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/products: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/nets: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/points: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks/tables: __init__ with_plusequals with_numpy with_numba with_torch with_jax
benchmarks: cell
plusequals: __main__ __init__ idx
dsl: public profile parallel
dsl/tracing: __init__ compare
dsl: cd explain explain_page explain_text explain_parts compiled
dsl/tracing: bisect taking trace page text differences why producers recorded terms
dsl: pickled remember plan results specialise tables
dsl/tracing: log records points recording quick room printing kept nans sinking
dsl/tracing: instrument rows buffers columns
dsl/tracing: boxes where library sites
dsl: copies forms sizes reasons keys words build checked wrapping fitting
dsl/elaborate: __init__ elaborate typed calls index_reductions statements
dsl/elaborate: comprehensions control branches
dsl/elaborate: carried leaving
dsl/elaborate: declarations effects requests index_notation index_refusals ranges rounds
dsl/elaborate: expressions choices object_attributes bindings merging sharing storage called
dsl/elaborate: named_tuples
dsl/elaborate: parents
dsl/elaborate: owners
dsl/elaborate: recovery
dsl/elaborate: operators identity subscript_rules truth names frame inputs instances numpy_table
dsl/elaborate: array_types
dsl/elaborate: numpy_functions accumulate composed
dsl/elaborate: attributes grids python_functions casts quantiles refusals convolution running
dsl/elaborate: linear solvers
dsl/elaborate: selection sorting ordering creation joining python_reductions averages reductions
dsl/elaborate: elementwise views
dsl/elaborate: devices library sorting_texts powers ufuncs shaping positions reshaping site stores
dsl/elaborate: arrays broadcasting adapting masks order short_circuit
dsl/elaborate: standing
dsl/elaborate: folding constant_tables
dsl/elaborate: context outside proof values types ways_out
dsl: front failing definition roles parse loops refused surface identity recipe source
dsl: private listing edited lines blocks idx __init__
backends: __init__
backends/runtime: __init__ saved batch inlined routine bound codes given link runs slots tensor
backends/runtime: device checks transfer ahead direct field chosen state order filled stored
backends/runtime: memory queue failure asked arrays timeline bindings printed
backends/cuda: __init__ backend code straight run turns device pool staging resident foreign
backends/cuda: shared dlpack plan kernels arrivals block_memory occupancy nvrtc dialect driver
backends/cuda: through_pycuda
backends/cuda: through_bindings verbs protocols
backends/cc: __init__ backend warm stream compiler code threads library inspection toolchain host
backends: interpreter registry
backends/emit: __init__ c_syntax parts polls entry frame vectors order turns rolled division held
backends/emit: source heads units
backends/emit: lane_shape c_expression eager products forms c_index c_text widths ends names dialect
backends/emit: layout
backends/emit: prelude record
backends: cache folders lock dump interface
lowering: __init__ pipeline requests recompute placement counts timeline
lowering/schedule: __init__ grid presets stencil masks guarded lockstep predicate pieces
lowering/schedule: separate pairs planes real_form
lowering/schedule: picked deferred kinds split stages answered
lowering/schedule: anew prepared inward prefer tensor_tiles tensor_units device_parts device_tiles
lowering/schedule: finish distribution neighbours tile_side
lowering/schedule: device_contraction bared columns onward fronts
lowering/schedule: segments scatter ranks owners prefix chunks copied
lowering/schedule: ahead rooms beforehand hosts induction fission lasts marks growing
lowering/schedule: hits searches together truth flags wraps symmetric
lowering/schedule: pivots sided firsts conjunct sections own places
lowering/schedule: team registers dealing scan updates tree points early skewed meet elsewhere
lowering/schedule: sweeps transposed streams checks undo beside best terms nests abreast jam
lowering/schedule: outer edges periods
lowering/schedule: rounds effort rounding tiles existing blocks stage axes strips contraction
lowering/schedule: accumulation lanes extremes partials lane_parts narrow complex_parts
lowering/schedule: outermost order sums numbered legal partners integers
lowering/passes: __init__ settled exchange unroll
lowering/passes: virtualize definition fuse pair sink shrink simplify cse hoist gather
lowering/passes: inplace overwritten repeated regardless dead buffers access begun reading
lowering/passes: products cost summary cells comments noticed decision
lowering: lower many extents clash points
lowering/ir: __init__ exact algebra interpret evaluate scalars verify verify_local printer spelling
lowering/ir: accuracy alpha fresh bounds intervals rewrite walk faults
lowering/ir: loops assignments expressions node memory_mode indexing ops dtypes remembers
lowering: target settings diagnostic modes later once locks ending collector dataclass
"""

FILE_LINES = 600
LONG_FILES: dict[str, tuple[int, str]] = {}
SHORT_FILES = {  # the files that a newcomer reads first
    "plusequals/__init__.py": 60,
    "lowering/pipeline.py": 250,
    "lowering/ir/assignments.py": 250,
    "lowering/ir/loops.py": 250,
    "backends/interface.py": 250,
}
FUNCTION_LINES = 60
LONG_FUNCTIONS: dict[str, tuple[int, str]] = {}
LINE_LENGTH = 100
TUTORIAL_LINES = 250

LAZY_PACKAGES = {
    "astor": "listings only; 40 ms of start-up",
    "cuda": "the driver is missing on most machines",
    "filelock": "only where the system has no lock of its own for it",
    "matplotlib": "pictures only",
    "ml_dtypes": "only for bfloat16 arrays; 60 ms of start-up",
    "platformdirs": "only when something is compiled",
    "pycuda": "the driver is missing on most machines, and importing it without one warns",
    "sklearn": "data of the tutorials only",
    "typeguard": "checks of options, off the hot path; 70 ms of start-up",
    "ziglang": "a compiler where there is none",
}

WITHOUT_TESTS = {
    "dsl/source/surface.py": "a grammar without behaviour; tests/dsl/source/test_parse.py builds all of it",
    "dsl/elaborate/typed.py": "a grammar without behaviour; tests of elaborate build all of it",
    "backends/interface.py": "protocols without behaviour",
}

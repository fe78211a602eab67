"""The plan of the house, as data; test_house.py holds the sources to it.

`LAYERS` is read from top to bottom: a file imports only files of its own layer and of those below
it, and no two files import each other, by whatever way. A file is of the layer that names the
longest part of its path. Every other table holds exceptions, each with its reason.
"""

LAYERS = (
    "benchmarks",
    "plusequals",
    "dsl/api",
    "dsl/gradient",
    "dsl/explain",
    "dsl/tracing",
    "dsl/dispatch",
    "dsl/specialize",
    "dsl/instrument",
    "dsl/elaborate",
    "dsl/numpy",
    "dsl/values",
    "dsl/source",
    "dsl",
    "backends/runtime",
    "backends/cuda",
    "backends/gpu",
    "backends/device_arrays",
    "backends/cc backends/interpreter backends/registry",
    "backends/codegen",
    "backends/codegen/quirks",
    "backends/cache backends/dump backends/interface backends",
    "lowering",
    "lowering/cpu lowering/gpu",
    "lowering/transform",
    "lowering/passes",
    "lowering/analysis",
    "lowering/target lowering/thresholds lowering/ir",
    "plusequals/base",
)
APART = (
    ("lowering/cpu", "lowering/gpu"),
    ("backends/cc", "backends/gpu"),
    ("backends/cc", "backends/device_arrays"),
)
"""Folders of one subject each, of which neither imports the other."""

CALLERS = ("dsl", "backends/runtime")
CONCRETE = ("backends/cc", "backends/cuda", "backends/gpu", "backends/interpreter")
"""What calls code knows backends by `backends/interface.py`: none by a module, a class or a name.
`backends/registry.py` has their names."""

FOLDER_FILES = 30
"""A folder with more files than that lacks a subject."""
FILE_LINES = 600
LONG_FILES: dict[str, tuple[int, str]] = {}
SHORT_FILES = {  # the files that a newcomer reads first
    "plusequals/__init__.py": 60,
    "lowering/pass_table.py": 290,
    "lowering/pipeline.py": 150,
    "lowering/ir/assignments.py": 280,
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

PRIVATE_WORDS = {
    "abreast": "vectorized",
    "anew": "recomputed, fresh",
    "apart": "distributed, disjoint, not fused",
    "beside": "what has to hold there",
    "firsts": "initial, leading",
    "settled": "decided, final",
    "told": "message, reported",
}
"""Words that no name of the sources has, and the terms that say it; see docs/glossary.md."""

WITHOUT_TESTS = {
    "dsl/source/surface.py": "a grammar without behaviour; tests of parse build all of it",
    "dsl/elaborate/typed.py": "a grammar without behaviour; tests of elaborate build all of it",
    "backends/interface.py": "protocols without behaviour",
    "backends/direct_calls.py": "protocols without behaviour",
    "backends/captures.py": "protocols without behaviour",
}

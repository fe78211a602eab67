"""Generated code is the same in every process: caches and bug reports depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = '''
import numpy as np
import plusequals as pe
from plusequals.backends.cc.backend import translate

TEXTS = ["""
def f(a, q):
    for k in range(8):
        best, at, seen, last = -9.0, 0, 0, 1.0
        for m in range(8):
            if a[k, m] > best:
                best, at = a[k, m], m
                seen += 1
            last = last * a[k, m] + best
        q[k] = at + seen + last
""", """
def f(a, q):
    u, v, w = a * 1, a * 2, a * 3
    for t in range(4):
        u, v = v, u + w
        w[1:] = u[:-1] * 2
    q[:] = (u + v + w).sum(axis=1)
    return u, v, w
""", """
def f(a, q):
    m[i] = max(a[i, j])
    e[i, j] = exp(a[i, j] - m[i])
    q[i] = e[i, i] / sum[k](e[i, k])
"""]
for text in TEXTS:
    f = pe.cd_from_source(text, {"np": np})
    print(translate(f.procedure(np.ones((8, 8)), np.ones(8))).text)
'''


def _text(seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": seed}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return run.stdout


def test_code_does_not_depend_on_the_order_of_sets() -> None:
    first = _text("1")
    assert first.count("int pe_f(") == 3
    assert all(_text(seed) == first for seed in ("2", "3"))

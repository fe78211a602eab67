"""The backend `numpy`: always there, the same results, prints where Python prints."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.backends.interpreter import Interpreter
from plusequals.base.diagnostic import CdValueError

from . import procedures


def test_runs_without_anything() -> None:
    backend = Interpreter()
    assert backend.unavailable() is None
    code = backend.compile(procedures.scale())
    y = np.zeros(4)
    assert code.run((y, np.arange(4.0))) == ()
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert code.origin == "interpreted"
    assert code.text.startswith("procedure scale(")
    assert len(code.line_map) == code.text.count("\n")


def test_faults_and_results() -> None:
    backend = Interpreter()
    with pytest.raises(CdValueError, match=r"x is -1.0 at i = 1"):
        backend.compile(procedures.roots()).run((np.zeros(4), -np.arange(4.0)))
    assert backend.compile(procedures.counting()).run((np.array(2), None))[0].tolist() == [0, 1]


def test_prints_where_python_prints(capsys: pytest.CaptureFixture[str]) -> None:
    Interpreter().compile(procedures.talking()).run((np.array([0.1, 2.5, 3]),))
    assert capsys.readouterr().out == "x[0] = 0.1, index 1; done\nagain 2.5\n"

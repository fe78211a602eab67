"""Index letters are importable names that stand for nothing but themselves."""

import string

import pytest

import plusequals as pe
import plusequals.idx as face
from plusequals.dsl.source import idx
from plusequals.dsl.source.idx import Letter, i, i0, is_letter_name, k_


def test_every_letter() -> None:
    assert [getattr(idx, name) for name in string.ascii_lowercase] == [
        Letter(name) for name in string.ascii_lowercase
    ]
    assert (repr(i), i0, k_) == ("i", Letter("i0"), Letter("k_"))


@pytest.mark.parametrize("name", ["ij", "I", "_i", "é", "i_x", "__path__"])
def test_other_names_are_no_letters(name: str) -> None:
    assert not is_letter_name(name)
    with pytest.raises(AttributeError, match="not an index letter"):
        getattr(idx, name)


def test_a_letter_has_no_value() -> None:
    with pytest.raises(TypeError):
        i + 1
    with pytest.raises(AttributeError):
        i.name = "j"


def test_the_face_of_the_package_hands_out_the_same_letters() -> None:
    assert pe.idx is face and face.i is i and face.i0 == i0
    assert [name for name in face.__all__ if getattr(face, name) is not getattr(idx, name)] == []
    with pytest.raises(AttributeError, match="not an index letter"):
        face.row

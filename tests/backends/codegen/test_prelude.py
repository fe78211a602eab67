"""The prelude: complete, each piece after what it needs, and only what is named."""

from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.dialect import C
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.ops import OPS

from .harness import OF_NO_NUMBER, load, needs_compiler


def test_every_operation_has_a_spelling_for_every_type_it_admits() -> None:
    missing = [
        f"{op.call}_{dtype.short}"
        for op in OPS.values() for dtype in dtypes.ALL
        if dtype.kind in op.admits and dtype.compute is dtype and dtype.kind not in op.infix_kinds
        and not prelude.is_prelude_name(f"{op.call}_{dtype.short}")
        and f"{op.call}_{dtype.short}" not in OF_NO_NUMBER
    ]  # fmt: skip
    assert not missing


def test_every_cast_function_of_the_dialect_exists() -> None:
    assert all(prelude.is_prelude_name(name) for name in C.casts.values())


def test_pieces_come_after_what_they_need_and_only_once() -> None:
    assert prelude.required_definitions("y = 2 * x; /* exp_f32 */ // exp_f32") == ()
    found = prelude.required_definitions("recip_c64(x); div_c64(x, y); max_f32(a, b);")
    defined = ["} pe_c64;", "float fabsf(", " recip_c64(", "rounded(x)", " div_c64(", " max_f32("]
    assert len(found) == len(defined)
    assert all(name in text for name, text in zip(defined, found))


def test_functions_that_are_called_often_are_outlined() -> None:
    few = "exp_f64(x); " * prelude.MAX_INLINED_CALLS
    assert not prelude.outlined_functions(few)
    assert "\ninlined double exp_f64" in "\n".join(prelude.required_definitions(few))
    assert prelude.outlined_functions(few + "log_f64(x);") == {"exp_f64"}  # log is called once
    text = "\n".join(prelude.required_definitions(few + "log_f64(x);"))
    assert "\noutlined double exp_f64" in text and "\ninlined double log_f64" in text
    assert prelude.outlined_functions("logaddexp_f32(x, y);" * 20) == {  # by what calls them, too
        "logaddexp_f32", "log1p_f32", "exp_f32"
    }  # fmt: skip
    assert not prelude.outlined_functions("each_exp_f64(y, x, n);" * 100)  # one call in one body


def test_functions_of_elements_that_follow_each_other() -> None:
    text = prelude.required_definitions("each_arctan2_f32(y, a, b, n)")[-1]
    assert "each_arctan2_f32(float *restrict y, const float *restrict a, const float" in text
    assert "y[i] = arctan2_f32(a[i], b[i]);" in text
    assert not prelude.is_prelude_name("each_exp_tail_f64") and not prelude.is_prelude_name("each_")


@needs_compiler
def test_the_whole_prelude_compiles_without_a_warning() -> None:
    whole = prelude.required_definitions(" ".join(prelude.prelude_definitions(prelude.C_FILES)))
    assert len(whole) == len(prelude.prelude_definitions(prelude.C_FILES))
    text = "\n".join([C.header, *whole, "int unit(void) { return 1; }"])
    load(text, "int unit(void);", ["-Wno-psabi"])


@needs_compiler
def test_what_the_c_library_has_is_declared_as_it_has_it() -> None:
    own = prelude.prelude_definitions(("cc/csrc/library.h",))
    system = "".join(f"#include <{name}.h>\n" for name in ("math", "stdlib", "string"))
    declared = [text for text in own.values() if not text.startswith("#define")]
    text = "\n".join([C.header, system, *declared, "int unit(void) { return 1; }"])
    assert load(text, "int unit(void);", ["-Wall", "-Werror"]).unit() == 1

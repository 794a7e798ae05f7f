"""The translator of PTX: what it refuses, and what it finds in kernels that do what none may."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ptx.emulate import WHY_NOT, Memory, module, placed
from ptx.parse import RefusedError

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"not run: {WHY_NOT}")

_HEAD = """.version 9.0
.target sm_90
.visible .entry k(
	.param .align 8 .b8 k_param_0[24]
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .f32 	%f<9>;
	.reg .b32 	%r<9>;
	.reg .f64 	%fd<9>;
	.reg .b64 	%rd<9>;
	// demoted variable
	.shared .align 16 .b8 room[64];

	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u64 	%rd2, [k_param_0+8];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd1, %rd3;
	add.s64 	%rd5, %rd2, %rd3;
"""


def ran(body: str, x: npt.NDArray[Any], threads: int = 0) -> tuple[npt.NDArray[Any], dict[str, int]]:
    """What ``body`` writes for ``x``, a thread for each element: %rd4 is where it is, %rd5 where the result goes."""
    held, out = placed(x), placed(np.full(x.size, 77, np.uint32))
    given = np.array([held.ctypes.data, out.ctypes.data, 0], np.uint64).tobytes()
    kernel = module(_HEAD + body + "\n}\n")
    return out, kernel.launch(
        "k", (1, 1, 1), (threads or x.size, 1, 1), given, [Memory(held), Memory(out, written=True)]
    )


def computed(operation: str, *values: float, kind: str = "f") -> npt.NDArray[Any]:
    """The results of a unary operation on float32."""
    out, faults = ran(
        f"ld.global.f32 %f1, [%rd4];\n{operation};\nst.global.u32 [%rd5], %{kind}2;", np.array(values, np.float32)
    )
    assert faults == {}
    return out


@pytest.mark.parametrize(
    "line",
    [
        "div.full.f32 %f1, %f2, %f3",
        "div.approx.f32 %f1, %f2, %f3",
        "div.rn.ftz.f32 %f1, %f2, %f3",
        "mul.f32 %f1, %f2, %f3",
        "mul.rz.f32 %f1, %f2, %f3",
        "mad.rn.f32 %f1, %f2, %f3, %f4",
        "fma.rz.f32 %f1, %f2, %f3, %f4",
        "cvt.rmi.f32.f32 %f1, %f2",
        "cvt.rni.ftz.f32.f32 %f1, %f2",
        "cvt.rn.bf16.f32 %rs1, %f2",
        "cvt.rni.s32.f32 %r1, %f2",
        "cvt.rzi.s8.f32 %r1, %f2",
        "rcp.approx.f32 %f1, %f2",
        "ex2.approx.f32 %f1, %f2",
        "ld.shared.f32 %f1, [%rd1]",
        "ld.local.f32 %f1, [%rd1]",
        "ld.global.nc.f32 %f1, [%rd1]",
        "ld.volatile.global.f32 %f1, [%rd1]",
        "st.param.f32 [k_param_0], %f1",
        "atom.global.add.f32 %f1, [%rd1], %f2",
        "bar.sync 1",
        "bar.arrive 0, 32",
        "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1",
        "mov.u32 %r1, %laneid",
        "mov.u32 %r1, other",
        "add.s32 %r1, %r2",
        "add.s32 %r1, %r2, %rr3",
        "add.s32 %rr1, %r2, %r3",
        "ld.global.v2.f32 {%f1}, [%rd1]",
        "ld.global.u64 %r1, [%rd1]",
        "brx.idx %r1, table",
        "trap",
        ".local .b8 room[8]",
    ],
)
def test_what_it_does_not_know_it_refuses(line: str) -> None:
    with pytest.raises(RefusedError, match=r"k: .*" + line.split(maxsplit=1)[0]):
        ran(line + ";", np.zeros(1, np.float32))


def test_kernels_of_another_kind_are_refused() -> None:
    with pytest.raises(RefusedError, match="of 1 kernels only"):
        module(".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\tret;\n}\n")


def test_floats() -> None:
    nan = 0x7FFFFFFF
    assert computed("cvt.rni.f32.f32 %f2, %f1", 0.5, 1.5, -0.5, np.nan).tolist() == [0, 0x40000000, 0x80000000, nan]
    # 2^-149 times a half is a tie; a third of it is less; a subnormal is kept.
    assert computed("mul.rn.f32 %f2, %f1, 0f3F000000", 1e-45, 3e-45, 4e-45).tolist() == [0, 1, 2]
    assert computed("div.rn.f32 %f2, %f1, 0f40400000", 1.0, -7.0).tolist() == [0x3EAAAAAB, 0xC0155555]
    # (1 + 2^-23)^2 - (1 + 2^-22), which is 2^-46 exactly, and 0 where the product is rounded before.
    assert computed("fma.rn.f32 %f2, %f1, %f1, 0fBF800002", 1 + 2**-23).tolist() == [0x28800000]
    assert computed("rcp.rn.f32 %f2, %f1", 3.0, np.inf, 0.0).tolist() == [0x3EAAAAAB, 0, 0x7F800000]
    assert computed("neg.f32 %f2, %f1", 0.0, -1.0).tolist() == [0x80000000, 0x3F800000]


def test_maxima_take_the_number_and_know_zeros_apart() -> None:
    assert computed("max.f32 %f2, %f1, 0f00000000", np.nan, -0.0, 0.0, -1.0).tolist() == [0, 0, 0, 0]
    assert computed("min.f32 %f2, %f1, 0f80000000", np.nan, 0.0, 1.0).tolist() == [0x80000000] * 3


@pytest.mark.parametrize(
    ("comparison", "answers"),
    [
        ("lt", [1, 0, 0, 0]),
        ("ltu", [1, 0, 0, 1]),
        ("ne", [1, 0, 1, 0]),
        ("neu", [1, 0, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ],
)
def test_comparisons(comparison: str, answers: list[int]) -> None:
    operation = f"setp.{comparison}.f32 %p1, %f1, 0f3F800000;\nselp.b32 %r2, 1, 0, %p1"
    assert computed(operation, 0.0, 1.0, 2.0, np.nan, kind="r").tolist() == answers


@pytest.mark.parametrize(
    ("operation", "answers"),
    [
        ("shl.b32 %r2, %r1, 31", [0, 0x80000000, 0]),
        ("shl.b32 %r2, %r1, 32", [0, 0, 0]),
        ("neg.s32 %r3, %r1;\nshr.s32 %r2, %r3, 40", [0, 0xFFFFFFFF, 0xFFFFFFFF]),
        ("sub.s32 %r3, %r1, 1;\nshr.u32 %r2, %r3, 1", [0x7FFFFFFF, 0, 0]),
        ("cvt.u16.u32 %rs1, %r1;\nneg.s16 %rs2, %rs1;\ncvt.s32.s16 %r2, %rs2", [0, 0xFFFFFFFF, 0xFFFFFFFE]),
        ("prmt.b32 %r2, %r1, -2, 0x8654U", [0xFFFFFFFE & 0x00FFFFFF] * 3),
        ("mov.b32 {%rs1, %rs2}, %r1;\nmov.b32 %r2, {%rs2, %rs1}", [0, 0x10000, 0x20000]),
        ("setp.eq.s32 %p1, %r1, 1;\nnot.pred %p2, %p1;\nxor.pred %p3, %p2, -1;\nselp.u32 %r2, 5, 6, %p3", [6, 5, 6]),
        ("mov.u32 %r2, 1;\n@%p1 bra $over;\nmov.u32 %r2, 2;\n$over:", [2, 2, 2]),
    ],
)
def test_integers(operation: str, answers: list[int]) -> None:
    out, faults = ran(operation + ";\nst.global.u32 [%rd5], %r2;", np.zeros(3, np.uint32))
    assert (out.tolist(), faults) == (answers, {})


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("ld.global.u32 %r2, [%rd4+2];", "misaligned accesses"),
        ("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+4];", "misaligned accesses"),
        ("ld.global.u32 %r2, [%rd4+16];", "accesses outside the buffers"),
        ("ld.param.u64 %rd6, [k_param_0+24];", "accesses outside the buffers"),
        ("st.global.u32 [%rd5+16], %r1;", "accesses outside the buffers"),
        ("st.global.u32 [%rd4], %r1;", "writes to what is only read"),
        ("st.global.u32 [%rd2], %r1;", "bytes written twice"),
        ("st.global.u32 [%rd5], %r1;\nld.global.u32 %r2, [%rd2];", "bytes that two threads touch, of which one writes"),
        (
            "ld.global.u32 %r2, [%rd2+12];\nst.global.u32 [%rd5], %r1;",
            "bytes that two threads touch, of which one writes",
        ),
        ("cvt.rzi.s32.f32 %r2, 0f4F000000;", "floats made integers that hold them not"),
        ("cvt.rzi.s32.f32 %r2, 0f7FC00000;", "floats made integers that hold them not"),
        ("cvt.rzi.u32.f32 %r2, 0fBF800000;", "floats made integers that hold them not"),
        ("div.u32 %r2, %r1, 0;", "divisions by zero"),
    ],
)
def test_faults_are_counted(body: str, fault: str) -> None:
    _, faults = ran(body, np.zeros(4, np.float32))
    assert set(faults) == {fault}


# A thread writes its number into memory that all share, and reads what its neighbour wrote.
_NEIGHBOURS = """
mov.u32 %r3, room;
shl.b32 %r2, %r1, 2;
add.s32 %r3, %r3, %r2;
st.shared.b32 [%r3], %r1;
{barrier}
xor.b32 %r2, %r2, 4;
mov.u32 %r3, room;
add.s32 %r3, %r3, %r2;
ld.shared.b32 %r4, [%r3];
st.global.u32 [%rd5], %r4;
"""


def test_threads_of_a_block_read_what_others_wrote_before_a_barrier() -> None:
    out, faults = ran(_NEIGHBOURS.format(barrier="bar.sync 0;"), np.zeros(4, np.float32))
    assert (out.tolist(), faults) == ([1, 0, 3, 2], {})


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (_NEIGHBOURS.format(barrier=""), "bytes that two threads touch, of which one writes"),
        ("mov.u32 %r3, room;\nst.shared.b32 [%r3], %r1;", "bytes that two threads touch, of which one writes"),
        ("st.shared.b32 [room+64], %r1;", "accesses outside the buffers"),
        ("ld.shared.v2.b32 {%r2, %r3}, [room+4];", "misaligned accesses"),
        (
            "setp.eq.s32 %p1, %r1, 2;\n@%p1 bra $over;\nbar.sync 0;\n$over:",
            "barriers that some threads of a block do not come to",
        ),
    ],
)
def test_faults_among_the_threads_of_a_block_are_counted(body: str, fault: str) -> None:
    assert set(ran(body, np.zeros(4, np.float32))[1]) == {fault}


def test_what_is_allowed_has_no_fault() -> None:
    body = "ld.global.u32 %r2, [%rd5];\ncvt.rzi.s32.f32 %r3, 0fCF000000;\nst.global.u32 [%rd5], %r3;"
    out, faults = ran(body, np.zeros(4, np.float32))
    assert (out.tolist(), faults) == ([0x80000000] * 4, {})

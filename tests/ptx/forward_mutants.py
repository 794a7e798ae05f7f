"""The forward kernels with one thing changed, each with what has to be found wrong with it."""

from dataclasses import dataclass

from halfeven.optimized.kernels.cuda import programs

__all__ = ["MUTANTS", "Mutant"]

_ARITH, _ELEMENT, _RECIPROCAL = "core/arith.h", "core/element.h", "core/reciprocal.h"
_DEVICE, _FORWARD = "cuda/device.h", "cuda/forward.cu"
_CODES, _BYTES, _FLOATS = (
    ("Quantize", "F32", "F32", "I32"),
    ("Quantize", "BF16", "F32", "U8"),
    ("Quantize", "BF16", "F32", "BF16"),
)
_REALS, _HALVES, _BACK = (
    ("QuantizeDequantize", "F32", "F32", "F32"),
    ("Dequantize", "I64", "F64", "F16"),
    ("Dequantize", "I32", "F32", "F32"),
)
_SHIFTED, _BF16 = ("QuantizeDequantizeShifted", "F32", "F32", "F32"), ("QuantizeDequantize", "BF16", "BF16", "BF16")


@dataclass(frozen=True)
class Mutant:
    """``caught``: words that are all among what is found wrong."""

    name: str
    program: tuple[str, str, str, str]
    caught: tuple[str, ...]
    file: str = _FORWARD
    old: str = ""
    new: str = ""
    options: tuple[str, ...] = ()
    #: Shown to the ties of every code instead, or to rows that are far apart as well.
    ties: bool = False
    far: bool = False

    def texts(self) -> dict[str, str]:
        """The sources with the change; that of the kernels among them."""
        texts = {**programs.headers(), _FORWARD: programs.forward(*self.program).text}
        assert not self.old or texts[self.file].count(self.old) == 1, f"{self.name}: {self.old!r} in {self.file}"
        return {**texts, self.file: texts[self.file].replace(self.old, self.new) if self.old else texts[self.file]}


def _with(**changed: str) -> tuple[str, ...]:
    options = dict(option.split("=") if "=" in option else (option, "") for option in programs.OPTIONS)
    options |= {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return tuple(f"{name}={value}" if value else name for name, value in options.items())


_DIFFERS, _OUTSIDE, _TWICE, _RACE = ("differ",), ("outside the buffers",), ("written twice",), ("two threads touch",)
MUTANTS = (
    Mutant("approximate division", _CODES, ("refused", "approx"), options=_with(prec_div="false")),
    Mutant("subnormals flushed", _REALS, ("refused", ".ftz"), options=_with(ftz="true")),
    Mutant(
        "contraction allowed",
        _BACK,
        ("refused", "mul.f32"),
        _ELEMENT,
        "W::round(W::round(load_as<In, T>(x) + o) * s)",
        "load_as<In, T>(x) * s + o * s",
        _with(fmad="true"),
    ),
    Mutant(
        "dequantize by fma",
        _BACK,
        ("fused operations", "differ"),
        _ELEMENT,
        "W::round(W::round(load_as<In, T>(x) + o) * s)",
        "__builtin_fmaf(load_as<In, T>(x), s, o * s)",
    ),
    Mutant(
        "half up",
        _CODES,
        ("refused", "cvt.rmi.f32.f32"),
        _ARITH,
        "return __builtin_rintf(v);",
        "return floorf(v + 0.5f);",
    ),
    Mutant(
        "half up by integers",
        _CODES,
        _DIFFERS,
        _ARITH,
        "return __builtin_rintf(v);",
        "const float r = __builtin_rintf(v); return v - r == 0.5f ? r + 1 : r;",
    ),
    Mutant(
        "reciprocal of one part",
        _CODES,
        ("fused operations", "differ"),
        _RECIPROCAL,
        "__builtin_fmaf(near, inverse, near * correction)",
        "near * inverse",
    ),
    Mutant(
        "reciprocal without its fallback",
        _REALS,
        _DIFFERS,
        _RECIPROCAL,
        "(s <= kMostScale) & !excepted",
        "(s <= kMostScale)",
        ties=True,
    ),
    Mutant(
        "reciprocal of huge scales",
        _REALS,
        _DIFFERS,
        _RECIPROCAL,
        "(s <= kMostScale) & !excepted",
        "!excepted",
        ties=True,
    ),
    Mutant("reciprocal of tiny scales", _REALS, _DIFFERS, _RECIPROCAL, "(s >= kLeastScale) & ", "(s > 0) & "),
    Mutant(
        "reciprocal beyond its bound",
        _REALS,
        _DIFFERS,
        _RECIPROCAL,
        "(below >= -kBound) & (above >= 0) & (above <= kBound)",
        "true",
        ties=True,
    ),
    Mutant("infinities not limited", _CODES, _DIFFERS, _RECIPROCAL, "limit(x, below, above)", "x"),
    Mutant(
        "zeros without their sign",
        _FLOATS,
        _DIFFERS,
        _RECIPROCAL,
        "bits_of(q) | (bits_of(x) & 0x80000000)",
        "bits_of(q)",
    ),
    Mutant(
        "limits without slack",
        _FLOATS,
        _DIFFERS,
        _RECIPROCAL,
        "(low + o - 1) * s, (high + o + 1) * s",
        "(low + o) * s, (high + o) * s",
    ),
    Mutant("NaN has no code", _CODES, ("integers that hold them not",), _ELEMENT, "q = r == r ? q : nan;", ""),
    Mutant(
        "limits that take NaN",
        _REALS,
        _DIFFERS,
        _ARITH,
        "const C above = v < low ? low : v;",
        "const C above = v >= low ? v : low;",
    ),
    Mutant("shift forgotten", _SHIFTED, _DIFFERS, _FORWARD, "Working<kCompute>::round(o + ends.shift)", "o"),
    Mutant(
        "quotient not rounded", _BF16, _DIFFERS, _ELEMENT, "W::round(load_as<In, T>(x) / s)", "load_as<In, T>(x) / s"
    ),
    Mutant(
        "rounded twice",
        _HALVES,
        _DIFFERS,
        _ARITH,
        "return narrow(round_to_odd(v));",
        "return narrow(static_cast<float>(v));",
    ),
    Mutant(
        "zero point of the wrong sign",
        _CODES,
        _DIFFERS,
        _DEVICE,
        "!p ? C(0) : negated ? -to[k]",
        "!p ? C(0) : negated ? to[k]",
    ),
    Mutant("integer zero is negative", _FLOATS, _DIFFERS, _DEVICE, "subtracted ? C(0) - to[k]", "subtracted ? -to[k]"),
    Mutant(
        "offsets taken for zero points",
        _CODES,
        _DIFFERS,
        _DEVICE,
        "const bool negated = p && !is_offset && is_float(dtype), subtracted = p && !is_offset && !is_float(dtype);",
        "const bool negated = p && is_float(dtype), subtracted = p && !is_float(dtype);",
    ),
    Mutant(
        "parameters of the next row",
        _CODES,
        (*_DIFFERS, *_OUTSIDE),
        _FORWARD,
        "z * job.s_outer + r * job.s_step, 0,",
        "z * job.s_outer + (r + 1) * job.s_step, 0,",
    ),
    Mutant(
        "parameters of the next column",
        _CODES,
        (*_DIFFERS, *_OUTSIDE),
        _FORWARD,
        "z * job.s_outer + column * job.s_step",
        "z * job.s_outer + (column + 1) * job.s_step",
    ),
    Mutant(
        "parameters of no outer index",
        _CODES,
        _DIFFERS,
        _FORWARD,
        "z * job.o_outer + r * job.o_step, 0,",
        "r * job.o_step, 0,",
    ),
    Mutant(
        "one column's constants for all",
        _CODES,
        _DIFFERS,
        _FORWARD,
        "to[k] = c[k].multiplied(",
        "to[k] = c[0].multiplied(",
    ),
    Mutant("one column qualifies for all", _REALS, _DIFFERS, _FORWARD, "fast &= c[k].fast;", "fast = c[k].fast;"),
    Mutant(
        "blocks taken for elements", _CODES, (*_DIFFERS, *_OUTSIDE), _FORWARD, "block = at / job.block[d]", "block = at"
    ),
    Mutant(
        "one element too many",
        _CODES,
        _OUTSIDE,
        _FORWARD,
        "i < job.len - packed; i += step) {\n        const",
        "i <= job.len - packed; i += step) {\n        const",
    ),
    Mutant(
        "one pack too many",
        _CODES,
        _OUTSIDE,
        _FORWARD,
        "for (int64_t p = first; p < cut.packs; p += step)\n        whole",
        "for (int64_t p = first; p <= cut.packs; p += step)\n        whole",
    ),
    Mutant("no end to strided", _CODES, _TWICE, _FORWARD, "i < job.numel;", "i < job.numel + 16;"),
    Mutant(
        "no tail",
        _CODES,
        _DIFFERS,
        _FORWARD,
        "const int64_t at = i < cut.head ? i : i + packed;\n        out",
        "if (i >= cut.head) break;\n        const int64_t at = i;\n        out",
    ),
    Mutant(
        "tail over the packs",
        _CODES,
        (*_TWICE, *_DIFFERS),
        _FORWARD,
        "const int64_t at = i < cut.head ? i : i + packed;\n        out",
        "const int64_t at = i;\n        out",
    ),
    Mutant(
        "packs from the start",
        _CODES,
        ("misaligned",),
        _FORWARD,
        "whole(x + cut.head + p * kWidth, out + cut.head + p * kWidth",
        "whole(x + p * kWidth, out + p * kWidth",
    ),
    Mutant("alignment of one side", _BYTES, ("misaligned",), _DEVICE, "return both ? Cut{", "return true ? Cut{"),
    Mutant("columns aligned in one row", _CODES, ("misaligned",), _FORWARD, "alike ? Cut::of", "true ? Cut::of"),
    Mutant(
        "a row by two threads",
        _CODES,
        _TWICE,
        _FORWARD,
        "r = first_of(blockIdx.y, blockDim.y, threadIdx.y); r < job.rows; "
        "r += all_of(gridDim.y, blockDim.y)) {\n      const X* x",
        "r = blockIdx.y; r < job.rows; r += gridDim.y) {\n      const X* x",
    ),
    Mutant(
        "a row left out",
        _CODES,
        _DIFFERS,
        _FORWARD,
        "r < job.rows; r += all_of(gridDim.y, blockDim.y)) {\n      const X* x",
        "r < job.rows - 1; r += all_of(gridDim.y, blockDim.y)) {\n      const X* x",
    ),
    Mutant(
        "stores of single elements",
        _REALS,
        ("16-byte stores",),
        _FORWARD,
        "  store_pack(to, out);\n}\n\n// One scale and offset per row.",
        "#pragma unroll\n  for (int k = 0; k < kWidth; ++k) out[k] = to[k];\n}\n\n// One scale and offset per row.",
    ),
    Mutant(
        "neighbours read after writing",
        _REALS,
        _RACE,
        _FORWARD,
        "  load_pack(x, from);\n  if (c.fast)",
        "  load_pack(x, from);\n  if (x[kWidth] == 1.5f) from[0] = 0;\n  if (c.fast)",
    ),
    Mutant(
        "places of 32 bits",
        _BYTES,
        ("far: accesses outside",),
        _FORWARD,
        "+ r * job.x_row;\n      Y* out",
        "+ static_cast<int32_t>(r * job.x_row);\n      Y* out",
        far=True,
    ),
)

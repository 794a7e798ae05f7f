"""What each instruction does, as C. An opcode that stands here in no table is refused.

Registers are unsigned integers of their width. ``{0}`` is the destination, ``{1}`` and so on are the sources as
the type of the instruction has them. Every operation on floats is the one that rounds to nearest and keeps subnormals:
no other form of it has an entry.
"""

from dataclasses import dataclass

__all__ = ["OPERATIONS", "SPECIAL", "Operation", "memory"]

SPECIAL = {
    f"%{name}.{axis}": f"{name}[{i}]" for name in ("tid", "ntid", "ctaid", "nctaid") for i, axis in enumerate("xyz")
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True)
class Operation:
    """The value, in C, of sources of these types: ``u32``, ``s16``, ``f64``, ``pred``, ``amount`` and so on."""

    value: str
    sources: tuple[str, ...]
    result: str


def _integers() -> dict[str, Operation]:
    found = {}
    for bits in (16, 32, 64):
        s, u, b = f"s{bits}", f"u{bits}", f"b{bits}"
        for name, sign in (("add", "+"), ("sub", "-")):
            found |= {f"{name}.{t}": Operation(f"{{1}} {sign} {{2}}", (u, u), u) for t in (s, u)}
        found |= {f"mul.lo.{t}": Operation("{1} * {2}", (u, u), u) for t in (s, u)}
        found |= {f"mad.lo.{t}": Operation("{1} * {2} + {3}", (u, u, u), u) for t in (s, u)}
        found |= {
            f"{name}.{b}": Operation(f"{{1}} {sign} {{2}}", (u, u), u)
            for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))
        }
        found[f"not.{b}"] = Operation("~{1}", (u,), u)
        found[f"neg.{s}"] = Operation("-{1}", (u,), u)
        found[f"abs.{s}"] = Operation("{1} < 0 ? 0 - {1} : {1}", (s,), s)
        for t in (s, u):
            found[f"div.{t}"] = Operation(f"divided_{t}({{1}}, {{2}})", (t, t), t)
            found[f"rem.{t}"] = Operation(f"remainder_{t}({{1}}, {{2}})", (t, t), t)
            found[f"min.{t}"] = Operation("{1} < {2} ? {1} : {2}", (t, t), t)
            found[f"max.{t}"] = Operation("{1} > {2} ? {1} : {2}", (t, t), t)
        # An amount beyond the width counts as the width.
        found[f"shl.{b}"] = Operation(f"{{2}} >= {bits} ? 0 : {{1}} << ({{2}} & {bits - 1})", (u, "u32"), u)
        found[f"shr.{u}"] = Operation(f"{{2}} >= {bits} ? 0 : {{1}} >> ({{2}} & {bits - 1})", (u, "u32"), u)
        found[f"shr.{b}"] = found[f"shr.{u}"]
        found[f"shr.{s}"] = Operation(f"{{1}} >> ({{2}} >= {bits} ? {bits - 1} : {{2}})", (s, "u32"), s)
        for t in (s, u, b):
            kind = u if t == b else t
            found |= {
                f"setp.{c}.{t}": Operation(f"{{1}} {sign} {{2}}", (kind, kind), "pred") for c, sign in _COMPARE.items()
            }
            found[f"selp.{t}"] = Operation("{3} ? {1} : {2}", (u, u, "pred"), u)
            found[f"mov.{t}"] = Operation("{1}", (u,), u)
        if bits < 64:
            for t in ("s", "u"):
                narrow, wide = f"{t}{bits}", f"{t}{2 * bits}"
                product = f"({wide}){{1}} * ({wide}){{2}}"
                found[f"mul.wide.{narrow}"] = Operation(product, (narrow, narrow), wide)
                found[f"mad.wide.{narrow}"] = Operation(f"{product} + {{3}}", (narrow, narrow, wide), wide)
    kinds = [f"{t}{bits}" for t in "su" for bits in (8, 16, 32, 64)]
    found |= {f"cvt.{to}.{of}": Operation("{1}", (of,), to) for to in kinds for of in kinds}
    found["prmt.b32"] = Operation("permuted({1}, {2}, {3})", ("u32", "u32", "u32"), "u32")
    return found


def _floats() -> dict[str, Operation]:
    found = {}
    for t, u in (("f32", "u32"), ("f64", "u64")):
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")):
            found[f"{name}.rn.{t}"] = Operation(f"{{1}} {sign} {{2}}", (t, t), t)
        found[f"rcp.rn.{t}"] = Operation("1 / {1}", (t,), t)
        found[f"fma.rn.{t}"] = Operation(
            "__builtin_fma" + ("f" if t == "f32" else "") + "({1}, {2}, {3})", (t, t, t), t
        )
        # Of the bits alone, NaN or not.
        sign_bit = "0x80000000u" if t == "f32" else "0x8000000000000000u"
        found[f"neg.{t}"] = Operation(f"{{1}} ^ {sign_bit}", (u,), u)
        found[f"abs.{t}"] = Operation(f"{{1}} & ~{sign_bit}", (u,), u)
        found[f"mov.{t}"] = Operation("{1}", (u,), u)
        found[f"selp.{t}"] = Operation("{3} ? {1} : {2}", (u, u, "pred"), u)
        for c, sign in _COMPARE.items():
            ordered = f"{{1}} {sign} {{2}}" if c != "ne" else "{1} < {2} || {1} > {2}"
            found[f"setp.{c}.{t}"] = Operation(ordered, (t, t), "pred")
            found[f"setp.{c}u.{t}"] = Operation(f"{ordered} || __builtin_isunordered({{1}}, {{2}})", (t, t), "pred")
        found[f"setp.num.{t}"] = Operation("!__builtin_isunordered({1}, {2})", (t, t), "pred")
        found[f"setp.nan.{t}"] = Operation("__builtin_isunordered({1}, {2})", (t, t), "pred")
        # A number beside one that is none; +0.0 above -0.0.
        for name, sign in (("max", ">"), ("min", "<")):
            other = "{1}" if name == "max" else "{2}"
            zero = f"{{1}} == 0 && {{2}} == 0 ? (__builtin_signbit({other}) ? {{2}} : {{1}})"
            found[f"{name}.{t}"] = Operation(
                f"{{1}} != {{1}} ? {{2}} : {{2}} != {{2}} ? {{1}} : {zero} : {{1}} {sign} {{2}} ? {{1}} : {{2}}",
                (t, t),
                t,
            )
        found[f"cvt.rni.{t}.{t}"] = Operation("__builtin_rint" + ("f" if t == "f32" else "") + "({1})", (t,), t)
        for bits in (8, 16, 32, 64):
            for sign in "su":
                # Integers that the float holds need no rounding, and their instruction has none.
                found[f"cvt.rn.{t}.{sign}{bits}"] = Operation("{1}", (f"{sign}{bits}",), t)
        for to in ("s32", "u32", "s64"):
            found[f"cvt.rzi.{to}.{t}"] = Operation(f"{to}_of({{1}})", (t,), to)
    found["cvt.f64.f32"] = Operation("{1}", ("f32",), "f64")
    found["cvt.rn.f32.f64"] = Operation("(float){1}", ("f64",), "f32")
    return found


def _predicates() -> dict[str, Operation]:
    found = {
        f"{name}.pred": Operation(f"{{1}} {sign} {{2}}", ("pred", "pred"), "pred")
        for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))
    }
    return found | {"not.pred": Operation("!{1}", ("pred",), "pred"), "mov.pred": Operation("{1}", ("pred",), "pred")}


OPERATIONS = {**_integers(), **_floats(), **_predicates()}


def memory(opcode: str) -> tuple[str, str, int, str] | None:
    """``ld`` or ``st``, the space, how many elements, and their type in C; None for what is no access."""
    parts = opcode.split(".")
    if parts[0] not in {"ld", "st"}:
        return None
    # Without a space the address is generic, which here is one of global memory.
    space = parts.pop(1) if parts[1] in {"global", "param", "shared"} else "generic"
    count = int(parts.pop(1)[1:]) if parts[1] in {"v2", "v4"} else 1
    kind = parts[-1].replace("b", "u").replace("f", "u")
    if len(parts) != 2 or kind not in {f"{t}{bits}" for t in "su" for bits in (8, 16, 32, 64)}:
        return None
    return parts[0], space, count, kind

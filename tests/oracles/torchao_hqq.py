"""HQQ without its loop, and with a scale only: group by group, sums exact and rounded once."""

from fractions import Fraction
from math import nan

from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import Array, Soft, soft, softs
from oracles.torchao_blocks import as_integer, clamped, pack

__all__: list[str] = []

_F32 = FORMATS["float32"]
_FOUR_BITS = 4


@derives("torchao/choose_qparams_and_quantize_affine_hqq")
def _without_loop(
    tensor: Array,
    nbits: int = 4,
    group_size: int = 64,
    axis: int = 1,
    compute_dtype: str = "float16",
    raw_output: bool = False,
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    if axis not in (0, 1) or tensor.size % group_size:
        raise AssertionError(axis)
    w = [v.to(_F32) for v in softs(tensor)]
    groups = tensor.size // group_size
    form, top = FORMATS[compute_dtype], soft(2**nbits - 1, "float32")
    codes: list[int] = [0] * tensor.size
    scales, points = [], []
    for g in range(groups):
        at = [g * group_size + i if axis == 1 else i * groups + g for i in range(group_size)]
        inside = [w[i] for i in at]
        low, high = _ends(inside)
        per_real = soft(1.0, "float32") / (high - low) * top
        per_real = soft(2e4, "float32") if per_real.value > 2e4 else per_real
        offset = -low * per_real
        offset = (offset.rint() if nbits == _FOUR_BITS else offset).to(form)
        per_real = per_real.to(form)
        for i in at:
            q = clamped((w[i] * per_real.to(_F32) + offset.to(_F32)).rint(), soft(0.0, "float32"), top)
            codes[i] = as_integer(q.value, 8, signed=False)
        scale = soft(1.0, compute_dtype) / per_real
        zero_point = ((soft(2 ** (nbits - 1), "float32") - offset.to(_F32)) * scale.to(_F32)).to(form)
        scales.append(scale.value)
        points.append(offset.value if raw_output else zero_point.value)
    shape = (groups, 1) if axis == 1 else (1, groups)
    if raw_output:
        rows = tensor.shape[0] if axis == 1 else groups // tensor.shape[-1]
        shape = (rows, groups // rows)
    q8 = pack(list(codes), tensor.shape, "uint8")
    return q8, pack(list(scales), shape, compute_dtype), pack(list(points), shape, compute_dtype), tensor.shape


def _ends(values: list[Soft]) -> tuple[Soft, Soft]:
    if any(v.nan for v in values):
        return Soft(nan, _F32), Soft(nan, _F32)
    return min(values, key=lambda v: v.value), max(values, key=lambda v: v.value)


def _codes(group: list[Soft], scale: Soft, first: Soft, last: Soft) -> list[Soft]:
    return [clamped((v / scale).rint(), first, last) for v in group]


def _fitted(group: list[Soft], codes: list[Soft], before: Soft) -> Soft:
    """The least-squares scale of finite elements; the one before where no code is a number, or all are zero."""
    if any(q.nan for q in codes):
        return before
    products = sum((Fraction(v.value) * Fraction(q.value) for v, q in zip(group, codes, strict=True)), Fraction(0))
    squares = sum((Fraction(q.value) ** 2 for q in codes), Fraction(0))
    return soft(products, "float32") / soft(squares, "float32") if squares else before


@derives("torchao/choose_qparams_and_quantize_scale_only_hqq")
def _scale_only(
    hp_tensor: Array,
    block_size: tuple[int, ...],
    qmin: int,
    qmax: int,
    iters: int = 20,
    early_stop_tol: float = 1e-5,
) -> tuple[Array, Array]:
    fits = hp_tensor.ndim == len(block_size) == 2 and block_size[0] == 1 and block_size[1] > 0
    if not fits or hp_tensor.shape[1] % block_size[1] or qmin >= qmax:
        raise AssertionError(block_size)
    size = block_size[1]
    w = [v.to(_F32) for v in softs(hp_tensor)]
    groups = [w[i : i + size] for i in range(0, len(w), size)]
    least, first, last = (soft(float(v), "float32") for v in (2.0**-23, qmin, qmax))
    reach = soft(float(max(abs(qmin), abs(qmax))), "float32")

    def floor(v: Soft) -> Soft:
        return least if v.value < least.value else v

    scales = [floor(_ends([abs(v) for v in g])[1] / reach) for g in groups]
    limit = soft(early_stop_tol, "float32").value
    for _ in range(max(iters, 1)):
        codes = [_codes(g, s, first, last) for g, s in zip(groups, scales, strict=True)]
        fitted = [floor(_fitted(g, q, s)) for g, q, s in zip(groups, codes, scales, strict=True)]
        moved = [abs(b - a) / floor(a) for a, b in zip(scales, fitted, strict=True)]
        scales = fitted
        if all(m.value < limit for m in moved):
            break
    found = [q for g, s in zip(groups, scales, strict=True) for q in _codes(g, s, first, last)]
    whole = pack([as_integer(q.value, 32, signed=True) for q in found], hp_tensor.shape, "int32")
    dtype = hp_tensor.dtype.name
    shape = (hp_tensor.shape[0], hp_tensor.shape[1] // size)
    return whole, pack([s.to(FORMATS[dtype]).value for s in scales], shape, dtype)

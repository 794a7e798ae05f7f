"""The checks: one file per kind, each a function of the evidence, and for which configurations each is planned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from halfeven.conformance.engine.checks import call_shapes, consistency, errors, result, silent, smoke, values
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive import inputs, lemmas, pairs, scales

__all__ = ["CHECKS", "Check"]

_SIXTEEN = ("float16", "bfloat16")


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        run: gathers the evidence.
        granularities: planned for the backend's first granularity; for that and another (a call with one scale, and
            one with many); for all; or once, where the check crosses them itself.
        every_grid: planned for each grid; else on one signed and one unsigned.
        every_dtype: planned for each dtype; else for the first.
        dtypes: the dtypes for which it makes sense.
        spare: planned on grids alone of which the dtype holds the quarter steps.
        decides: of the exhaustive tier alone: the check whose requirements it decides too.
    """

    run: Callable[[Evidence], None]
    granularities: Literal["first", "two", "all", "crossed"] = "first"
    every_grid: bool = False
    every_dtype: bool = True
    dtypes: tuple[str, ...] = ("float32", "float64", "float16", "bfloat16")
    spare: bool = False
    decides: str = ""


CHECKS: dict[str, Check] = {
    "smoke": Check(smoke.smoke, every_dtype=False),
    "boundaries": Check(values.boundaries, granularities="two", every_grid=True),
    "odd-zero-point": Check(values.odd_zero_point, granularities="two", every_grid=True),
    "edges": Check(values.edges, every_grid=True),
    "huge": Check(values.huge, granularities="two"),
    "all-codes": Check(values.all_codes, granularities="two", every_grid=True),
    "subnormals": Check(silent.subnormals),
    "nan": Check(silent.nan, granularities="two"),
    "zero-sign": Check(silent.zero_sign),
    "call-shapes": Check(call_shapes.call_shapes, granularities="crossed"),
    "result": Check(result.result, granularities="all", every_grid=True),
    "composition": Check(consistency.composition, granularities="two", dtypes=("float32", "float64")),
    "idempotence": Check(consistency.idempotence, every_grid=True, dtypes=("float32", "float64"), spare=True),
    "errors": Check(errors.errors, every_dtype=False),
    "all-inputs": Check(inputs.all_inputs, dtypes=("float32",), decides="boundaries"),
    "every-nan": Check(inputs.every_nan, dtypes=("float32",), decides="nan"),
    "all-pairs": Check(pairs.all_pairs, dtypes=_SIXTEEN, decides="boundaries"),
    "subnormal-pairs": Check(pairs.subnormal_pairs, dtypes=_SIXTEEN, decides="subnormals"),
    "every-scale": Check(scales.every_scale, dtypes=("float32",), decides="boundaries"),
    "monotone": Check(lemmas.monotone, dtypes=("float32",), decides="boundaries"),
    "powers-of-two": Check(lemmas.powers_of_two, dtypes=("float32",), decides="boundaries"),
}

"""Where the first edition kept the formulas: an import says what to write instead."""

__all__: list[str] = []

msg = (
    "halfeven.reference.profiles is now halfeven.reference.systems, and its formulas are found by id: "
    "from halfeven.reference import FORMULAS; FORMULAS['torchao/choose_qparams_affine'].function"
)
raise ImportError(msg)

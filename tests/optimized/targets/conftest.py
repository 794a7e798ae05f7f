from collections.abc import Callable

import pytest
from targets.build import ISAS, MACHINES, built
from targets.driver import Driver

_ONLY = {"avx": "x86_64", "neon": "aarch64"}  # what other kinds of processors have no targets of
_PAIRS = [
    (machine, isa)
    for machine, found in MACHINES.items()
    for isa in ISAS
    if all(found.kind == kind for name, kind in _ONLY.items() if isa.startswith(name))
]


@pytest.fixture(scope="session")
def drivers() -> Callable[[str], Driver]:
    """The driver for a kind of processor, compiled when it is first asked for."""
    found: dict[str, Driver] = {}

    def driver(machine: str) -> Driver:
        if why := MACHINES[machine].missing:
            pytest.skip(why)
        if machine not in found:
            found[machine] = Driver(MACHINES[machine], built(MACHINES[machine]))
        return found[machine]

    return driver


@pytest.fixture(scope="session", params=_PAIRS, ids="-".join)
def target(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> tuple[Driver, str]:
    """A driver, and the name of one target that its processor has."""
    machine, isa = request.param
    driver = drivers(machine)
    if isa not in driver.targets():
        pytest.skip(f"not run: this processor has no {isa}")
    return driver, isa

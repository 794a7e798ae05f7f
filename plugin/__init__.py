"""The pytest plugin: one item per (backend, requirement, check, configuration), with your own tests or alone.

Every pytest run of the environment loads this module, so it has the options alone: the engine, and torch with it, is
imported where ``--halfeven-backend`` asks for it, after every conftest.py has set what it sets.

Every process makes the same plan from the options, so the items run under ``-n``. Results travel with pytest's
reports; the controlling process journals each as it comes and writes the report at the end.
"""

import argparse

import pytest

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's options, all of them with the suite's name in front."""
    group = parser.getgroup("halfeven", "conformance of quantization numerics")
    add = group.addoption
    add(
        "--halfeven-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="a backend: NAME or pkg.mod:attr",
    )
    add("--halfeven-profile", metavar="PROFILE", help="the profile to hold every backend to, instead of its own claim")
    add("--halfeven-item", action="append", default=[], metavar="ID", help="run only this item, named as in a report")
    add("--halfeven-only", action="store_true", help="run only the suite, without your own tests")
    add(
        "--halfeven-tier",
        default="quick",
        choices=["quick", "standard", "exhaustive"],
        help="how much to check (default: quick)",
    )
    add("--halfeven-shard", default="", metavar="I/N", help="exhaustive: the part of all scales (default: 1/16)")
    add("--halfeven-timeout", type=float, default=30.0, metavar="SECONDS", help="what a call may take (default: 30)")
    add("--halfeven-python", metavar="PATH", help="the interpreter that has the backends, where it is another")
    add("--halfeven-seed", type=int, default=0, help="the seed of drawn scales and configurations (default: 0)")
    add(
        "--halfeven-require",
        default="each",
        metavar="SHARE",
        help="what must have been checked to conform: each requirement (default), all checks, any, or a share as 90%%",
    )
    add("--halfeven-strict", action="store_true", help="judge what documents leave open, and what was only measured")
    add("--halfeven-out", metavar="DIR", help="where to write report.json, report.md and the journal")
    for hidden, default in (("--halfeven-resume", False), ("--halfeven-command", "")):
        kind = {"action": "store_true"} if default is False else {"default": default}
        add(hidden, help=argparse.SUPPRESS, **kind)


def pytest_configure(config: pytest.Config) -> None:
    """Start the suite's part of the session, where a backend was named.

    Raises:
        pytest.UsageError: a library that the engine needs does not import.
    """
    if config.getoption("halfeven_backend"):
        try:
            from halfeven.conformance.session import Session
        except (ImportError, OSError) as error:  # torch raises OSError where a shared library is missing
            msg = f"--halfeven-backend is not accepted: the suite does not import: {type(error).__name__}: {error}"
            raise pytest.UsageError(msg) from error

        config.pluginmanager.register(Session(config), "halfeven-session")

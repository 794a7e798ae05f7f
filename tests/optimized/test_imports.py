"""What importing ``halfeven.optimized`` brings in."""

import subprocess
import sys


def test_optimized_imports_neither_reference_nor_conformance(tmp_path: object) -> None:
    script = "import sys, halfeven.optimized.affine; print(*sorted(m for m in sys.modules if m.startswith('halfeven')))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=str(tmp_path))
    loaded = ran.stdout.split()
    assert "halfeven.optimized.affine" in loaded
    assert [m for m in loaded if m.startswith(("halfeven.reference", "halfeven.conformance"))] == []

"""What an import loads and what a wheel weighs."""

import json
import subprocess
import sys

import pytest
from checkout import ROOT

PROGRAM = """
import sys, time
before = set(sys.modules)
start = time.perf_counter()
import tilewright
seconds = time.perf_counter() - start
import json
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""
WHEEL_BYTES = 8 << 20


def test_import_loads_no_third_party_module():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    seconds, modules = json.loads(done.stdout)
    print(f"import tilewright: {1e3 * seconds:.1f} ms, {len(modules)} modules")
    ours = {"tilewright", *sys.stdlib_module_names}
    assert [name for name in modules if name.partition(".")[0] not in ours] == []


@pytest.mark.parametrize("module", ["nn", "optim", "data", "io", "explanation", "gradient_check"])
def test_parts_that_compute_need_no_third_party_module(module):
    program = f"import sys, tilewright.{module}; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_wheel_size():
    wheels = sorted((ROOT / "dist").glob("tilewright-*.whl"))
    if not wheels:
        pytest.skip("no wheel in dist/")
    for wheel in wheels:
        assert wheel.stat().st_size < WHEEL_BYTES, wheel.name

#!/bin/sh
# The tests of the GPU on the machine's own one, unattended: PYTHON runs them; WHEEL, where it is given,
# is installed first, without a network. Ends with the first failure's exit code.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
if [ -n "${WHEEL:-}" ]; then
  "$PYTHON" -m pip install --quiet --no-index --no-deps --force-reinstall "$WHEEL"
fi
# Away from src/, which has no compiled module.
reason=$(cd tests && "$PYTHON" -c 'import tilewright as tw; print(tw.cuda.why_unavailable())')
if [ -n "$reason" ]; then
  echo "test-gpu: there is no GPU to test: $reason" >&2
  exit 1
fi
export TILEWRIGHT_TEST_GPU=1
failed=0
# Ten minutes are the bound for all: what hangs must not hide what follows.
run() { timeout --kill-after=5 "$@" || failed=$?; }
# Six processes where pytest-xdist is installed: each has half a gigabyte of the GPU for itself.
several=$("$PYTHON" -c 'import xdist; print("-n 6 --dist worksteal")' 2>/dev/null || true)
# shellcheck disable=SC2086
run 420 "$PYTHON" -m pytest -q -p no:cacheprovider $several --gpu-programs 300 \
  tests/cuda/test_gpu.py tests/cuda/test_gpu_records.py tests/cuda/test_gpu_sizes.py \
  tests/cuda/test_gpu_matmul.py tests/cuda/test_gpu_networks.py tests/cuda/test_gpu_capture.py \
  tests/cuda/test_gpu_training.py tests/cuda/test_gpu_programs.py
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck; do
    run 75 "$sanitizer" --tool "$tool" --error-exitcode 9 --launch-timeout 0 \
      "$PYTHON" -m pytest -q -p no:cacheprovider tests/cuda/test_gpu_records.py \
      --case '^float32$' -k "test_values and (softmax or matmul or sum or layer_norm or cross_entropy)"
  done
else
  echo "test-gpu: compute-sanitizer is not installed: left out"
fi
exit "$failed"

#!/usr/bin/env bash
# Builds and runs what needs a GPU, in one call: scripts/gpu_checks.sh [gtest options].
# Where there is no CUDA driver every test skips and says why; the count of skipped tests is part of the output.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release >/dev/null
cmake --build --preset release --target device_cuda_test
if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; fi
exec build/release/tests/device_cuda_test "$@"

#!/usr/bin/env bash
# How much predicted steps depend on each constant that was fitted or assumed: of every source's runs with one GPU, precision and
# framework the one that is simulated soonest, with the constant 10 % larger. For each constant: how many of these runs have it; what
# it moves the step time by, in per cent: median, least and most; and the median errors of dense runs and of those with experts before
# and after. Keeps the table in bench/accuracy/sensitivity.csv and fails where it is another.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TANDEM_SENSITIVITY=1 TEST_TMPDIR=$work build/release/end_to_end_test --gtest_filter='ConstantSensitivity.*' --gtest_brief=1 |
  sed 's/,/ | /g'
if ! diff -q bench/accuracy/sensitivity.csv "$work/sensitivity.csv" >/dev/null 2>&1; then
  cp "$work/sensitivity.csv" bench/accuracy/sensitivity.csv
  echo "bench/accuracy/sensitivity.csv has changed; git diff shows how"
  exit 1
fi

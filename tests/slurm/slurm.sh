#!/usr/bin/env bash
# slurm.sh SOURCES TANDEM FOLDER: what --slurm does on a real Slurm, started and stopped here: points, plans and runs come out as
# they do without it, whatever dies on the way. Skipped (77) where Slurm is missing, unless TANDEM_NEEDS_PACKAGES is 1.
set -euo pipefail
sources=$1 tandem=$2 folder=$3
. "$(dirname "$0")/cluster.sh"

fail() { printf 'slurm: %s\n' "$*" >&2; exit 1; }
skip() {
  [[ ${TANDEM_NEEDS_PACKAGES:-} != 1 ]] || fail "$*"
  printf 'slurm: skipped: %s\n' "$*"
  exit 77
}
PATH=$PATH:/usr/sbin
for program in slurmctld slurmd munged sbatch squeue scontrol python3; do
  command -v "$program" >/dev/null || skip "no $program here (slurm-wlm, munge)"
done

rm -rf "$folder"
mkdir -p "$folder/run"
trap stop_slurm EXIT
start_slurm "$folder/slurm" || skip "Slurm does not start here"
cd "$folder/run"

cat >study.yaml <<YAML
scenario:
  {name: base, model: tiny-llama, cluster: {preset: dgx-h100}, training: {sequence: 128, global_batch: 32, precision: bf16}}
skip_invalid: true
grid: {parallelism.dp: [1, 2, 4, 8, 3], training.micro_batch: [1, 2], cluster.gpu.memory_GiB: [0.01, 80]}
YAML
# Each point takes seconds, so that a node can die meanwhile.
cat >slow.yaml <<YAML
scenario: $sources/scenarios/llama3-405b-16k-128k.yaml
set: {cluster.gpus: ~}
grid: {parallelism.dp: [1, 2], training.global_batch: [32, 64, 96, 128]}
YAML

points() { python3 "$sources/tests/slurm/same_points.py" "$1"; }
expect_same_points() { diff <(points "$1") <(points "$2") >&2 || fail "$2 is not $1"; }
expect_tidy() { [[ ! -e $1.slurm ]] || fail "$1.slurm is left: $(find "$1.slurm")"; }
# until_it SECONDS COMMAND..: waits for the command to succeed.
until_it() {
  local tries=$(($1 * 10))
  shift
  for ((; tries > 0; --tries)); do ! "$@" || return 0; sleep 0.1; done
  return 1
}
files_in() { find "$1" -type f ! -name '.*' 2>/dev/null | wc -l; }
some_points_taken() { (($(files_in "$1.slurm/taken") >= 2 && $(files_in "$1.slurm/kept") >= 1)); }

# A sweep, with points that are refused and that do not fit.
"$tandem" sweep study.yaml --out plain.sqlite --csv plain.csv >plain.txt
"$tandem" sweep study.yaml --out study.sqlite --csv study.csv --slurm=3 --sbatch="--time=10 --comment='of a test'" >study.txt
expect_same_points plain.sqlite study.sqlite
expect_tidy study.sqlite
diff <(sed 's/plain.sqlite/study.sqlite/' plain.txt) study.txt >&2 || fail "the sweep prints another table"
timeless() {
  python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
  print({name: cell for name, cell in row.items() if name not in ("started", "seconds", "digest") and not name.startswith("run.")})' "$1"
}
diff <(timeless plain.csv) <(timeless study.csv) >&2 || fail "the sweep writes another CSV"
"$tandem" sweep study.yaml --out study.sqlite --slurm 2>again.txt >/dev/null
[[ ! -s again.txt ]] || fail "known points are submitted again: $(<again.txt)"

# A search, whose rounds follow from each other, and a validation.
axes='{tp: [1, 2, 4], pp: [1, 2], cp: [1], zero: [1], micro_batch: [1, 2]}'
search=(search "$sources/scenarios/llama3-8b-64.yaml" --set "search={axes: $axes}")
"$tandem" "${search[@]}" --out plain-search.sqlite --json plain-search.json >/dev/null
"$tandem" "${search[@]}" --out search.sqlite --json search.json --jobs 2 --slurm=2 >/dev/null
expect_same_points plain-search.sqlite search.sqlite
for name in plain-search search; do
  python3 -c 'import json, sys
for plan in json.load(open(sys.argv[1]))["best"]: print(plan["fields"], plan["step_time_s"])' $name.json >$name.best
done
cmp plain-search.best search.best || fail "the search finds other plans"
runs=$sources/scenarios/runs/korthikanti-2022.csv
"$tandem" validate "$runs" --csv plain-runs.csv >/dev/null
"$tandem" validate "$runs" --csv runs.csv --slurm=2 >/dev/null
cmp plain-runs.csv runs.csv || fail "the validation scores otherwise"
expect_tidy korthikanti-2022.validate

# What sbatch refuses ends the command with what sbatch says.
! "$tandem" sweep study.yaml --out refused.sqlite --slurm --sbatch=--partition=nowhere 2>refused.txt >/dev/null ||
  fail "sbatch refused nothing"
grep -q 'sbatch took no job: .*partition' refused.txt || fail "$(<refused.txt)"
expect_tidy refused.sqlite

# A task is killed: its points go to the others.
"$tandem" sweep slow.yaml --out plain-slow.sqlite >/dev/null
"$tandem" sweep slow.yaml --out killed.sqlite --slurm=3 --jobs 1 2>killed.txt >/dev/null &
sweep=$!
until_it 60 some_points_taken killed.sqlite || fail "no task takes a point: $(<killed.txt)"
victim=$(find killed.sqlite.slurm/taken -type f -printf '%f\n' | head -n 1)
process=$(processes_with "SLURM_ARRAY_TASK_ID=${victim##*_}" | while read -r pid; do
  case $(ps --no-headers --format args --pid "$pid") in *slurm-task*killed.sqlite.slurm*) echo "$pid" ;; esac
done)
kill -KILL $process # with its children
wait $sweep || fail "a killed task fails the sweep: $(<killed.txt)"
expect_same_points plain-slow.sqlite killed.sqlite
expect_tidy killed.sqlite

# A node dies: its points are done on the other one.
"$tandem" sweep slow.yaml --out node.sqlite --slurm=4 --sbatch=--cpus-per-task=2 2>node.txt >/dev/null &
sweep=$!
runs_on_both_nodes() { [[ $(squeue --noheader --states=RUNNING --format=%N | sort -u | wc -l) == 2 ]] && some_points_taken node.sqlite; }
until_it 60 runs_on_both_nodes || fail "the tasks do not run on both nodes: $(squeue; cat node.txt)"
kill_node two
wait $sweep || fail "a dead node fails the sweep: $(<node.txt)"
expect_same_points plain-slow.sqlite node.sqlite
expect_tidy node.sqlite
grep -q 'NODE_FAIL\|it is gone' node.txt || fail "nobody tells of the dead node: $(<node.txt)"
scontrol update NodeName=two State=RESUME
start_node two

# The waiting command is killed: the tasks go on, and the same command takes what they have done.
"$tandem" sweep slow.yaml --out waiting.sqlite --slurm=2 --jobs 1 2>waiting.txt >/dev/null &
sweep=$!
until_it 60 some_points_taken waiting.sqlite || fail "no task takes a point: $(<waiting.txt)"
kill -KILL $sweep
wait $sweep 2>/dev/null || true
before=$(($(files_in waiting.sqlite.slurm/kept) + $(files_in waiting.sqlite.slurm/done)))
some_more() { (($(files_in waiting.sqlite.slurm/kept) + $(files_in waiting.sqlite.slurm/done) > before)); }
until_it 60 some_more || fail "the tasks end with the command"
"$tandem" sweep slow.yaml --out waiting.sqlite --slurm=2 --jobs 1 2>resumed.txt >/dev/null || fail "it does not go on: $(<resumed.txt)"
! grep -q 'Slurm job' resumed.txt || fail "it submits another array though one runs: $(<resumed.txt)"
expect_same_points plain-slow.sqlite waiting.sqlite
expect_tidy waiting.sqlite

# Interrupted, the command takes its tasks back, and the next one does the rest.
"$tandem" sweep slow.yaml --out interrupted.sqlite --slurm=2 --jobs 1 2>interrupted.txt >/dev/null &
sweep=$!
until_it 60 some_points_taken interrupted.sqlite || fail "no task takes a point: $(<interrupted.txt)"
kill -TERM $sweep
! wait $sweep || fail "an interrupted sweep says that it is done"
grep -q 'the same command does the others' interrupted.txt || fail "$(<interrupted.txt)"
no_tasks() { [[ -z $(squeue --noheader) ]]; }
until_it 30 no_tasks || fail "tasks are left: $(squeue)"
"$tandem" sweep slow.yaml --out interrupted.sqlite --slurm=2 >/dev/null 2>&1
expect_same_points plain-slow.sqlite interrupted.sqlite
printf 'slurm: points, plans and runs are those without it, on Slurm %s\n' "$(sbatch --version | cut -d' ' -f2)"

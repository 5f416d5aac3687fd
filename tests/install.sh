#!/usr/bin/env bash
# install.sh SOURCES BUILD TANDEM FOLDER: installs BUILD below FOLDER, builds docs/examples/exposed against that, and holds what it prints
# to the result of TANDEM simulate, digit by digit; the installed program must leave the same result.
set -euo pipefail
sources=$1 build=$2 tandem=$3 folder=$4

fail() { printf 'install: %s\n' "$*" >&2; exit 1; }

# step LOG COMMAND..: quiet as long as it works.
step() {
  local log=$folder/$1.log
  shift
  "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "$* failed"; }
}

rm -rf "$folder"
mkdir -p "$folder"
step install cmake --install "$build" --prefix "$folder/prefix"
grep -q simulate "$folder/prefix/share/bash-completion/completions/tandem" && grep -q simulate "$folder/prefix/share/zsh/site-functions/_tandem" ||
  fail "completions are missing"
heavy='<(nlohmann/json\.hpp|simgrid/|spdlog/|fmt/|google/|yaml-cpp/|pugixml|toml|sqlite3|httplib|CLI/)'
! grep -rlE "#include $heavy" "$folder/prefix/include" || fail "these headers bring what their users need not have"
step configure cmake -S "$sources/docs/examples/exposed" -B "$folder/build" -G Ninja -D CMAKE_PREFIX_PATH="$folder/prefix"
step build cmake --build "$folder/build"
# A header that the installed tree lacks must not come from the sources.
! grep -q "$sources/\(runtime\|scenarios\|studies\)" "$folder/build/build.ninja" || fail "the example includes from the sources"

scenario=$sources/scenarios/llama3-70b-512.yaml
"$folder/build/exposed" "$scenario" >"$folder/exposed.txt"
for program in "$tandem" "$folder/prefix/bin/tandem"; do
  "$program" simulate "$scenario" --json "$folder/result.json" >/dev/null
  awk '
    NR == FNR { printed[$1] = $2 + 0; next }
    { gsub(/[",]/, ""); name = $1; sub(/:$/, "", name); sub(/^step_time_s$/, "step", name) }
    name == "stages_s" { exit }
    name in printed { expected[name] = $2 + 0 }
    END {
      for (name in printed) {
        if (name in expected && printed[name] == expected[name]) ++same
        else print name, printed[name], "expected", expected[name]
      }
      exit same != 7
    }' "$folder/exposed.txt" "$folder/result.json" || fail "what the example prints is not what $program simulates"
done

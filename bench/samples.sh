# shellcheck shell=bash
# For the benchmarks in this folder, to be sourced: samples of several runs in files, and their medians.
runs=${RUNS:-5} # odd
samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT

# number FILE KEY: the value of a numeric key that occurs once in the JSON file.
number() { sed -n "s/.*\"$2\": *\([-+.0-9eE]*\).*/\1/p" "$1"; }

# median FILE: of one number per line.
median() { sort -g "$1" | sed -n "$((runs / 2 + 1))p"; }

# sample NAME ARGUMENT..: one `tandem simulate`, from start to exit; what it took goes to NAME's samples.
sample() {
  local name=$1 result=$samples/result.json key
  local TIMEFORMAT='%R %U %S'
  shift
  { time build/release/tandem simulate "$@" --json "$result" >/dev/null 2>"$samples/error"; } 2>"$samples/time" || { cat "$samples/error" >&2; exit 1; }
  awk '{ print $1 }' "$samples/time" >>"$samples/$name.process_s"
  awk '{ print $2 + $3 }' "$samples/time" >>"$samples/$name.cpu_s"
  for key in gpus rank_classes link_classes tasks wall_s peak_rss_bytes; do
    number "$result" "$key" >>"$samples/$name.$key"
  done
}

# progress TEXT: on a terminal alone.
progress() { [[ ! -t 2 ]] || printf '\r\e[K%s' "$*" >&2; }

#!/usr/bin/env bash
# What the action does, and what its test calls: lints each file of $SCENARIOS (one on a line) in the current repository, simulates it as
# it is and as it was in the commit $BASE, and writes what is found and what changed to $MARKDOWN and to $GITHUB_STEP_SUMMARY.
# Exits as $FAIL_ON says: "warning", "error" (refused, or does not fit) or "never". TANDEM: the program.
set -euo pipefail
tandem=$(realpath -- "$(command -v -- "${TANDEM:-tandem}")")
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
worst=0

# The whole tree of the base, as a scenario may name other files.
base_is_there=no
if [[ -n ${BASE:-} && $BASE != 0000000* ]]; then
  git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE" || true
  commit=$(git rev-parse --quiet --verify "$BASE^{commit}" || git rev-parse --quiet --verify FETCH_HEAD^{commit} || true)
  [[ -z $commit ]] || { git worktree add --quiet --detach "$work/base" "$commit" && base_is_there=yes; }
fi

# said FILE: what a command said on standard error, as a block of code that what it says cannot end.
said() { sed 's/^/    /' "$1"; }

compare() {
  local scenario=$1 status=0
  printf '### Tandem: `%s`\n\n' "${scenario//\`/}"
  "$tandem" lint "$scenario" --markdown "$work/lint.md" >/dev/null 2>"$work/said" || status=$?
  ((status <= worst)) || worst=$status
  if [[ ! -s $work/lint.md ]]; then
    said "$work/said"
    return
  fi
  status=0
  "$tandem" simulate "$scenario" --allow-oom --json "$work/now.json" >/dev/null 2>"$work/said" || status=$?
  if ((status == 0)) && [[ $base_is_there == yes && -e $work/base/$scenario ]]; then
    if (cd "$work/base" && "$tandem" simulate "$scenario" --allow-oom --json "$work/before.json") >/dev/null 2>"$work/said"; then
      (cd "$work" && "$tandem" diff before.json now.json --markdown -) || status=$?
    else
      printf 'Before this change it could not be simulated:\n\n'
      said "$work/said"
    fi
    printf '\n'
  elif ((status == 0)); then
    printf 'There is nothing to compare it with: the base does not have it.\n\n'
  fi
  printf '<details><summary>What lint says</summary>\n\n'
  cat "$work/lint.md"
  printf '\n</details>\n\n'
  rm -f "$work"/lint.md "$work"/*.json
}

while IFS= read -r scenario; do
  [[ -z $scenario ]] || compare "$scenario"
done <<<"$SCENARIOS" >"$work/all.md"
cp "$work/all.md" "$MARKDOWN"
[[ -z ${GITHUB_STEP_SUMMARY:-} ]] || cat "$MARKDOWN" >>"$GITHUB_STEP_SUMMARY"
[[ -z ${GITHUB_OUTPUT:-} ]] || printf 'markdown=%s\n' "$MARKDOWN" >>"$GITHUB_OUTPUT"

case ${FAIL_ON:-error} in
  never) exit 0 ;;
  warning) exit "$worst" ;;
  error) ((worst < 2)) || exit "$worst" ;;
  *) printf 'fail-on is %s, expected warning, error or never\n' "$FAIL_ON" >&2; exit 2 ;;
esac

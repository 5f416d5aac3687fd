#!/usr/bin/env bash
# action.sh SOURCES TANDEM FOLDER: what the GitHub action says of a change to a scenario, in a repository made for it, and how it ends.
# Skipped (77) without git.
set -euo pipefail
sources=$1 tandem=$2 folder=$3
command -v git >/dev/null || { echo "action: skipped: no git here"; exit 77; }

fail() { printf 'action: %s\n' "$*" >&2; cat "$folder/said.md" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder/repository/runs"
cd "$folder/repository"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init --quiet
step() {
  sed "s/recompute: none/recompute: $1/" <<'YAML' >runs/small.yaml
name: small
model: {layers: 2, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}
cluster: {preset: dgx-h100, gpus: 8}
parallelism: {tp: 2, sp: true, pp: 2, dp: 2}
training: {sequence: 1024, micro_batch: 1, global_batch: 16, recompute: none}
YAML
}
step none
git add . && git commit --quiet --message before
base=$(git rev-parse HEAD)
step full

# said [VARIABLE=VALUE].. : runs the action on what is there, and leaves the exit code in `status`.
said() {
  status=0
  env TANDEM="$tandem" MARKDOWN="$folder/said.md" SCENARIOS=runs/small.yaml BASE="$base" GITHUB_OUTPUT="$folder/output" \
    GITHUB_STEP_SUMMARY="$folder/summary.md" "$@" "$sources/.github/actions/tandem/compare.sh" || status=$?
}
expect() { grep -qF -- "$1" "$folder/said.md" || fail "nothing of '$1'"; }

said
((status == 0)) || fail "exits with $status"
expect '### Tandem: `runs/small.yaml`'
expect '| compute |'
expect '<details><summary>What lint says</summary>'
cmp "$folder/said.md" "$folder/summary.md"
[[ $(<"$folder/output") == "markdown=$folder/said.md" ]] || fail "the output is $(<"$folder/output")"
"$tandem" simulate runs/small.yaml --json "$folder/now.json" >/dev/null
git show "$base:runs/small.yaml" >"$folder/before.yaml"
"$tandem" simulate "$folder/before.yaml" --json "$folder/before.json" >/dev/null
expect "$("$tandem" diff "$folder/before.json" "$folder/now.json" --markdown - | head -n 1)"
[[ $(git worktree list | wc -l) == 1 ]] || fail "it leaves a worktree behind"

git mv runs/small.yaml runs/new.yaml
said SCENARIOS=$'runs/new.yaml\n'
((status == 0)) || fail "exits with $status"
expect 'There is nothing to compare it with'
said SCENARIOS=runs/new.yaml BASE=0000000000000000000000000000000000000000
((status == 0)) || fail "exits with $status on a first push"
git mv runs/new.yaml runs/small.yaml

sed -i 's/tp: 2/tp: 3/' runs/small.yaml
said
((status == 2)) || fail "exits with $status for a refused scenario"
expect '**error (refused)**'
said FAIL_ON=never
((status == 0)) || fail "never fails, and exits with $status"
step none
sed -i 's/gpus: 8/gpus: 8, gpu: {preset: h100-sxm-80gb, memory_GiB: 0.001}/' runs/small.yaml
said
((status == 3)) || fail "exits with $status for one that does not fit"
expect '**error (does-not-fit'
rm runs/small.yaml
said
((status == 2)) || fail "exits with $status for a missing file"
expect 'runs/small.yaml: cannot be read'

# The comment: made the first time, changed the next, by a gh that answers as GitHub does.
mkdir "$folder/bin"
cat >"$folder/bin/gh" <<'GH'
#!/usr/bin/env bash
printf '%s\n' "$*" >>"$GH_CALLS"
for word in "$@"; do
  [[ $word != body=@* ]] || cp "${word#body=@}" "$GH_COMMENT"
done
[[ " $* " != *" --jq "* || ! -e $GH_COMMENT ]] || printf '41\n42\n'
GH
chmod +x "$folder/bin/gh"
for round in POST PATCH; do
  env PATH="$folder/bin:$PATH" GH_CALLS="$folder/calls" GH_COMMENT="$folder/comment.md" GITHUB_REPOSITORY=a/b PULL_REQUEST=7 \
    MARKDOWN="$folder/summary.md" "$sources/.github/actions/tandem/comment.sh" || fail "it cannot comment"
  tail -n 1 "$folder/calls" | grep -q -- "--method $round repos/a/b/issues/" || fail "no $round: $(tail -n 1 "$folder/calls")"
done
tail -n 1 "$folder/calls" | grep -q 'issues/comments/41 ' || fail "it changes another comment"
cmp <(printf '<!-- tandem -->\n'; cat "$folder/summary.md") "$folder/comment.md"

# Tandem's parser stands for that of GitHub: it must have nothing to say of the syntax.
{ "$tandem" simulate "$sources/.github/actions/tandem/action.yml" 2>&1 || true; } | grep -q 'has no field `description`' || fail "action.yml is no YAML"

#!/usr/bin/env bash
# Comments $MARKDOWN on pull request $PULL_REQUEST of $GITHUB_REPOSITORY: one comment, which each push changes. GH_TOKEN: for gh.
set -euo pipefail
mark='<!-- tandem -->' # how the comment is found again
most=60000             # GitHub takes 65,536 characters
body=$(mktemp)
trap 'rm -f "$body"' EXIT
printf '%s\n' "$mark" >"$body"
head -c "$most" "$MARKDOWN" | iconv -c -f UTF-8 -t UTF-8 >>"$body"

comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
ids=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id")
id=${ids%%$'\n'*}
if [[ -n $id ]]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field body=@"$body"
else
  gh api --silent --method POST "$comments" --field body=@"$body"
fi

#!/usr/bin/env bash
# on-all-gpus.sh COMMAND..: a process for each GPU of this machine (or of CUDA_VISIBLE_DEVICES), as a launcher would start them; with
# one GPU, the command alone.
# The exit code is that of one that failed.
set -uo pipefail

if [[ -n ${CUDA_VISIBLE_DEVICES:-} ]]; then
  gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l)
else
  gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
fi
((gpus > 1)) || exec "$@"
TANDEM_SECRET=${TANDEM_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')} # by which the processes know each other
export TANDEM_SECRET
status=0
processes=()
for ((rank = 0; rank < gpus; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$gpus MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 "$@" &
  processes+=($!)
done
for process in "${processes[@]}"; do wait "$process" || status=$?; done
exit "$status"

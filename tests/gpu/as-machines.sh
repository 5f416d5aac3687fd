#!/usr/bin/env bash
# as-machines.sh COUNT COMMAND..: so many processes on one GPU, each a machine of its own for NCCL, which else refuses two ranks on
# one GPU. What they send goes through NCCL's network transport on the loopback.
# The exit code is that of one that failed.
set -uo pipefail
count=$1
shift
TANDEM_SECRET=${TANDEM_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')} # by which the processes know each other
export TANDEM_SECRET
status=0
processes=()
for ((rank = 0; rank < count; ++rank)); do
  NCCL_HOSTID=tandem-$rank NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_NET=${NCCL_NET:-Socket} RANK=$rank LOCAL_RANK=0 \
    WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 MASTER_PORT=29521 "$@" &
  processes+=($!)
done
for process in "${processes[@]}"; do wait "$process" || status=$?; done
exit "$status"

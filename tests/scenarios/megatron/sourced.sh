#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
set -ex
SCRIPT_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${SCRIPT_DIR}/models/small-moe.sh"

LINKS=$(nvidia-smi | grep -o "NVLink" | wc -l)
if [ "$LINKS" -gt 0 ]; then HAS_NVLINK=1; else HAS_NVLINK=0; fi

PERF_ARGS=(
   --tensor-model-parallel-size ${TP:-2} --sequence-parallel
   --pipeline-model-parallel-size 1
   --expert-model-parallel-size 2
   --expert-tensor-parallel-size 1
)
if [ -n "${WANDB_KEY}" ]; then
   PERF_ARGS+=(--wandb-key ${WANDB_KEY})
fi
cat <<SETTINGS > /tmp/nothing
--num-layers 99
SETTINGS
mkdir -p logs || { echo "no folder"; exit 1; }
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_PER_NODE pretrain_gpt.py \
   ${MODEL_ARGS[@]} ${PERF_ARGS[@]} --bf16 \
   --seq-length 128 --micro-batch-size 1 --global-batch-size 16 --save ${SAVE_DIR}/x --nvlink-there $HAS_NVLINK ${MORE}

#!/bin/bash
GPUS_PER_NODE=8
NNODES=${NNODES:-4}
TP=${TP:-2}
MODEL_ARGS=(
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --group-query-attention --num-query-groups 4
    --seq-length 4096 --max-position-embeddings 4096 --swiglu --normalization RMSNorm
    --position-embedding-type rope --rotary-base "${BASE:-500000}"
    --tokenizer-type GPT2BPETokenizer
)
for ((i = 0; i < 24; i++)); do freq+=($((i % 2))); done
MOE_ARGS=(--num-experts 8 --moe-router-topk 2 --moe-layer-freq "([0]*1+[1]*23)" --moe-ffn-hidden-size 1024)
if [ "$TP" -gt 1 ]; then
    MODEL_ARGS+=(--sequence-parallel)
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    "${MODEL_ARGS[@]}" ${MOE_ARGS[@]} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \
    --micro-batch-size 1 --global-batch-size $((2 * NNODES * GPUS_PER_NODE)) \
    --use-distributed-optimizer --overlap-grad-reduce --bf16

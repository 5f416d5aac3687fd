#!/bin/bash
# Strings of options by the size of the model, as Pai-Megatron-Patch has them.
SIZE=$1
TP=${2}
PR=$3
if [ $SIZE = small ]; then
  LAYERS=4
  HIDDEN=64
  moe_options=""
elif [ $SIZE = large ]; then
  LAYERS=8
  HIDDEN=128
  moe_options=" \
    --num-experts 4 \
    --moe-layer-freq '([1]*8)'"
fi
overlap=$(( ($TP > 1) ? 1 : 0 ))
if [ $overlap -eq 1 ]; then
  tp_options=" --sequence-parallel --tp-comm-overlap"
fi
case $PR in
  bf16) pr_options="--bf16" ;;
  fp8) pr_options=" \
    --bf16 --fp8-format hybrid --fp8-recipe blockwise" ;;
  *) echo "no precision"; exit 1 ;;
esac
if [ -z ${VIRTUAL} ]; then vp=""; else vp="--num-virtual-stages-per-pipeline-rank ${VIRTUAL}"; fi
options=" \
  --num-layers ${LAYERS} --hidden-size ${HIDDEN} --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
  --micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size ${TP} --swiglu --padded-vocab-size 512 \
  --disable-bias-linear "
run="torchrun --nproc_per_node 8 pretrain_qwen.py ${options} ${tp_options} ${pr_options} ${moe_options} ${vp}"
echo ${run}
eval ${run}

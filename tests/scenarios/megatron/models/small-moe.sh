# Sets MODEL_ARGS, as slime's scripts/models do.
DENSE=1
EXPERTS=3
MODEL_ARGS=(
    --num-layers $((DENSE + EXPERTS))
    --hidden-size 64 --ffn-hidden-size 128
    --num-attention-heads 4   # of 16
    --group-query-attention --num-query-groups 2
    --swiglu --disable-bias-linear --normalization RMSNorm
    --position-embedding-type rope
    --vocab-size 1000
    --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32
    --moe-layer-freq [0]*$DENSE+[1]*$EXPERTS
    --moe-token-dispatcher-type alltoall
)

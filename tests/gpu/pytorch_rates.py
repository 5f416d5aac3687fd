#!/usr/bin/env python3
"""How long the kernels of acceptance.shapes take by PyTorch on this GPU, as cuBLAS and cuDNN are called elsewhere.

A line for each, `ROW = MICROSECONDS`, where ROW is how the profile's row of the kernel begins; a comment where there is no
PyTorch, or none with this GPU.
"""
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as attention

    from busy_gpu import Load, products, random
except ImportError as error:
    print(f"# left out: {error}")
    sys.exit()
if not torch.cuda.is_available():
    print("# left out: PyTorch finds no GPU")
    sys.exit()


load = Load(products(fp8=False))


def microseconds(run):
    for _ in range(3):
        run()
    return load.in_step(run) * 1e6


def product(m, n, k):
    a, b = random(m, k), random(n, k)
    print(f"gemm bf16[{m},{k}] bf16[{n},{k}] bf16[{m},{n}] = {microseconds(lambda: a @ b.T):.3f}")


def fused_attention(positions, heads, kv_heads, width):
    q = random(1, heads, positions, width, trained=True)
    k, v = (random(1, kv_heads, positions, width, trained=True) for _ in range(2))
    out_gradient = random(1, heads, positions, width)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        forward = lambda: attention(q, k, v, is_causal=True, enable_gqa=True)
        try:
            out = forward()
        except RuntimeError as error:
            print(f"# keys and values are repeated for each query head: {error}")
            k, v = (x.detach().repeat_interleave(heads // kv_heads, dim=1).requires_grad_() for x in (k, v))
            out = forward()
        backward = lambda: torch.autograd.grad(out, (q, k, v), out_gradient, retain_graph=True)
        for name, run in (("attention", forward), ("attention_backward", backward)):
            row = f"{name} bf16[{positions},1,{heads},{width}] bf16[{positions},1,{kv_heads},{width}]"
            print(f"{row} = {microseconds(run):.3f}")


product(8192, 8192, 8192)
for sequence in (4096, 8192):
    fused_attention(sequence, 32, 8, 128)

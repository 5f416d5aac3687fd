#!/usr/bin/env python3
"""Measures, by PyTorch on this GPU, what data/attention.csv holds of cuDNN, and what clocks a step leaves to kernels.

Attention alone: rows for data/attention.csv of 16,384 tokens and a hidden size of 2,048, as FlashAttention's plots have them.
In a step: the same kernel alone and between loads that draw the power of a training step (runtime/cuda/module/step_load.h), and
the share of its speed that it keeps there. Prints CSV; takes half a minute.
"""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, scaled_dot_product_attention

TOKENS, HIDDEN = 16384, 2048


def random(*shape, trained=False):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=trained)


def seconds(run, runs, batches, before=lambda: None):
    """The median over batches of the mean time of a run."""
    times = []
    for _ in range(batches):
        before()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(runs):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / runs)
    return statistics.median(times)


def alone(run):
    """Not after a pause, from which clocks would rise first."""
    for _ in range(3):
        run()
    once = seconds(run, 1, 1)
    return seconds(run, max(1, min(20, int(2e-3 / once))), 5)


def attention_passes(sequence, micro_batch, heads, width, causal):
    q, k, v = (random(micro_batch, heads, sequence, width, trained=True) for _ in range(3))
    gradient = random(micro_batch, heads, sequence, width)
    forward = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)
    out = forward()
    return {"forward": forward, "backward": lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)}


def attention_alone():
    print("kernel,passes,head_dim,causal,sequence,micro_batch,heads,tflops")
    for width in (64, 128):
        for causal in (False, True):
            for sequence in (512, 1024, 2048, 4096, 8192, 16384):
                micro_batch, heads = TOKENS // sequence, HIDDEN // width
                pairs = micro_batch * heads * sequence**2 / (2 if causal else 1)
                for name, run in attention_passes(sequence, micro_batch, heads, width, causal).items():
                    flops = (4 if name == "forward" else 10) * pairs * width
                    print(f"cudnn,{name},{width},{int(causal)},{sequence},{micro_batch},{heads},{flops / alone(run) / 1e12:.1f}",
                          flush=True)


class Load:
    """Large products on end, in bf16 or in fp8."""

    def __init__(self, fp8):
        self.a, self.b = random(8192, 8192), random(8192, 8192)
        if fp8:
            self.a, self.b = (x.to(torch.float8_e4m3fn) for x in (self.a, self.b))
        self.one = torch.ones((), device="cuda")
        self.fp8 = fp8
        self.product()
        self.once = seconds(self.product, 20, 3)

    def product(self):
        if self.fp8:
            torch._scaled_mm(self.a, self.b.t(), self.one, self.one, out_dtype=torch.bfloat16)
        else:
            self.a @ self.b

    def put(self, least):
        for _ in range(int(least / self.once) + 1):
            self.product()


def in_step(load, run, once):
    load.put(0.2)
    return seconds(run, 1 if once > 5e-4 else 2, 10, lambda: load.put(max(0.01, 4 * once)))


def clocks():
    a, b = random(8192, 8192), random(8192, 8192)
    a8, b8 = (x.to(torch.float8_e4m3fn) for x in (a, b))
    wide, one = random(28672, 4096), torch.ones((), device="cuda")
    long = attention_passes(8192, 1, 32, 128, True)
    short = attention_passes(4096, 1, 32, 128, True)
    weight, states = random(8192), torch.randn(1 << 28, device="cuda")
    kernels = {
        "gemm bf16 8192 8192 8192": lambda: a @ b,
        "gemm bf16 8192 28672 4096": lambda: a[:, :4096] @ wide.T,
        "gemm fp8 8192 8192 8192": lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16),
        "attention 4096 32 128 forward": short["forward"],
        "attention 4096 32 128 backward": short["backward"],
        "attention 8192 32 128 forward": long["forward"],
        "attention 8192 32 128 backward": long["backward"],
        "rms norm 8192 8192": lambda: rms_norm(a, (8192,), weight),
        "add fp32 268435456": lambda: states.add_(1.0),
    }
    print("kernel,alone_us,in_bf16_step_us,in_fp8_step_us,bf16_share,fp8_share")
    loads = [Load(fp8=False), Load(fp8=True)]
    for name, run in kernels.items():
        cold = alone(run)
        warm = [in_step(load, run, cold) for load in loads]
        print(f"{name},{cold * 1e6:.1f},{warm[0] * 1e6:.1f},{warm[1] * 1e6:.1f},{cold / warm[0]:.3f},{cold / warm[1]:.3f}", flush=True)


print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    clocks()
    attention_alone()

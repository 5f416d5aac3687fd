#!/usr/bin/env python3
"""Measures, by PyTorch on this GPU, kernels as they are alone and as training steps leave them clocks.

Prints tables in CSV. Kernels: products, attention and what waits for memory, after a pause, when clocks are at their highest, and
in a step: right after products on end, at the mean speed that these keep up for seconds, as runtime/cuda/module/step_load.h
explains. With --attention: rows for data/attention.csv, after a pause, of 16,384 tokens and a hidden size of 2,048, as FlashAttention's
plots have them. Grouped: experts' products on four streams, as Transformer Engine issues them, and one after the other, in a step.
Clocks: how long two products of 8,192 take, from a pause on. Takes a minute.
"""
import statistics
import sys
import time

import torch
from busy_gpu import Load, random, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, scaled_dot_product_attention

TOKENS, HIDDEN = 16384, 2048


def alone(run, samples=3):
    """At the highest clocks: after a pause, and for no longer than they last."""
    times = []
    for _ in range(samples):
        torch.cuda.synchronize()
        time.sleep(0.1)
        run()
        torch.cuda._sleep(2_000_000)  # a millisecond, for the host to be ahead
        times += seconds(run)
    return statistics.median(times)


def attention_passes(sequence, micro_batch, heads, width, causal):
    q, k, v = (random(micro_batch, heads, sequence, width, trained=True) for _ in range(3))
    gradient = random(micro_batch, heads, sequence, width)
    forward = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)
    out = forward()
    return {"forward": forward, "backward": lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)}


def clocks(*loads):
    print("load,ms_since_pause,two_products_us")
    for load, name in zip(loads, ("bf16", "fp8")):
        now, after, last = 0, 0, []
        for once in load.history:
            now, last = now + once, last + [once]
            if now >= after:
                print(f"{name},{now * 1e3:.0f},{statistics.mean(last) * 1e6:.1f}")
                after, last = after + 0.05, []


def kernels(load, load_in_fp8):
    def product(m, n, k):
        a, b, c = random(m, k), random(n, k), random(m, n)
        return lambda: torch.mm(a, b.t(), out=c)

    a8, b8 = (random(8192, 8192).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    states, rows, weight = torch.randn(1 << 28, device="cuda"), random(8192, 8192), random(8192)
    compute = {f"gemm bf16 {m} {n} {k}": product(m, n, k)
               for m, n, k in ((8192, 8192, 8192), (4096, 28672, 4096), (4096, 4096, 14336), (4096, 6144, 4096), (4096, 4096, 4096),
                               (28672, 4096, 4096), (8192, 2304, 16384), (4096, 8192, 1024))}
    compute["gemm fp8 8192 8192 8192"] = lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16)
    for sequence in (4096, 8192):
        for name, run in attention_passes(sequence, 1, 32, 128, True).items():
            compute[f"attention {sequence} 32 128 {name}"] = run
    memory = {"rms norm 8192 8192": lambda: rms_norm(rows, (8192,), weight), "add fp32 268435456": lambda: states.add_(1.0)}
    print("kernel,alone_us,in_bf16_step_us,in_fp8_step_us,share,share_fp8")
    for name, run in (compute | memory).items():
        cold = alone(run)
        warm = [one.in_step(run, waits_for_memory=name in memory) for one in (load, load_in_fp8)]
        print(",".join([name, *(f"{t * 1e6:.1f}" for t in (cold, *warm)), *(f"{cold / t:.3f}" for t in warm)]), flush=True)


def attention_alone():
    print("kernel,passes,head_dim,causal,sequence,micro_batch,heads,tflops")
    for width in (64, 128):
        for causal in (False, True):
            for sequence in (512, 1024, 2048, 4096, 8192, 16384):
                micro_batch, heads = TOKENS // sequence, HIDDEN // width
                pairs = micro_batch * heads * sequence**2 / (2 if causal else 1)
                for name, run in attention_passes(sequence, micro_batch, heads, width, causal).items():
                    flops = (4 if name == "forward" else 10) * pairs * width
                    print(f"cudnn,{name},{width},{int(causal)},{sequence},{micro_batch},{heads},{flops / alone(run, 2) / 1e12:.1f}",
                          flush=True)


def grouped(load):
    streams = [torch.cuda.Stream() for _ in range(4)]

    def on_streams(run, count):
        here = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(here)
        for i in range(count):
            with torch.cuda.stream(streams[i % 4]):
                run(i)
        for stream in streams:
            here.wait_stream(stream)

    print("experts,m,n,k,pass,on_streams_us,one_by_one_us")
    for n, k in ((4096, 7168), (7168, 2048), (3072, 4096), (4096, 1536), (4096, 14336)):
        for count, m in ((4, 1024), (8, 512), (8, 2048), (16, 256), (32, 128)):
            if count * n * k > 1e9:
                continue
            x, w, y, dx = random(count, m, k), random(count, n, k), random(count, m, n), random(count, m, k)
            dw = random(count, n, k)
            passes = {"forward": lambda i: torch.mm(x[i], w[i].t(), out=y[i]), "backward": lambda i: torch.mm(y[i], w[i], out=dx[i]),
                      "weights": lambda i: torch.mm(y[i].t(), x[i], out=dw[i])}
            for name, run in passes.items():
                ways = lambda: on_streams(run, count), lambda: [run(i) for i in range(count)]
                times = [load.in_step(way, 5) for way in ways]
                size = {"forward": (m, n, k), "backward": (m, k, n), "weights": (n, k, m)}[name]
                print(",".join(map(str, (count, *size, name, *(f"{t * 1e6:.1f}" for t in times)))), flush=True)


print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
bf16, fp8 = Load(), Load(fp8=True)
clocks(bf16, fp8)
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    kernels(bf16, fp8)
    if "--attention" in sys.argv:
        attention_alone()
grouped(bf16)

#!/usr/bin/env python3
"""Measures, by PyTorch on this GPU, kernels as they are alone and as training steps leave them clocks.

Prints tables in CSV. Clocks: how long what keeps the GPU busy takes, from a pause on: two products of 8,192 and a layer of Llama 3
8B, in bf16 and in fp8. Kernels: products, attention and what waits for memory, after a pause, when clocks are at their highest,
and in a step: right after each of those on end, at the mean speed that these keep up for seconds, as
runtime/cuda/module/step_load.h explains. Small: kernels of few bytes and flops, fifty on end, each. With --attention: rows for
data/attention.csv, after a pause, of 16,384 tokens and a hidden size of 2,048, as FlashAttention's plots have them. With --elements:
PyTorch's kernels over elements, of 8,192 rows of 8,192, by how their operands lie, in a step. With --grouped: experts' products on four
streams, as Transformer Engine issues them, and one after the other, in a step. With --gqa: attention whose heads of queries share those
of keys and values, after a pause and in a step. Takes two minutes; --only leaves out the tables that no option asks for.
"""
import functools
import statistics
import sys
import time

import torch
from busy_gpu import Load, attention_passes, bf16_product, fp8_product, layer, products, random, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, silu

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


def clocks(loads):
    print("load,ms_since_pause,us")
    for name, load in loads.items():
        now, after, last = 0, 0, []
        for once in load.history:
            now, last = now + once, last + [once]
            if now >= after:
                print(f"{name},{now * 1e3:.0f},{statistics.mean(last) * 1e6:.1f}")
                after, last = after + 0.05, []


def kernels(loads):
    compute = {f"gemm bf16 {m} {n} {k}": bf16_product(m, n, k)
               for m, n, k in ((8192, 8192, 8192), (4096, 28672, 4096), (4096, 4096, 14336), (4096, 6144, 4096), (4096, 4096, 4096),
                               (28672, 4096, 4096), (8192, 2304, 16384), (4096, 8192, 1024))}
    # Llama 3 8B, 70B at tp 4 and 405B at tp 8, forward, backward and weights.
    for m, n, k in ((8192, 8192, 8192), (4096, 28672, 4096), (4096, 4096, 14336), (4096, 6144, 4096), (8192, 14336, 8192),
                    (8192, 8192, 7168), (8192, 2560, 8192), (8192, 13312, 16384), (8192, 2304, 16384)):
        for name, size in (("", (m, n, k)), ("backward ", (m, k, n)), ("weights ", (n, k, m))):
            compute[f"gemm fp8 {name}" + " ".join(map(str, size))] = fp8_product(*size, gradient=bool(name))
    compute["gemm fp8 8192 8192 8192 in e4m3 added in fp32"] = fp8_product(8192, 8192, 8192, gradient=True)
    for sequence in (4096, 8192):
        for name, run in attention_passes(sequence, 1, 32, 128, True).items():
            compute[f"attention {sequence} 32 128 {name}"] = run
    states, rows, weight = torch.randn(1 << 28, device="cuda"), random(8192, 8192), random(8192)
    memory = {"rms norm 8192 8192": lambda: rms_norm(rows, (8192,), weight), "add fp32 268435456": lambda: states.add_(1.0),
              "cast to fp8 8192 8192": lambda: rows.to(torch.float8_e4m3fn)}
    print(",".join(["kernel", "alone_us", *(f"in_{name}_us" for name in loads), *(f"share_{name}" for name in loads)]))
    for name, run in (compute | memory).items():
        try:
            cold = alone(run)
        except RuntimeError as error:
            print(f"# {name}: {error}".splitlines()[0])
            continue
        warm = [load.in_step(run, 8, waits_for_memory=name in memory) for load in loads.values()]
        print(",".join([name, *(f"{t * 1e6:.1f}" for t in (cold, *warm)), *(f"{cold / t:.3f}" for t in warm)]), flush=True)


def small():
    print("kernel,us")
    runs = {f"add bf16 {1 << n}": (lambda x=random(1 << n): x.add_(1.0)) for n in range(8, 27, 2)}
    runs |= {f"rms norm bf16 {m} 4096": (lambda x=random(m, 4096), w=random(4096): rms_norm(x, (4096,), w)) for m in (8, 128, 512, 2048)}
    runs |= {f"gemm bf16 {m} {n} {k}": bf16_product(m, n, k)
             for m, n, k in ((64, 64, 64), (128, 128, 1024), (256, 1024, 1024), (512, 1024, 4096), (1024, 2048, 2048), (4096, 512, 512))}
    for name, run in runs.items():
        seconds(lambda: [run() for _ in range(3)])
        torch.cuda._sleep(4_000_000)  # for the host to be ahead
        (fifty,) = seconds(lambda: [run() for _ in range(50)])
        print(f"{name},{fifty / 50 * 1e6:.2f}")


def elements(load):
    """What frameworks leave to PyTorch: whole tensors, four or eight elements at a time, and what is loaded one by one, as operands are
    broadcast, are halves of rows, or have two types (gpt-oss' biases, clamps and YaRN, scenarios/presets/frameworks/megatron-core.yaml).
    Bytes are those that have to be read and written."""
    n = 8192
    x, y, row, column = random(n, n), random(n, n), random(n), torch.randn(n, 1, device="cuda")
    wide, half, other = torch.randn(n, n, device="cuda"), n // 2, torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    heads, cosines, chosen, halves = x.view(n, 1, 64, 128), random(n, 1, 1, 128), x[:, :half] > 0, x[:, :half].contiguous()
    bf16, fp32 = 2 * n * n, 4 * n * n
    runs = {
        "add whole": (3 * bf16, lambda: torch.add(x, y, out=other)),
        "add scalar": (2 * bf16, lambda: torch.add(x, 1.0, out=other)),
        "add row, broadcast": (2 * bf16, lambda: torch.add(x, row, out=other)),
        "times column, broadcast, bf16 to fp32": (bf16 + fp32, lambda: x * column),
        "add fp32 to bf16": (bf16 + 2 * fp32, lambda: wide + x),
        "to fp32": (bf16 + fp32, lambda: x.float()),
        "to bf16": (bf16 + fp32, lambda: wide.bfloat16()),
        "half to fp32": (bf16 // 2 + fp32 // 2, lambda: x[:, :half].float()),
        "clamp half": (bf16, lambda: x[:, :half].clamp(max=1.0)),
        "compare half": (bf16 // 2 + bf16 // 4, lambda: x[:, :half] <= 1.0),
        "negate half": (bf16, lambda: -x[:, :half]),
        "cat halves": (2 * bf16, lambda: torch.cat((x[:, :half], y[:, :half]), dim=1)),
        "sum of rows": (bf16, lambda: x.sum(dim=0)),
        "sum of rows, fp32": (fp32, lambda: wide.sum(dim=0)),
        "copy transposed": (2 * bf16, lambda: other.copy_(x.t())),
        "rows by index": (2 * bf16, lambda order=torch.randperm(n, device="cuda"): torch.index_select(x, 0, order, out=other)),
        "times column, broadcast, fp32": (2 * fp32, lambda: wide * column),
        "times cosines, broadcast over heads": (2 * bf16, lambda: heads * cosines),
        "add fp32 to itself": (2 * fp32, lambda: wide + wide),
        "select half": (bf16 + bf16 // 4, lambda: torch.where(chosen, x[:, :half], 0.0)),
        "copy into half": (bf16, lambda: other[:, :half].copy_(halves)),
        "cat halves, fp32": (2 * fp32, lambda: torch.cat((wide[:, :half], wide[:, :half]), dim=1)),
        "sigmoid of a half, times a half": (5 * bf16 // 2, lambda: torch.sigmoid(x[:, :half]) * y[:, :half]),
        "silu whole": (2 * bf16, lambda: silu(x)),
        "fill": (bf16, lambda: other.zero_()),
    }
    print("kernel,bytes,us,GB_per_s")
    for name, (moved, run) in runs.items():
        seconds(*[run] * 3)
        time_of_one = load.in_step(run, 8, waits_for_memory=True)
        print(f'"{name}",{moved},{time_of_one * 1e6:.1f},{moved / time_of_one / 1e9:.0f}', flush=True)


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


def gqa(load):
    """Causal, of heads of 128: each number of heads of keys and values that models have, to one for each of queries."""
    print("heads,kv_heads,sequence,passes,alone_us,in_step_us,tflops_in_step")
    for sequence in (4096, 8192):
        for heads in (32, 64):
            for kv_heads in sorted({1, 2, 4, 8, 32, heads}):
                try:
                    passes = attention_passes(sequence, 1, heads, 128, True, kv_heads)
                except RuntimeError as error:
                    print(f"# {heads} {kv_heads} {sequence}: {error}".splitlines()[0])
                    continue
                runs = passes | {"both": lambda: [run() for run in passes.values()]}
                for name, run in runs.items():
                    flops = {"forward": 4, "backward": 10, "both": 14}[name] * heads * sequence**2 / 2 * 128
                    cold, warm = alone(run, 2), load.in_step(run, 5)
                    print(f"{heads},{kv_heads},{sequence},{name},{cold * 1e6:.1f},{warm * 1e6:.1f},{flops / warm / 1e12:.1f}",
                          flush=True)


RUNS = {"bf16": lambda: products(fp8=False), "fp8": lambda: products(fp8=True), "bf16_layer": lambda: layer(fp8=False),
        "fp8_layer": lambda: layer(fp8=True)}


@functools.cache
def load_of(name):
    """Takes seven seconds the first time."""
    return Load(RUNS[name]())


print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    if "--only" not in sys.argv:
        all_loads = {name: load_of(name) for name in RUNS}
        clocks(all_loads)
        small()
        kernels(all_loads)
    if "--attention" in sys.argv:
        attention_alone()
    if "--elements" in sys.argv:
        elements(load_of("bf16_layer"))
    if "--grouped" in sys.argv:
        grouped(load_of("bf16"))
    if "--gqa" in sys.argv:
        gqa(load_of("bf16_layer"))

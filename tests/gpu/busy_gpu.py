"""A GPU as busy as in a training step, for kernels to be timed at the clocks of one (runtime/cuda/module/step_load.h)."""
import statistics
import time

import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu


def random(*shape, trained=False):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=trained)


def seconds(*runs):
    """Of each of the runs, one after the other."""
    dates = [torch.cuda.Event(enable_timing=True) for _ in range(len(runs) + 1)]
    dates[0].record()
    for run, date in zip(runs, dates[1:]):
        run()
        date.record()
    dates[-1].synchronize()
    return [begin.elapsed_time(end) * 1e-3 for begin, end in zip(dates, dates[1:])]


def bf16_product(m, n, k):
    a, b, c = random(m, k), random(n, k), random(m, n)
    return lambda: torch.mm(a, b.t(), out=c)


def fp8_product(m, n, k, gradient=False):
    """As Transformer Engine has cuBLAS multiply: of gradients, in E5M2, sums leave the tensor cores in between to be added in fp32."""
    a, b = random(m, k), random(n, k)
    a, b = a.to(torch.float8_e5m2 if gradient else torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=not gradient)


def products(fp8):
    """Two large products."""
    product = (fp8_product if fp8 else bf16_product)(8192, 8192, 8192)
    return lambda: [product() for _ in range(2)]


def attention_passes(sequence, micro_batch, heads, width, causal, kv_heads=None):
    """With fewer heads of keys and values they are given as they are, not repeated for each query head."""
    kv_heads = kv_heads or heads
    q, k, v = (random(micro_batch, count, sequence, width, trained=True) for count in (heads, kv_heads, kv_heads))
    gradient = random(micro_batch, heads, sequence, width)
    forward = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv_heads != heads)
    out = forward()
    return {"forward": forward, "backward": lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)}


def layer(fp8, tokens=4096, hidden=4096, heads=32, kv_heads=8, ffn=14336, width=128):
    """The kernels of a layer of Llama 3 8B, forward and backward: what memory-bound ones read and write counts, not what they say."""
    run = []
    for n, k in (((heads + 2 * kv_heads) * width, hidden), (hidden, heads * width), (2 * ffn, hidden), (hidden, ffn)):
        for gradient, size in ((False, (tokens, n, k)), (True, (tokens, k, n)), (True, (n, k, tokens))):
            run.append(fp8_product(*size, gradient) if fp8 else bf16_product(*size))
    run += attention_passes(tokens, 1, heads, width, True).values()
    rows, weight, wide = random(tokens, hidden), random(hidden), random(tokens, ffn)
    run += [lambda: rms_norm(rows, (hidden,), weight)] * 6  # two forward, two backward, which take twice as long
    run += [lambda: rows.add_(1.0)] * 4
    run += [lambda: torch.mul(silu(wide), wide)] * 3
    if fp8:
        run += [lambda: rows.to(torch.float8_e4m3fn)] * 8 + [lambda: wide.to(torch.float8_e4m3fn)] * 4
    return lambda: [one() for one in run]


class Load:
    """What is run on end, with the mean of what it takes over seconds: `history` has all from a pause on."""

    def __init__(self, run):
        self.run = run
        once = statistics.median(seconds(*[self.run] * 20))
        torch.cuda.synchronize()
        time.sleep(1)
        self.history = seconds(*[self.run] * int(5 / once))
        self.mean = statistics.mean(self.history[int(1 / once):])

    def in_step(self, run, samples=10, waits_for_memory=False):
        seconds(*[self.run] * int(0.1 / self.mean))
        times = []
        for _ in range(samples):
            *_, load, kernel = seconds(self.run, self.run, self.run, self.run, run)
            times.append(kernel if waits_for_memory else kernel * self.mean / load)
        return statistics.median(times)

"""A GPU as busy as in a training step, for kernels to be timed at the clocks of one (runtime/cuda/module/step_load.h)."""
import statistics
import time

import torch


def random(*shape, trained=False):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=trained)


def graph_of(run):
    """One CUDA graph of what `run` does."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
        run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    return graph.replay


def seconds(*runs):
    """Of each of the runs, one after the other."""
    dates = [torch.cuda.Event(enable_timing=True) for _ in range(len(runs) + 1)]
    dates[0].record()
    for run, date in zip(runs, dates[1:]):
        run()
        date.record()
    dates[-1].synchronize()
    return [begin.elapsed_time(end) * 1e-3 for begin, end in zip(dates, dates[1:])]


class Load:
    """Large products on end, with the mean of what they take over seconds: `history` has all from a pause on."""

    def __init__(self, fp8=False):
        a, b, c = (random(8192, 8192) for _ in range(3))
        one = torch.ones((), device="cuda")
        if fp8:
            a, b = (x.to(torch.float8_e4m3fn) for x in (a, b))
        product = lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=c.dtype) if fp8 else torch.mm(a, b.t(), out=c)
        self.operands = (a, b, c, one)  # the graph has their addresses alone
        self.run = graph_of(lambda: [product() for _ in range(2)])
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

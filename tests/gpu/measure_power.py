#!/usr/bin/env python3
"""Measures, by PyTorch on this GPU, what clocks the power limit leaves to products and attention that run for a part of the time.

A step's kernels do not all draw power: some wait for memory, and in between the GPU waits for others. Prints a row in CSV for each
mixture, of periods of some 20 ms, that ran for three seconds after a pause: what is hot, what runs in between (`wait`: one thread that
spins; `copy`: fp32 added in place), the share of the time that the hot part had, its speed as a share of that alone after a pause, and
the mean power, clock of the multiprocessors and temperature in the last two seconds. Takes two minutes.
"""
import statistics
import threading
import time

import pynvml
import torch
from busy_gpu import attention_passes, bf16_product, fp8_product, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel

PERIOD, LASTS, COUNTS = 0.02, 3.0, 2.0  # seconds


class Watch:
    """Power, clock and temperature, ten times a second, while inside."""

    def __init__(self, gpu):
        self.gpu, self.samples = gpu, []

    def __enter__(self):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def run(self):
        while not self.ended.wait(0.1):
            self.samples.append((time.time(), pynvml.nvmlDeviceGetPowerUsage(self.gpu) / 1e3,
                                 pynvml.nvmlDeviceGetClockInfo(self.gpu, pynvml.NVML_CLOCK_SM),
                                 pynvml.nvmlDeviceGetTemperature(self.gpu, pynvml.NVML_TEMPERATURE_GPU)))

    def means(self):
        last = [sample for sample in self.samples if sample[0] > self.samples[-1][0] - COUNTS]
        return [statistics.mean(column) for column in list(zip(*last))[1:]]


def alone(run):
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        time.sleep(0.2)
        run()
        torch.cuda._sleep(2_000_000)
        times += seconds(run)
    return statistics.median(times)


def mixed(hot, hot_time, between, between_time, share):
    """The mean time of `hot` in the last seconds, and the share of the time that it really had."""
    hots = max(1, round(PERIOD * share / hot_time))
    betweens = round(hots * hot_time * (1 / share - 1) / between_time)
    runs = [lambda: [hot() for _ in range(hots)], lambda: [between() for _ in range(betweens)]]
    periods = int(LASTS / (hots * hot_time + betweens * between_time))
    times = seconds(*runs * periods)
    count = int(len(times) // 2 * COUNTS / LASTS)
    of_hot, of_between = times[0::2][-count:], times[1::2][-count:]
    return statistics.mean(of_hot) / hots, sum(of_hot) / (sum(of_hot) + sum(of_between))


def main():
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    print(f"# {torch.cuda.get_device_name()}, {pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1e3:.0f} W, PyTorch {torch.__version__}")
    states = torch.zeros(1 << 27, device="cuda")
    between = {"wait": lambda: torch.cuda._sleep(500_000), "copy": lambda: states.add_(1.0)}
    attention = attention_passes(8192, 1, 32, 128, True)
    hot = {"bf16 8192 8192 8192": bf16_product(8192, 8192, 8192), "fp8 8192 8192 8192": fp8_product(8192, 8192, 8192),
           "fp8 backward 8192 8192 8192": fp8_product(8192, 8192, 8192, gradient=True), "bf16 4096 4096 4096": bf16_product(4096, 4096, 4096),
           "attention 8192 backward": attention["backward"]}
    cold = {name: alone(run) for name, run in hot.items()}
    for name, run in between.items():
        seconds(*[run] * 10)
    short = {name: statistics.median(seconds(*[run] * 20)) for name, run in between.items()}
    print("hot,between,share_of_time,speed,power_W,clock_MHz,temperature_C")
    for name, run in hot.items():
        main_ones = name in ("bf16 8192 8192 8192", "fp8 8192 8192 8192")
        for share in ((1, 0.85, 0.7, 0.55, 0.4, 0.25) if main_ones else (1, 0.6)):
            for filler in between:
                if share == 1 and filler == "copy":
                    continue
                torch.cuda.synchronize()
                time.sleep(0.7)
                with Watch(gpu) as watch:
                    took, had = mixed(run, cold[name], between[filler], short[filler], share)
                power, clock, temperature = watch.means()
                print(f"{name},{'-' if share == 1 else filler},{had:.3f},{cold[name] / took:.3f},{power:.0f},{clock:.0f},{temperature:.0f}",
                      flush=True)


with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    main()

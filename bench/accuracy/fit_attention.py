#!/usr/bin/env python3
"""Fits the parameters of sim/attention_cost.h to data/attention.csv, and prints what a profile states.

Least of: mean |log(predicted / measured)| + half the root mean square of it. FlashAttention's plots have flash-2 forward alone and
both passes on an H100, so the backward is what is left; on an A100 they have both passes only: there the H100's times of pairs and
tiles are scaled, each of head dimensions 64 and 128 by a factor for both passes. cuDNN was measured on an H100 of our own, after a
pause, at 64 and 128; at 256 it is taken to be as much slower than at 128 as in the plots. A B200's shares of its peak are those that
cuDNN has of an H100's in the plots, by a factor for each pass, the median of measured speed over predicted. Needs numpy and scipy.
"""
import csv
import pathlib

import numpy as np
from scipy.optimize import minimize

LAUNCH_US = 4.6
ROWS, COLUMNS = 128, 64
CHIPS = {'a100-80gb': (108, 312), 'h100-sxm-80gb': (132, 989.4), 'b200': (148, 2250)}  # multiprocessors, peak TFLOP/s
FORWARD, BACKWARD = 4, 10  # FLOPs of a pair and unit of head dimension


class Plot:
    """The rows of one kernel and passes on one device."""

    def __init__(self, device, kernel, passes):
        path = pathlib.Path(__file__).parent / 'data' / 'attention.csv'
        with open(path, newline='') as file:
            rows = [r for r in csv.DictReader(file) if (r['device'], r['kernel'], r['passes']) == (device, kernel, passes)]
        column = lambda name: np.array([float(r[name]) for r in rows])
        self.multiprocessors, self.peak = CHIPS[device]
        self.dim, self.causal, self.sequence = column('head_dim'), column('causal') > 0, column('sequence')
        self.heads = column('micro_batch') * column('heads')
        self.dims = sorted(set(self.dim))
        flops = {'forward': FORWARD, 'backward': BACKWARD, 'both': FORWARD + BACKWARD}[passes] * self.heads * self.sequence**2 * self.dim
        self.measured_us = np.where(self.causal, flops / 2, flops) / column('tflops') / 1e6

    def pass_us(self, pair_ps, causal, tile_us):
        """Time of one pass; `pair_ps` by head dimension, for a pair on the whole device."""
        pair = np.array([abs(pair_ps[self.dims.index(d)]) for d in self.dim]) / np.where(self.causal, abs(causal), 1)
        of_head = np.ceil(self.sequence / ROWS)
        full = of_head * ROWS * np.ceil(self.sequence / COLUMNS) * COLUMNS
        seen = self.sequence * (self.sequence + 1) / 2
        computed = np.where(self.causal, np.minimum(full, seen + of_head * ROWS * (ROWS - 1) / 2), full)
        fixed = abs(tile_us) * self.dim / 128
        mean = self.multiprocessors * pair * computed / of_head / 1e6 + fixed
        longest = self.multiprocessors * pair * ROWS * np.ceil(self.sequence / COLUMNS) * COLUMNS / 1e6 + fixed
        waves = of_head * self.heads / self.multiprocessors
        return LAUNCH_US + np.where(self.causal, np.maximum(longest, waves * mean + mean / 2), np.ceil(waves) * mean)

    def least(self, predicted, start):
        def loss(parameters):
            error = np.log(predicted(parameters) / self.measured_us)
            return np.mean(np.abs(error)) + 0.5 * np.sqrt(np.mean(error**2))

        for _ in range(4):
            best = minimize(loss, start, method='Nelder-Mead', options={'maxiter': 4000, 'maxfev': 4000, 'xatol': 1e-5, 'fatol': 1e-8})
            start = best.x * 1.02
        error = np.abs(predicted(best.x) / self.measured_us - 1)
        return np.abs(best.x), f'median {100 * np.median(error):.1f} %, 90th percentile {100 * np.quantile(error, 0.9):.1f} %'

    def stated(self, pair_ps, flops, causal, tile_us):
        rates = ', '.join(f'{flops * d / ps / self.peak:.4f}' for d, ps in zip(self.dims, pair_ps))
        return f'rate: [{rates}], causal: {causal:.3f}, tile_us: {tile_us:.3g}'


def main():
    h100 = 'h100-sxm-80gb'
    for kernel in ('flash-3', 'flash-2'):
        plot = Plot(h100, kernel, 'forward')
        start = [FORWARD * d / 400 for d in plot.dims] + [0.9, 3]
        forward, errors = plot.least(lambda p: plot.pass_us(p[:-2], *p[-2:]), start)
        print(h100, kernel, 'forward ', plot.stated(forward[:-2], FORWARD, *forward[-2:]), '#', errors)

    both = Plot(h100, 'flash-2', 'both')
    first = both.pass_us(forward[: len(both.dims)], *forward[-2:])
    start = [BACKWARD * d / 400 for d in both.dims] + [0.9, 3]
    backward, errors = both.least(lambda p: first + both.pass_us(p[:-2], *p[-2:]), start)
    print(h100, 'flash-2 backward', both.stated(backward[:-2], BACKWARD, *backward[-2:]), '#', errors)

    a100 = Plot('a100-80gb', 'flash-2', 'both')
    scaled = lambda times, p: (times[:2] * p[:2], p[2], times[-1] * p[3])
    predicted = lambda p: a100.pass_us(*scaled(forward, p)) + a100.pass_us(*scaled(backward, p))
    factors, errors = a100.least(predicted, [1.8, 1.8, 0.95, 1.5])
    for name, times, flops in (('forward ', forward, FORWARD), ('backward', backward, BACKWARD)):
        print('a100-80gb flash-2', name, a100.stated(scaled(times, factors)[0], flops, *scaled(times, factors)[1:]), '#', errors)

    # What the plots' cuDNN was fitted to (36 forwards of 30 runs on end, median error 1.8 %): rates at 64, 128 and 256, causal,
    # tile_us. Its backward was assumed: flash-2's, as much faster as the forward is at 128.
    plots = {'forward': ((0.4330, 0.6525, 0.6262), 0.907, 1.66), 'backward': ((0.5047, 0.5992, 0.5478), 0.957, 9.5)}
    for passes, (rates, causal, tile_us) in plots.items():
        flops = FORWARD if passes == 'forward' else BACKWARD
        own = Plot(h100, 'cudnn 9.19', passes)
        best, errors = own.least(lambda p: own.pass_us(p[:-2], *p[-2:]), [flops * d / 400 for d in own.dims] + [0.9, 3])
        times = np.append(best[:-2], 2 * best[-3] * rates[1] / rates[2])
        own.dims.append(256)
        print(h100, 'cudnn', passes, own.stated(times, flops, *best[-2:]), '#', errors)

        b200 = Plot('b200', 'cudnn', passes)
        pair_ps = {d: flops * d / rate / b200.peak for d, rate in zip(own.dims, rates)}
        ratio = b200.pass_us([pair_ps[d] for d in b200.dims], causal, tile_us) / b200.measured_us
        factor = np.median(ratio)
        print('b200 cudnn', passes, 'rate:', [round(float(factor * rate), 4) for rate in rates],
              f'# {factor:.3f} of the plots; 90th percentile {100 * np.quantile(np.abs(ratio / factor - 1), 0.9):.1f} %')


if __name__ == '__main__':
    main()

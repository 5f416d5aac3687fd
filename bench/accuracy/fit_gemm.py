#!/usr/bin/env python3
"""Fits the parameters of sim/gemm_cost.h to the rows of data/gemm.csv whose use is "fit", and prints what a profile states.

Least of: mean |log(predicted / measured)| + 0.3 root mean square of it, so that no single row pulls the rest away.
--cross-validate fits random halves and tests on the others. Needs numpy and scipy.
"""
import argparse
import csv
import pathlib

import numpy as np
from scipy.optimize import differential_evolution, minimize

FOLDER = pathlib.Path(__file__).parent
CLASSIC = [(64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256), (256, 128)]
WITH_192 = CLASSIC + [(128, 192), (192, 128)]
NARROW = [(m, n) for m in (64, 128) for n in range(32, 161, 32)] + [(128, 192), (128, 256)]
SPLITS = [1, 2, 4, 8, 16]
RATE, LAUNCH, STORE, SPLIT = (0.3, 1.0), (1, 8), (0.8, 30), (0, 3)
# device, tables, type: multiprocessors, peak TFLOP/s, achieved memory TB/s, bytes of an operand's element, tiles, bounds of the feed
FITS = {
    ('h100-sxm-80gb', 'bf16'): (132, 989.4, 0.896 * 3.35, 2, WITH_192, (50, 400)),
    ('h800', 'fp8'): (132, 1979, 0.896 * 3.35, 1, NARROW, (50, 400)),
    ('b200', 'bf16'): (148, 2250, 0.896 * 8, 2, WITH_192, (50, 600)),
    ('b200', 'fp8'): (148, 4500, 0.896 * 8, 1, WITH_192, (50, 600)),
}


def rows_of(device, dtype, use):
    with open(FOLDER / 'data' / 'gemm.csv', newline='') as file:
        rows = [r for r in csv.DictReader(file) if (r['device'], r['dtype'], r['use']) == (device, dtype, use)]
    sizes = np.array([[float(r[c]) for c in ('count', 'm', 'n', 'k')] for r in rows]).reshape(-1, 4)
    return sizes, 2 * sizes.prod(axis=1) / np.array([float(r['tflops']) for r in rows]) / 1e6  # us


def predicted_us(parameters, sizes, chip):
    rate, feed, store, launch, split_us = parameters
    multiprocessors, peak, memory, element, tiles, _ = chip
    count, m, n, k = sizes.T
    moving = count * ((m * k + n * k) * element + 2 * m * n) / (memory * 1e6)
    best = np.full(len(sizes), np.inf)
    for a, b in tiles:
        step = max(2 * a * b / (rate * peak * 1e6 / multiprocessors), (a + b) * element / (feed * 1e3))
        drain = a * b * 2 * multiprocessors / (store * 1e6)
        for split in SPLITS:
            waves = np.ceil(count * np.ceil(m / a) * np.ceil(n / b) * split / multiprocessors)
            depth = np.ceil(np.ceil(k / split) * element / 128) * 128 / element
            cut = waves * depth * step + (1 + (waves - 1) / 2) * drain
            if split > 1:
                cut = cut + split_us + 8 * split * count * m * n / (store * 1e6)
            best = np.minimum(best, cut)
    return launch + np.maximum(best, moving)


def fit(sizes, measured_us, chip):
    def loss(parameters):
        error = np.log(predicted_us(np.abs(parameters), sizes, chip) / measured_us)
        return np.mean(np.abs(error)) + 0.3 * np.sqrt(np.mean(error**2))

    bounds = [RATE, chip[-1], STORE, LAUNCH, SPLIT]
    start = differential_evolution(loss, bounds, seed=1, maxiter=60, popsize=10, tol=1e-6, polish=False).x
    return np.abs(minimize(loss, start, method='Nelder-Mead', options={'maxiter': 600, 'xatol': 1e-3, 'fatol': 1e-6}).x)


def errors(parameters, sizes, measured_us, chip):
    error = np.abs(predicted_us(parameters, sizes, chip) / measured_us - 1)
    return f'n {len(error)}, median {100 * np.median(error):.1f} %, 90th percentile {100 * np.quantile(error, 0.9):.1f} %'


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('--cross-validate', type=int, default=0, metavar='TIMES')
    times = arguments.parse_args().cross_validate
    for (device, dtype), chip in FITS.items():
        sizes, measured = rows_of(device, dtype, 'fit')
        parameters = fit(sizes, measured, chip)
        names = ('rate', 'feed_GBps', 'store_TBps', 'launch_us', 'split_us')
        print(device, dtype, ', '.join(f'{name} {value:.4g}' for name, value in zip(names, parameters)))
        print('  fitted:  ', errors(parameters, sizes, measured, chip))
        test = rows_of(device, dtype, 'test')
        if len(test[1]):
            print('  held out:', errors(parameters, *test, chip))
        random = np.random.default_rng(0)
        for _ in range(times):
            order = random.permutation(len(measured))
            half, other = order[: len(order) // 2], order[len(order) // 2 :]
            print('  half:    ', errors(fit(sizes[half], measured[half], chip), sizes[other], measured[other], chip))


if __name__ == '__main__':
    main()

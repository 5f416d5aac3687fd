#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// norm: x [s,b,h], weight; y [s,b,h]. Over the last dimension, by NormAttributes:
///   rms     y = w x / sqrt(mean(x^2) + epsilon)                      weight [1,h]        (Zhang & Sennrich 2019, eq. 4)
///   layer   y = w (x - mean(x)) / sqrt(var(x) + epsilon) + bias     weight [2,h]: w, bias (Ba et al. 2016, eq. 4)
CostFunction norm_cost;
HostKernel norm_host;

/// norm_backward: x, weight, dy; dx, dweight. dx is written, dweight (shaped as the weight) is updated: the gradient is added.
///
/// With r = 1 / sqrt(...), n = the normalised x, g = w dy, and means over h:
///   dx = r (g - n mean(g n)), for layer also - r mean(g);   dw += dy n;   dbias += dy.
CostFunction norm_backward_cost;
HostKernel norm_backward_host;

}  // namespace tandem

#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// adam: grad [n], norm_square [1]; param [n], master [n], m [n], v [n]. param is written, master, m and v are updated.
/// Devices keep master in fp32, the moments m and v in one type, fp32 or bf16.
///
/// AdamW (Loshchilov & Hutter 2019, algorithm 2) with the gradient scaled by c = min(1, clip_norm / sqrt(norm_square)), where
/// norm_square is the squared norm of all gradients; with t = AdamAttributes::step:
///   m = beta1 m + (1 - beta1) c grad        v = beta2 v + (1 - beta2) (c grad)^2
///   master -= learning_rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay master);   param = master
CostFunction adam_cost;
HostKernel adam_host;

}  // namespace tandem

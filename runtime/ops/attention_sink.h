#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// attention_sink: sink [H,1]; out [s,b,H,e], lse [b,H,s], both updated: attention over one key more, of score sink and value 0,
/// that every query sees (OpenAI 2025, gpt-oss; Xiao et al. 2023, arXiv 2309.17453).
///
/// lse' = log(exp(lse) + exp(sink)), out' = exp(lse - lse') out. attention_backward takes both as they are then.
CostFunction attention_sink_cost;
HostKernel attention_sink_host;

/// attention_sink_backward: sink, out', lse', dout'; dsink, updated: dsink -= sum over s, b of exp(sink - lse') rowsum(dout' *
/// out').
CostFunction attention_sink_backward_cost;
HostKernel attention_sink_backward_host;

}  // namespace tandem

#pragma once

#include <cuda_runtime_api.h>

#include <functional>

/// CUDA's streams on the CPU. What is put into a stream runs only when somebody waits, and then what the streams and events leave
/// open is drawn at random: a wait that is missing shows sooner or later, as on a GPU.
namespace tandem::emulation {

/// Runs `work` in the stream's turn; at once where there is no stream.
void put(cudaStream_t stream, std::function<void()> work);

/// From the stream's turn on tries `attempt` now and then, until it returns true, as work does in which other processes take
/// part. The other streams go on meanwhile. `attempt` is told how often the graph that it was captured for was launched before.
void put_until(cudaStream_t stream, std::function<bool(std::size_t launches)> attempt);

/// Returns a number of the capture that a stream takes part in, which no other has; 0: none.
std::size_t capture_of(cudaStream_t stream);

/// What the last call that failed has left, until cudaGetLastError takes it: the next launch is blamed for it.
cudaError_t& last_error();

/// Returns the priority that a stream was made with; what is lower goes first.
int priority_of(cudaStream_t stream);

/// Sets the seed of all draws from now on.
void seed_streams(unsigned seed);

}  // namespace tandem::emulation

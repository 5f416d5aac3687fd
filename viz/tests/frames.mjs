// How long frames take while a timeline pans.
import os from 'node:os'

/// Milliseconds: 30 frames a second, to a hair.
export const limit_ms = 33.4

/// Runs in the page, for the element with the timeline: wheels sideways once in every frame and gives the frame times.
export async function panning(container, frames) {
  const timeline = await container.timeline
  const rows = container.querySelector('canvas.timeline-rows')
  timeline.frames.start()
  for (let frame = 0; frame < frames; ++frame) {
    rows.dispatchEvent(new WheelEvent('wheel', { deltaX: frame % 40 < 20 ? 12 : -12, bubbles: true, cancelable: true }))
    await new Promise(resolve => requestAnimationFrame(resolve))
  }
  return timeline.frames.stop()
}

export function quantiles(times_ms) {
  const sorted = [...times_ms].sort((a, b) => a - b)
  return { median_ms: sorted[Math.floor(sorted.length / 2)], p95_ms: sorted[Math.floor(sorted.length * 0.95)] }
}

/// Else frames are late because others compute, and only the processor's time says something.
export const machineIsFree = () => os.loadavg()[0] <= os.cpus().length

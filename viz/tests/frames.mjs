// What happens while a timeline pans.

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

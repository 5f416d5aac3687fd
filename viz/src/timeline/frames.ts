// How long frames take, for tests: the time from one to the next, and what drawing took of it.

export interface FrameTimes {
  intervals_ms: number[]; // between animation frames
  draws_ms: number[]; // of those that drew
}

export class FrameRecorder {
  private times: FrameTimes = {intervals_ms: [], draws_ms: []};
  private frame = 0; // asked for; 0: not recording

  start(): void {
    const times: FrameTimes = (this.times = {intervals_ms: [], draws_ms: []});
    let before_ms = NaN;
    const next = (now_ms: number) => {
      if (!Number.isNaN(before_ms)) times.intervals_ms.push(now_ms - before_ms);
      before_ms = now_ms;
      this.frame = requestAnimationFrame(next);
    };
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(next);
  }

  stop(): FrameTimes {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    return this.times;
  }

  drew(duration_ms: number): void {
    if (this.frame !== 0) this.times.draws_ms.push(duration_ms);
  }
}

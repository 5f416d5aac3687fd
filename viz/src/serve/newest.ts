// Runs one at a time of what is asked again and again, and of what is asked meanwhile the last.

export class Newest {
  private next: (() => Promise<void>) | null = null;
  private running = false;

  /** `work` is called at once, or when what runs has ended, unless something newer is asked first. */
  ask(work: () => Promise<void>): void {
    this.next = work;
    if (!this.running) void this.run();
  }

  get busy(): boolean {
    return this.running;
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.next) {
      const work = this.next;
      this.next = null;
      await work();
    }
    this.running = false;
  }
}

/** Runs what is asked when nothing was for a while, and gives it up when something newer is asked. */
export class Settled {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | undefined;

  constructor(private readonly quiet_ms: number) {}

  ask(work: (signal: AbortSignal) => Promise<void>): void {
    this.drop();
    this.timer = setTimeout(() => {
      this.abort = new AbortController();
      void work(this.abort.signal);
    }, this.quiet_ms);
  }

  drop(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
  }
}

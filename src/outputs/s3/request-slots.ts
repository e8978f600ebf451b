/** Who waits for a slot, and with how many bytes. */
interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

/** Lets so many requests with so many bytes be under way at once, and any one; who has to wait waits in line. */
export class RequestSlots {
  readonly #maxRequests: number;
  readonly #maxBytes: number;
  readonly #waiting: Waiting[] = [];
  #requests = 0;
  #bytes = 0;

  constructor(maxRequests: number, maxBytes: number) {
    this.#maxRequests = maxRequests;
    this.#maxBytes = maxBytes;
  }

  /** Resolves when a request may start. Whoever took a slot releases it with the same bytes, whatever happens. */
  async take(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#isRoomFor(bytes)) return this.#start(bytes);
    await new Promise<void>((resolve) => this.#waiting.push({ bytes, start: resolve }));
  }

  release(bytes: number): void {
    this.#requests -= 1;
    this.#bytes -= bytes;
    for (let [next] = this.#waiting; next !== undefined && this.#isRoomFor(next.bytes); [next] = this.#waiting) {
      this.#waiting.shift();
      this.#start(next.bytes);
      next.start();
    }
  }

  #start(bytes: number): void {
    this.#requests += 1;
    this.#bytes += bytes;
  }

  #isRoomFor(bytes: number): boolean {
    return this.#requests === 0 || (this.#requests < this.#maxRequests && this.#bytes + bytes <= this.#maxBytes);
  }
}

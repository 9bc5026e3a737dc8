/**
 * Learns the offset of a sensor's clock from the hub's, and so a report's true age.
 *
 * Each message gives a sample: arrival by the hub's clock minus `sendTs` by the sensor's, which is the clocks' offset
 * plus the transit time. Transit time is never negative, so the smallest recent sample is the best estimate of the
 * offset, and a sample's excess over it is that message's transit time.
 *
 * Clocks step. Forward (by d): samples become smaller by d, and the new minimum is right at once; only the interval
 * that contains the step looks d too long, and is shortened by it. Backward: samples become larger, and every report
 * would look d old until the window forgot the old minimum. But `sendTs` then runs backwards between two reports, which
 * on one connection only a stepping clock causes, and the window starts over.
 */
const windowMs = 30_000
const maxSamples = 64
/** Reports of one sensor over HTTP may overtake each other by this much. */
const reorderMs = 250

interface Sample {
  readonly at: number
  readonly offsetMs: number
}

export class ClockOffset {
  /** Rising offsets: a sample is dropped as soon as a later one is smaller, so the first is the smallest. */
  #samples: Sample[] = []
  #lastSendTs = Number.NEGATIVE_INFINITY

  /** Hub time minus sensor time; 0 before the first sample. */
  get offsetMs(): number {
    return this.#samples[0]?.offsetMs ?? 0
  }

  /** Takes a message's times; returns how long ago its interval ended. */
  ageMs(collectTs: number, sendTs: number, arrival: number): number {
    const before = this.#samples[0]?.offsetMs
    const sample = arrival - sendTs
    if (sendTs < this.#lastSendTs - reorderMs) this.#samples = []
    this.#lastSendTs = sendTs
    this.#add({ at: arrival, offsetMs: sample })
    const transitMs = sample - this.offsetMs
    let heldMs = Math.max(0, sendTs - collectTs)
    const forwardStepMs = before === undefined ? 0 : before - sample
    if (forwardStepMs > reorderMs && heldMs >= forwardStepMs) heldMs -= forwardStepMs
    return heldMs + transitMs
  }

  #add(sample: Sample): void {
    const samples = this.#samples
    while (samples.length > 0 && samples.at(-1)!.offsetMs >= sample.offsetMs) samples.pop()
    samples.push(sample)
    if (sample.at - samples[0]!.at > windowMs || samples.length > maxSamples) samples.shift()
  }
}

/**
 * What a clock that steps back may do to a limit. The scripts on Redis keep the same rules (`states.lua`), so that both
 * engines give the same answers to the same history.
 *
 * The span of a limit is its window, its lease, or the time in which its bucket drains. A step back of up to one span
 * is absorbed: what was counted stays counted until the clock has risen by more than a span above the lowest reading
 * since, so a clock that goes back and forth within a span grants nothing, however often. A longer step is followed:
 * counts are carried over to the present. Either way nobody is locked out for longer than a span (plus the one
 * millisecond by which a step of exactly one span is absorbed).
 *
 * The bound: cut the readings of the clock into stretches in which they differ by at most a span. In each stretch no
 * more is admitted than the algorithm admits in one span of a steady clock: the limit, or twice that for windows with
 * edges, the sliding counter, and buckets that drain meanwhile.
 */
export function absorbedEnd(end: number, nowMs: number, spanMs: number): number {
  const latest = nowMs + spanMs
  if (end <= latest) return end
  return end > latest + spanMs ? latest : Math.min(end, latest + 1)
}

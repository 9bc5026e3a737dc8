/**
 * When a node is strained, and from which fraction of its capacity a key is worth handling.
 *
 * An answer of a node at utilisation ρ takes 1 / (1 − ρ) times as long as on an idle one, so a key that takes the
 * fraction p of its capacity costs every other answer p / (1 − ρ)²: almost nothing at 30 %, fifty times as much at 90
 * %. A strategy has its own price, independent of the load: an entry in every process, memory, a value that may be
 * stale for a moment. So a key is worth handling if
 *
 *     p ≥ price · (1 − ρ)²
 *
 * That is 0.25 % of the node's capacity at 70 %, a tenth of a percent at 80 %. A calm node is left alone whatever its
 * keys: below `strainedAt` there is nothing noticeable to gain. A node that *will be* strained counts too
 * (`NodeState.expected`): at 70 % it is late to start.
 */
export function partWorthHandling(utilisation: number): number {
  const idle = Math.max(0, 1 - utilisation)
  return Math.max(leastPart, price * idle * idle)
}

const price = 0.028
/** Less than this of a node is not worth an entry in every process, however full it is. */
const leastPart = 0.001
/** A node is strained from this utilisation, computed without strategies … */
export const strainedAt = 0.68
/** … and below this it is calm again. */
export const calmAt = 0.55

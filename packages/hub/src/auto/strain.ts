/**
 * When a node hurts, and from what part of its capacity on a key is worth handling.
 *
 * An answer of a node at utilisation ρ takes 1 / (1 − ρ) times as long as on an idle one, so a key that takes the part p of its capacity
 * costs every other answer p / (1 − ρ)²: at 30 % next to nothing, at 90 % fifty times as much. A strategy has a price of its own that does
 * not depend on the load: an entry in every process, memory, a value that may be old for a moment. So a key is worth it from
 *
 *     p ≥ price · (1 − ρ)²
 *
 * on: 0.25 % of the node's capacity at 70 %, a tenth of a percent at 80 %. A calm node is left alone whatever its keys: below `strainedAt`
 * there is nothing to win that anybody would notice. That a node *will be* strained counts as well (`NodeState.expected`): at 70 % it is
 * late to begin.
 */
export function partWorthHandling(utilisation: number): number {
  const idle = Math.max(0, 1 - utilisation)
  return Math.max(leastPart, price * idle * idle)
}

const price = 0.028
/** Less than this of a node is not worth an entry in every process, however full it is. */
const leastPart = 0.001
/** From this utilisation on, unhandled, a node is strained … */
export const strainedAt = 0.68
/** … and below this it is calm again. */
export const calmAt = 0.55

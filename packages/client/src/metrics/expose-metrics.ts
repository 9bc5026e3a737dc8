import { type MeterLike, observeWithMeter } from '@firebreak/core/metrics'
import { shieldOf } from '../protect.ts'

/**
 * Gives the figures of a protected client's shield to the application's own OpenTelemetry meter, as observable
 * instruments named `firebreak_shield_…`; the returned function takes them away. Clients that share a shield share its
 * figures: once a process is enough. A client that is not protected has none.
 */
export function exposeMetrics(client: object, meter: MeterLike): () => void {
  const shield = shieldOf(client)
  return shield === undefined ? () => {} : observeWithMeter(meter, () => shield.families())
}

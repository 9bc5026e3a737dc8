import { type MeterLike, observeWithMeter } from '@firebreak/core/metrics'
import { shieldOf } from '../protect.ts'

/**
 * Exposes the metrics of a protected client's shield to the application's own OpenTelemetry meter, as observable
 * instruments named `firebreak_shield_…`; the returned function removes them. Clients that share a shield share its
 * metrics: once per process is enough. An unprotected client has none.
 */
export function exposeMetrics(client: object, meter: MeterLike): () => void {
  const shield = shieldOf(client)
  return shield === undefined ? () => {} : observeWithMeter(meter, () => shield.families())
}

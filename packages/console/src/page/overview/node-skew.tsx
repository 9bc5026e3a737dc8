import type { SlotView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { percent, rate } from '../format/format.ts'
import { t } from '../text/text.ts'

const parts = 32
const slotCount = 16384

/** How evenly the accesses fall on the slots: a hot key shows as a peak. */
export function NodeSkew() {
  const { value, error } = useLoaded<{ slots: SlotView[] }>('/v1/slots?limit=10000')
  const clusters = [...new Set(value?.slots.map(({ redisClusterId }) => redisClusterId))].sort()
  return (
    <section aria-label={t('Load by slot')}>
      <div class="card-head">
        <h2>{t('Load by slot')}</h2>
        <a href="#/heat">{t('heat map')}</a>
      </div>
      {error !== undefined && <p class="problem">{error}</p>}
      {value !== undefined && clusters.length === 0 && <p class="empty">{t('No accesses seen yet.')}</p>}
      {clusters.map((cluster) => (
        <Skew key={cluster} cluster={cluster} slots={value!.slots.filter((slot) => slot.redisClusterId === cluster)} />
      ))}
    </section>
  )
}

function Skew({ cluster, slots }: { readonly cluster: string; readonly slots: readonly SlotView[] }) {
  const sums = new Array<number>(parts).fill(0)
  let total = 0
  for (const { slot, ratePerSecond } of slots) {
    sums[Math.floor((slot / slotCount) * parts)]! += ratePerSecond
    total += ratePerSecond
  }
  const top = Math.max(...sums, 1)
  const busiest = sums.indexOf(Math.max(...sums))
  const from = (busiest * slotCount) / parts
  const text = t('{cluster}: slots {from}–{to} take {share} of {rate}', {
    cluster,
    from,
    to: from + slotCount / parts - 1,
    share: percent(total === 0 ? 0 : sums[busiest]! / total),
    rate: rate(total),
  })
  return (
    <figure class="skew">
      <svg viewBox={`0 0 ${parts * 10} 60`} preserveAspectRatio="none" role="img" aria-label={text}>
        {sums.map((sum, index) => (
          <rect
            key={index}
            class={index === busiest ? 'top' : undefined}
            x={index * 10 + 1}
            width="8"
            y={60 - Math.max(1, (sum / top) * 58)}
            height={Math.max(1, (sum / top) * 58)}
          />
        ))}
      </svg>
      <figcaption>{text}</figcaption>
    </figure>
  )
}

import type { SlotView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { rate } from '../format/format.ts'
import { RecordTable } from '../services/record-table.tsx'

const width = 1300
const height = 120
const slotCount = 16384

/** Accesses a second by slot: a skewed node shows as a hill. */
export function SlotsPage() {
  const { value, error } = useLoaded<{ slots: SlotView[] }>('/v1/slots')
  const slots = value?.slots ?? []
  return (
    <section>
      <h2>Accesses a second by slot</h2>
      <SlotChart slots={slots} />
      <RecordTable
        rows={value?.slots.slice(0, 50)}
        error={error}
        empty="No accesses seen yet."
        columns={[
          { title: 'Redis', text: (slot) => slot.redisClusterId },
          { title: 'Slot', text: (slot) => String(slot.slot), isNumber: true },
          { title: 'Rate', text: (slot) => rate(slot.ratePerSecond), isNumber: true },
        ]}
      />
    </section>
  )
}

function SlotChart({ slots }: { readonly slots: readonly SlotView[] }) {
  const top = Math.max(...slots.map(({ ratePerSecond }) => ratePerSecond), 1)
  return (
    <svg class="slots" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`busiest slot ${rate(top)}`}>
      {slots.map(({ redisClusterId, slot, ratePerSecond }) => {
        const x = (slot / slotCount) * width
        return (
          <line
            key={`${redisClusterId} ${slot}`}
            x1={x}
            x2={x}
            y1={height}
            y2={height - (ratePerSecond / top) * (height - 4)}
          />
        )
      })}
    </svg>
  )
}

import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'
import { RecordTable } from './record-table.tsx'

interface LockRow {
  readonly name: string
  readonly kind: string
  readonly holders: readonly { readonly instanceId: string; readonly hostId: string }[]
  readonly waiters: readonly unknown[]
}

interface LocksAnswer {
  readonly locks: readonly LockRow[]
  readonly lockCount: number
  readonly totals: Readonly<Record<string, number>>
}

/** The locks that are held and waited for. */
export function LocksPage() {
  const { value, error } = useLoaded<LocksAnswer>('/v1/locks')
  const totals = value?.totals
  return (
    <section>
      <h2>Locks held and waited for</h2>
      {totals && (
        <p>
          {count(totals['held'] ?? 0)} held, {count(totals['waiting'] ?? 0)} waiting, {count(totals['acquired'] ?? 0)}{' '}
          acquired, {count((totals['lostExpired'] ?? 0) + (totals['lostTaken'] ?? 0))} lost
        </p>
      )}
      <RecordTable
        rows={value?.locks}
        error={error}
        empty="No process reports a lock."
        columns={[
          { title: 'Lock', text: (lock) => lock.name },
          { title: 'Kind', text: (lock) => lock.kind },
          {
            title: 'Held by',
            text: (lock) => lock.holders.map(({ hostId, instanceId }) => `${hostId} ${instanceId}`).join(', ') || '–',
          },
          { title: 'Waiting', text: (lock) => count(lock.waiters.length), isNumber: true },
        ]}
      />
    </section>
  )
}

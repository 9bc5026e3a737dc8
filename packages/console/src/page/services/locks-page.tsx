import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count, duration, milliseconds } from '../format/format.ts'
import { Figure } from '../overview/verdict.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface Holder {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  readonly owner: string
  readonly token: number
  readonly heldMs: number
  readonly remainingMs: number
}

interface Waiter {
  readonly serviceId: string
  readonly hostId: string
  readonly owner: string
  readonly waitingMs: number
}

interface LockRow {
  readonly name: string
  readonly kind: string
  readonly holders: readonly Holder[]
  readonly waiters: readonly Waiter[]
}

interface LocksAnswer {
  readonly locks: readonly LockRow[]
  readonly lockCount: number
  readonly totals: Readonly<Record<string, number>>
}

const shownWaiters = 8

/** Which locks are held, by whom, for how long, and who waits; a stuck one is released by its holder's own process. */
export function LocksPage() {
  const { filter = '' } = route.value.query
  const prefix = filter === '' ? '' : `?prefix=${encodeURIComponent(filter)}`
  const { value, error, reload } = useLoaded<LocksAnswer>(`/v1/locks${prefix}`, 1000)
  const [released, setReleased] = useState<LockRow>()
  const release = async ({ kind, name }: LockRow) => {
    const done = t('Asked the holder to release {name}; it does so with its next report.', { name })
    await attempt(done, () => call('POST', '/v1/locks/release', { kind, name }))
    reload()
  }
  return (
    <section aria-label={t('Locks')}>
      <div class="card-head">
        <h1>{t('Locks')}</h1>
        <label class="inline">
          <span class="unseen">{t('Filter')}</span>
          <input
            type="search"
            name="filter"
            placeholder={t('name begins with')}
            value={filter}
            onInput={(event) => setQuery({ filter: event.currentTarget.value })}
          />
        </label>
      </div>
      {value !== undefined && <Totals totals={value.totals} locks={value.locks} />}
      <RecordTable
        label={t('Locks')}
        rows={value?.locks}
        error={error}
        id={({ kind, name }) => `${kind} ${name}`}
        empty={filter === '' ? t('No process reports a lock.') : t('No lock name starts with this.')}
        columns={[
          { title: t('Lock'), cell: ({ name }) => <code>{name}</code> },
          { title: t('Kind'), cell: ({ kind }) => kind, isMinor: true },
          {
            title: t('Held by'),
            cell: ({ holders }) =>
              holders.length === 0
                ? '–'
                : holders.map(({ serviceId, hostId, instanceId, owner, token }) => (
                    <span key={`${instanceId} ${owner}`} class="line" title={owner}>
                      {serviceId} · {hostId}
                      <small>{t('token {n}', { n: token })}</small>
                    </span>
                  )),
          },
          {
            title: t('For'),
            cell: ({ holders }) => (holders[0] === undefined ? '–' : duration(holders[0].heldMs)),
            isNumber: true,
          },
          {
            title: t('Lease left'),
            cell: ({ holders }) => (holders[0] === undefined ? '–' : duration(holders[0].remainingMs)),
            isNumber: true,
            isMinor: true,
          },
          { title: t('Waiting'), cell: ({ waiters }) => count(waiters.length), isNumber: true },
          { title: t('Who waits'), cell: ({ waiters }) => <Waiters waiters={waiters} />, isMinor: true },
          {
            title: '',
            cell: (lock) =>
              canOperate.value &&
              lock.holders.length > 0 &&
              (lock.kind === 'lock' || lock.kind === 'fair') && (
                <button type="button" class="quiet" onClick={() => setReleased(lock)}>
                  {t('Release')}
                </button>
              ),
            isTight: true,
          },
        ]}
      />
      {released !== undefined && (
        <Confirm
          title={t('Release {name}?', { name: released.name })}
          text={t(
            'Its holder learns that it has lost the lock, but may be in the middle of its work: whatever checks the fencing token is safe, the rest may run twice.',
          )}
          action={t('Release')}
          onConfirm={() => void release(released)}
          onClose={() => setReleased(undefined)}
        />
      )}
    </section>
  )
}

interface TotalsProps {
  readonly totals: Readonly<Record<string, number>>
  readonly locks: readonly LockRow[]
}

/** Waits that have ended are counted by the processes; those that go on are counted here. */
function Totals({ totals, locks }: TotalsProps) {
  const waiters = locks.flatMap((lock) => lock.waiters)
  const longestMs = Math.max(totals['waitMsMax'] ?? 0, ...waiters.map(({ waitingMs }) => Math.round(waitingMs)))
  return (
    <dl class="figures">
      <Figure name={t('held')} value={count(totals['held'] ?? 0)} />
      <Figure name={t('waiting')} value={count(totals['waiting'] ?? 0)} />
      <Figure name={t('acquired')} value={count(totals['acquired'] ?? 0)} />
      <Figure name={t('contended')} value={count((totals['contended'] ?? 0) + waiters.length)} />
      <Figure name={t('longest wait')} value={milliseconds(longestMs)} />
      <Figure name={t('lost')} value={count((totals['lostExpired'] ?? 0) + (totals['lostTaken'] ?? 0))} />
    </dl>
  )
}

/** The longest first. */
function Waiters({ waiters }: { readonly waiters: readonly Waiter[] }) {
  if (waiters.length === 0) return <>–</>
  const sorted = [...waiters].sort((a, b) => b.waitingMs - a.waitingMs)
  return (
    <>
      {sorted.slice(0, shownWaiters).map(({ serviceId, hostId, owner, waitingMs }) => (
        <span key={owner} class="line" title={owner}>
          {serviceId} · {hostId} · {milliseconds(Math.round(waitingMs))}
        </span>
      ))}
      {sorted.length > shownWaiters && <small>{t('and {n} more', { n: count(sorted.length - shownWaiters) })}</small>}
    </>
  )
}

import type { HostView, HubView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { bytes, count, milliseconds, percent, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { route, setQuery } from '../shell/route.ts'
import { Paging, pageIn } from '../table/paging.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { transportName } from './transports.tsx'
import { kindOf, troublesOf, versionOf } from './troubles.ts'

const pageSize = 50

interface SensorRow {
  readonly host: HostView
  readonly troubles: readonly string[]
}

/** Every process that reports, those with trouble first: who is behind, and why. */
export function Sensors({ hubs }: { readonly hubs: readonly HubView[] | undefined }) {
  const { value, error } = useLoaded<{ hosts: HostView[] }>('/v1/hosts')
  const { filter = '', troubled = '' } = route.value.query
  const page = pageIn(route.value.query['page'])
  const now = overview.value?.hubTime ?? Date.now()
  const hubVersion = hubs?.find(({ isThis }) => isThis)?.version
  const all = value?.hosts.map((host) => ({ host, troubles: troublesOf(host, now, hubVersion) }))
  const rows = all?.filter((row) => isWanted(row, filter.toLowerCase(), troubled === '1')).sort(byTrouble)
  const behind = all?.filter(({ troubles }) => troubles.length > 0).length ?? 0
  return (
    <section aria-label={t('Sensors')}>
      <div class="card-head">
        <h2>{t('Sensors')}</h2>
        <span class="tools">
          <label class="check">
            <input
              type="checkbox"
              name="troubled"
              checked={troubled === '1'}
              onChange={(event) => setQuery({ troubled: event.currentTarget.checked ? '1' : '', page: '' })}
            />
            {t('only those to look at ({n})', { n: count(behind) })}
          </label>
          <label class="inline">
            <span class="unseen">{t('Filter')}</span>
            <input
              type="search"
              name="filter"
              placeholder={t('service or host')}
              value={filter}
              onInput={(event) => setQuery({ filter: event.currentTarget.value, page: '' })}
            />
          </label>
        </span>
      </div>
      {(hubs?.length ?? 1) > 1 && (
        <p class="muted">{t('Those that report to this hub; each of the others shows its own.')}</p>
      )}
      <RecordTable
        label={t('Sensors')}
        rows={rows?.slice(page * pageSize, (page + 1) * pageSize)}
        error={error}
        id={({ host: { serviceId, hostId, instanceId } }) => `${serviceId} ${hostId} ${instanceId}`}
        empty={all?.length === 0 ? t('No sensor is connected.') : t('No sensor matches the filter.')}
        columns={[
          { title: t('Service'), cell: ({ host }) => host.serviceId },
          {
            title: t('Host'),
            cell: ({ host: { hostId, instanceId, agent } }) => (
              <>
                <span title={instanceId}>{hostId}</span>
                <small>
                  {kindOf(agent)} {versionOf(agent)}
                </small>
              </>
            ),
          },
          { title: t('Health'), cell: ({ troubles }) => <Health of={troubles} /> },
          { title: t('Rate'), cell: ({ host }) => rate(host.ratePerSecond), isNumber: true },
          {
            title: t('Reports'),
            cell: ({ host: { reportsBy, reportLagMs } }) => (
              <>
                {reportsBy == null ? '–' : transportName(reportsBy)}
                {reportLagMs != null && <small>{t('{time} old', { time: milliseconds(reportLagMs) })}</small>}
              </>
            ),
            isMinor: true,
          },
          {
            title: t('Dropped'),
            cell: ({ host }) => count(host.droppedReports),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Table'),
            cell: ({ host: { isOff, tableVersion, tablesBy } }) => (
              <>
                {isOff ? t('off') : tableVersion || '–'}
                {tablesBy != null && <small>{transportName(tablesBy)}</small>}
              </>
            ),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('From memory'),
            cell: ({ host: { hitRate, cachedBytes } }) => (
              <>
                {hitRate == null ? '–' : percent(hitRate)}
                {cachedBytes != null && <small>{t('{size} held', { size: bytes(cachedBytes) })}</small>}
              </>
            ),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Clock off by'),
            cell: ({ host }) => milliseconds(Math.round(host.clockOffsetMs)),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Watchers'),
            cell: ({ host }) => host.watchers.map(({ kind, state }) => `${kind}: ${t(state)}`).join(', ') || '–',
            isMinor: true,
          },
          { title: t('Seen'), cell: ({ host }) => <Time at={host.lastSeenAt} />, isTight: true },
        ]}
      />
      {rows !== undefined && (rows.length > pageSize || page > 0) && (
        <Paging
          name="page"
          page={page}
          size={pageSize}
          total={rows.length}
          alone={t('{n} sensors', { n: count(rows.length) })}
        />
      )}
    </section>
  )
}

function isWanted({ host, troubles }: SensorRow, filter: string, isTroubled: boolean): boolean {
  const { serviceId, hostId, instanceId, agent } = host
  return (
    (!isTroubled || troubles.length > 0) &&
    `${serviceId} ${hostId} ${instanceId} ${agent}`.toLowerCase().includes(filter)
  )
}

/** By name within, so that rows do not change places with each reading. */
function byTrouble(a: SensorRow, b: SensorRow): number {
  return Number(b.troubles.length > 0) - Number(a.troubles.length > 0) || (nameOf(a) < nameOf(b) ? -1 : 1)
}

function nameOf({ host: { serviceId, hostId, instanceId } }: SensorRow): string {
  return `${serviceId}\u0000${hostId}\u0000${instanceId}`
}

function Health({ of: troubles }: { readonly of: readonly string[] }) {
  if (troubles.length === 0) return <span class="state handled">{t('healthy')}</span>
  return (
    <>
      <span class="state attention">{t('look here')}</span>
      <small>{troubles.join(', ')}</small>
    </>
  )
}

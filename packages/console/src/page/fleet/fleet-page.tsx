import type { HostView, HubView, RuleStalenessView, WatcherView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { bytes, count, duration, milliseconds, percent, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Figure } from '../overview/verdict.tsx'
import { route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

const silentMs = 5000
const skewedMs = 1000
/** Sensors confirm a table with their next status, a second later. */
const lateMs = 3000

/** Is the plane healthy: sensors, sources of changes, the hub itself; who is behind, and why. */
export function FleetPage() {
  const hosts = useLoaded<{ hosts: HostView[] }>('/v1/hosts')
  const watchers = useLoaded<{ watchers: WatcherView[] }>('/v1/watchers')
  const staleness = useLoaded<{ rules: RuleStalenessView[] }>('/v1/staleness')
  return (
    <>
      <HubFacts />
      <Hubs />
      <Sensors hosts={hosts.value?.hosts} error={hosts.error} />
      <RedisNodes />
      <section aria-label={t('Sources of changes')}>
        <h2>{t('Sources of changes that this hub reads')}</h2>
        <RecordTable
          label={t('Sources of changes')}
          rows={watchers.value?.watchers}
          error={watchers.error}
          id={({ name }) => name}
          empty={t('None: the processes watch their keys themselves.')}
          columns={[
            { title: t('Source'), cell: ({ name }) => name },
            { title: t('Kind'), cell: ({ kind }) => kind },
            { title: 'Redis', cell: ({ redisClusterId }) => redisClusterId },
            {
              title: t('State'),
              cell: ({ state, detail }) => (
                <>
                  <span class={`state ${state === 'live' ? 'handled' : 'unhandled'}`}>{t(state)}</span>
                  {detail !== '' && <small>{detail}</small>}
                </>
              ),
            },
            {
              title: t('Counts'),
              cell: ({ counts }) =>
                Object.entries(counts)
                  .map(([name, value]) => `${name} ${count(value)}`)
                  .join(', '),
              isMinor: true,
            },
          ]}
        />
      </section>
      <section aria-label={t('Staleness')}>
        <h2>{t('Measured staleness of cached values')}</h2>
        <RecordTable
          label={t('Staleness')}
          rows={staleness.value?.rules}
          error={staleness.error}
          id={({ ruleId }) => ruleId}
          empty={t(
            'No value has been compared yet: each process compares one of its own with Redis every few seconds.',
          )}
          columns={[
            { title: t('Rule'), cell: ({ ruleId }) => ruleId },
            { title: t('Compared'), cell: ({ observations }) => count(observations), isNumber: true },
            { title: 'p50', cell: ({ p50Ms }) => milliseconds(p50Ms), isNumber: true },
            { title: 'p99', cell: ({ p99Ms }) => milliseconds(p99Ms), isNumber: true },
            { title: t('Worst'), cell: ({ maxMs }) => milliseconds(maxMs), isNumber: true },
            {
              title: t('Allowed'),
              cell: ({ maxStalenessMs }) =>
                maxStalenessMs === null ? t('by its watcher') : milliseconds(maxStalenessMs),
              isNumber: true,
            },
            { title: t('Last'), cell: ({ lastAt }) => <Time at={lastAt} />, isTight: true },
          ]}
        />
      </section>
    </>
  )
}

function HubFacts() {
  const now = overview.value
  if (now === undefined) return null
  const refused = Object.entries(now.ingest.refused).filter(([, many]) => many > 0)
  return (
    <section aria-label={t('Hub')}>
      <h1>{t('Fleet')}</h1>
      <dl class="figures">
        <Figure name={t('hub')} value={now.hubId} />
        <Figure name={t('sensors')} value={count(now.sensors.connected)} />
        <Figure name={t('hosts')} value={count(now.sensors.hosts)} />
        <Figure name={t('services')} value={count(now.sensors.services)} />
        <Figure name={t('table version')} value={String(now.table.version)} />
        <Figure name={t('reports')} value={rate(now.ingest.reportsPerSecond)} />
        <Figure name={t('entries')} value={rate(now.ingest.entriesPerSecond)} />
        <Figure name={t('memory of keys')} value={bytes(now.ingest.memoryBytes)} />
      </dl>
      {refused.length > 0 && (
        <p class="muted">
          {t('Refused reports since start: {list}', {
            list: refused.map(([cause, many]) => `${cause} ${count(many)}`).join(', '),
          })}
        </p>
      )}
    </section>
  )
}

/** The others on the same store; a hub alone needs no list. */
function Hubs() {
  const { value, error } = useLoaded<{ hubs: HubView[] }>('/v1/hubs')
  if (value === undefined || value.hubs.length < 2) return null
  return (
    <section aria-label={t('Hubs')}>
      <h2>{t('Hubs that share the store')}</h2>
      <RecordTable
        label={t('Hubs')}
        rows={value.hubs}
        error={error}
        id={({ hubId, isThis }) => `${isThis} ${hubId}`}
        empty=""
        columns={[
          {
            title: t('hub'),
            cell: ({ hubId, isThis }) => (
              <>
                <code>{hubId}</code>
                {isThis && <small>{t('this one')}</small>}
              </>
            ),
          },
          {
            title: t('State'),
            cell: ({ isAlone }) => (
              <span class={`state ${isAlone ? 'unhandled' : 'handled'}`}>
                {isAlone ? t('cut off from the store') : t('healthy')}
              </span>
            ),
          },
          { title: t('Processes'), cell: ({ processes }) => count(processes), isNumber: true },
        ]}
      />
    </section>
  )
}

function Sensors({
  hosts,
  error,
}: {
  readonly hosts: readonly HostView[] | undefined
  readonly error: string | undefined
}) {
  const { filter = '' } = route.value.query
  const now = overview.value?.hubTime ?? Date.now()
  const rows = hosts?.filter(({ serviceId, hostId, instanceId }) =>
    `${serviceId} ${hostId} ${instanceId}`.toLowerCase().includes(filter.toLowerCase()),
  )
  return (
    <section aria-label={t('Sensors')}>
      <div class="card-head">
        <h2>{t('Sensors')}</h2>
        <label class="inline">
          <span class="unseen">{t('Filter')}</span>
          <input
            type="search"
            name="filter"
            placeholder={t('service or host')}
            value={filter}
            onInput={(event) => setQuery({ filter: event.currentTarget.value })}
          />
        </label>
      </div>
      <RecordTable
        label={t('Sensors')}
        rows={rows}
        error={error}
        id={({ instanceId }) => instanceId}
        empty={hosts?.length === 0 ? t('No sensor is connected.') : t('No sensor matches the filter.')}
        columns={[
          { title: t('Service'), cell: ({ serviceId }) => serviceId },
          { title: t('Host'), cell: ({ hostId, instanceId }) => <span title={instanceId}>{hostId}</span> },
          { title: t('Agent'), cell: ({ agent }) => agent, isMinor: true },
          { title: t('Health'), cell: (host) => <Health of={host} now={now} /> },
          { title: t('Rate'), cell: ({ ratePerSecond }) => rate(ratePerSecond), isNumber: true },
          {
            title: t('From memory'),
            cell: ({ hitRate }) => (hitRate == null ? '–' : percent(hitRate)),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Table'),
            cell: ({ tableVersion, isOff }) => (isOff ? t('off') : tableVersion),
            isNumber: true,
            isMinor: true,
          },
          { title: t('Dropped'), cell: ({ droppedReports }) => count(droppedReports), isNumber: true, isMinor: true },
          {
            title: t('Clock off by'),
            cell: ({ clockOffsetMs }) => milliseconds(Math.round(clockOffsetMs)),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Watchers'),
            cell: ({ watchers }) =>
              watchers
                .map(({ kind, state, detail }) => `${kind}: ${state}${detail ? ` (${detail})` : ''}`)
                .join(', ') || '–',
            isMinor: true,
          },
          { title: t('Seen'), cell: ({ lastSeenAt }) => <Time at={lastSeenAt} />, isTight: true },
        ]}
      />
    </section>
  )
}

/** What is wrong with a sensor, in words; the worst first. */
export function troublesOf(host: HostView, now: number): string[] {
  const troubles: string[] = []
  if (now - host.lastSeenAt > silentMs) troubles.push(t('silent'))
  if (host.isConnected === false) troubles.push(t('reports only, gets no table'))
  else if (!host.isOff && (host.tableBehindMs ?? 0) > lateMs)
    troubles.push(t('without the newest table for {time}', { time: duration(host.tableBehindMs!) }))
  if (host.isOff) troubles.push(t('switched off'))
  if (host.watchers.some(({ state }) => state !== 'live')) troubles.push(t('a watcher is not live'))
  if (Math.abs(host.clockOffsetMs) > skewedMs) troubles.push(t('its clock is wrong'))
  if (host.droppedReports > 0) troubles.push(t('dropped reports'))
  return troubles
}

function Health({ of: host, now }: { readonly of: HostView; readonly now: number }) {
  const troubles = troublesOf(host, now)
  if (troubles.length === 0) return <span class="state handled">{t('healthy')}</span>
  return (
    <>
      <span class="state attention">{t('look here')}</span>
      <small>{troubles.join(', ')}</small>
    </>
  )
}

interface Engine {
  readonly redisClusterId: string
  readonly at: number
  readonly nodes: readonly {
    readonly node: string
    readonly operationsPerSecond: number
    readonly reportedPerSecond: number
    readonly unreportedShare: number
  }[]
}

/** What the servers count themselves, beside what sensors report: the difference is load that nobody here sees. */
function RedisNodes() {
  const { value, error } = useLoaded<{ engines: Engine[] }>('/v1/engines', 5000)
  const rows = value?.engines.flatMap(({ nodes, ...of }) => nodes.map((node) => ({ ...of, ...node })))
  return (
    <section aria-label={t('Redis nodes')}>
      <h2>{t('Redis nodes, by their own count')}</h2>
      <p class="muted">{t('No sensor reports load from others: clients without Firebreak, and the hub itself.')}</p>
      <RecordTable
        label={t('Redis nodes')}
        rows={rows}
        error={error}
        id={({ redisClusterId, node }) => `${redisClusterId} ${node}`}
        empty={t('No servers to ask: name them with --engines clusterId=redis://host:port.')}
        columns={[
          { title: t('Node'), cell: ({ node }) => <code>{node}</code> },
          { title: t('Cluster'), cell: ({ redisClusterId }) => redisClusterId },
          {
            title: t('Commands'),
            cell: ({ operationsPerSecond }) => rate(operationsPerSecond),
            isNumber: true,
          },
          { title: t('Reported'), cell: ({ reportedPerSecond }) => rate(reportedPerSecond), isNumber: true },
          { title: t('From others'), cell: ({ unreportedShare }) => percent(unreportedShare), isNumber: true },
          { title: t('Asked at'), cell: ({ at }) => <Time at={at} />, isTight: true },
        ]}
      />
    </section>
  )
}

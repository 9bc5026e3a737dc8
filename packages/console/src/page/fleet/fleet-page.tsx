import type { HubView, RuleStalenessView, WatcherView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { bytes, count, milliseconds, percent, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Figure } from '../overview/verdict.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Hubs } from './hubs.tsx'
import { Sensors } from './sensors.tsx'
import { Transports } from './transports.tsx'

/** Is the plane healthy: sensors, sources of changes, the hub itself; who is behind, and why. */
export function FleetPage() {
  const hubs = useLoaded<{ hubs: HubView[] }>('/v1/hubs')
  const watchers = useLoaded<{ watchers: WatcherView[] }>('/v1/watchers')
  const staleness = useLoaded<{ rules: RuleStalenessView[] }>('/v1/staleness')
  return (
    <>
      <HubFacts />
      <Hubs hubs={hubs.value?.hubs} error={hubs.error} />
      <Sensors hubs={hubs.value?.hubs} />
      <Transports />
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

import type { FinderRunView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { duration, percent } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { FindingView, type ShownFinding } from './finding-view.tsx'

const shownResults = 4

interface FindersAnswer {
  readonly runs: readonly FinderRunView[]
  readonly clusters: readonly string[]
}

/** What is too large, or hot outside of our sight? */
export function FindersPage() {
  const runs = useLoaded<FindersAnswer>('/v1/finders', 2000)
  const findings = useLoaded<{ findings: ShownFinding[] }>('/v1/findings', 5000)
  return (
    <>
      <section aria-label={t('Finder runs')}>
        <div class="card-head">
          <h1>{t('Big keys · Finders')}</h1>
          {canOperate.value && <StartRun clusters={runs.value?.clusters ?? []} onStarted={runs.reload} />}
        </div>
        {runs.value !== undefined && runs.value.clusters.length === 0 && (
          <p class="muted">
            {t('This hub has no Redis to search. Start it with one, or send findings from anywhere:')}{' '}
            <code>firebreak find big --scan --hub {location.origin}</code>
          </p>
        )}
        <Runs runs={runs.value?.runs} error={runs.error} onChange={runs.reload} />
      </section>
      {runs.value?.runs
        .filter(({ state }) => state === 'done' || state === 'stopped')
        .slice(0, shownResults)
        .map(({ id }) => (
          <RunResult key={id} id={id} />
        ))}
      {findings.value?.findings.map((finding) => (
        <FindingView key={finding.id} finding={finding} />
      ))}
      {findings.value?.findings.length === 0 && runs.value?.runs.length === 0 && (
        <section>
          <p class="empty">{t('Nothing was searched yet.')}</p>
        </section>
      )}
    </>
  )
}

/** What a run found; the list of runs has it not. */
function RunResult({ id }: { readonly id: string }) {
  const { value, error } = useLoaded<FinderRunView>(`/v1/finders/${encodeURIComponent(id)}`, 600_000)
  if (error !== undefined) return <p class="problem">{error}</p>
  if (value?.result == null) return null
  return <FindingView finding={value.result as ShownFinding} redisClusterId={value.redisClusterId} />
}

function StartRun({ clusters, onStarted }: { readonly clusters: readonly string[]; readonly onStarted: () => void }) {
  const [cluster, setCluster] = useState<string>()
  const redisClusterId = cluster ?? clusters[0]
  if (redisClusterId === undefined) return null
  const start = async (kind: 'big' | 'hot') => {
    await attempt(t('Search started.'), () => call('POST', '/v1/finders', { kind, redisClusterId }))
    onStarted()
  }
  return (
    <span class="tools">
      <select
        name="finder-cluster"
        aria-label={t('Cluster')}
        value={redisClusterId}
        onChange={(event) => setCluster(event.currentTarget.value)}
      >
        {clusters.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <button type="button" class="primary" onClick={() => void start('big')}>
        {t('Find big keys')}
      </button>
      <button type="button" onClick={() => void start('hot')}>
        {t('Find hot keys')}
      </button>
    </span>
  )
}

interface RunsProps {
  readonly runs: readonly FinderRunView[] | undefined
  readonly error: string | undefined
  readonly onChange: () => void
}

function Runs({ runs, error, onChange }: RunsProps) {
  const stop = async (id: string) => {
    await attempt(t('Search stopped.'), () => call('DELETE', `/v1/finders/${encodeURIComponent(id)}`))
    onChange()
  }
  return (
    <RecordTable
      label={t('Finder runs')}
      rows={runs}
      error={error}
      id={({ id }) => id}
      empty={t('No search was started here.')}
      columns={[
        { title: t('Started'), cell: ({ startedAt }) => <Time at={startedAt} />, isTight: true },
        { title: t('Looks for'), cell: ({ kind }) => t(kind) },
        { title: t('Cluster'), cell: ({ redisClusterId }) => redisClusterId },
        { title: t('Person'), cell: ({ who }) => who, isMinor: true },
        {
          title: t('State'),
          cell: ({ state, detail, progress }) => (
            <>
              <span class={`state ${state === 'done' ? 'handled' : state === 'failed' ? 'unhandled' : 'observed'}`}>
                {t(state)}
              </span>
              {state === 'running' && progress !== null && <progress value={progress} aria-label={percent(progress)} />}
              {detail !== '' && <small>{detail}</small>}
            </>
          ),
        },
        {
          title: t('Took'),
          cell: ({ startedAt, endedAt }) => (endedAt === null ? '–' : duration(endedAt - startedAt)),
          isNumber: true,
        },
        {
          title: '',
          cell: ({ id, state }) =>
            canOperate.value &&
            state === 'running' && (
              <button type="button" class="quiet" onClick={() => void stop(id)}>
                {t('Stop')}
              </button>
            ),
          isTight: true,
        },
      ]}
    />
  )
}

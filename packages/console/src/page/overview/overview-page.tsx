import type { HistoryEvent, Overview } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { KeyTable } from '../keys/key-table.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Alarms } from './alarms.tsx'
import { FirstRun } from './first-run.tsx'
import { NodeSkew } from './node-skew.tsx'
import { Traffic } from './traffic.tsx'
import { Verdict } from './verdict.tsx'

const topKeys = 10

/** Is anything hot, and are we safe? */
export function OverviewPage() {
  const now = overview.value
  const events = useLoaded<{ events: HistoryEvent[] }>('/v1/history?limit=8', 5000)
  if (now === undefined) return <p class="empty">{t('Waiting for the hub …')}</p>
  return (
    <>
      <Verdict now={now} />
      <Alarms alarms={now.alarms} most={3} />
      <FirstRun now={now} isFirst={isFirstRun(now, events.value?.events)} />
      <Traffic now={now} />
      <section aria-label={t('Keys')}>
        <div class="card-head">
          <h2>{t('Hottest keys')}</h2>
          <a href="#/keys">{t('all hot keys')}</a>
        </div>
        <KeyTable keys={now.keys.slice(0, topKeys)} isShort />
      </section>
      <div class="halves">
        <NodeSkew />
        <LastEvents events={events.value?.events} error={events.error} />
      </div>
    </>
  )
}

/** No key was ever handled here, as the hub remembers; hubs of earlier versions know only their last events. */
function isFirstRun(now: Overview, events: readonly HistoryEvent[] | undefined): boolean {
  if (now.wasHandled !== undefined) return !now.wasHandled
  if (events === undefined) return false
  return !now.keys.some(({ handling }) => handling === 'handled') && !events.some(({ kind }) => kind === 'handled')
}

function LastEvents(props: {
  readonly events: readonly HistoryEvent[] | undefined
  readonly error: string | undefined
}) {
  return (
    <section aria-label={t('Last events')}>
      <div class="card-head">
        <h2>{t('Last events')}</h2>
        <a href="#/timeline">{t('whole timeline')}</a>
      </div>
      <RecordTable
        label={t('Last events')}
        rows={props.events?.filter(({ kind }) => kind !== 'extended')}
        error={props.error}
        id={({ at, kind, key, redisClusterId }) => `${at} ${kind} ${redisClusterId} ${key}`}
        empty={t('Nothing yet.')}
        columns={[
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          {
            title: t('Event'),
            cell: ({ kind }) => <span class={`state ${kind}`}>{t(kind)}</span>,
            isTight: true,
          },
          {
            title: t('Key'),
            cell: ({ redisClusterId, key }) => key !== '' && <KeyLink redisClusterId={redisClusterId} text={key} />,
          },
        ]}
      />
    </section>
  )
}

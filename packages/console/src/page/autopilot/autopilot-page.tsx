import type { AutopilotView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { milliseconds, percent, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Forecast } from './forecast.tsx'
import { Prewarming } from './prewarming.tsx'

/** How full the nodes are, which heat comes back, and what is warmed before it does. */
export function AutopilotPage() {
  const { value, error } = useLoaded<AutopilotView>('/v1/autopilot')
  return (
    <>
      <NodeLoads view={value} error={error} />
      {value !== undefined && value.beside.length > 0 && <Beside view={value} />}
      <Forecast />
      <Prewarming />
    </>
  )
}

interface NodeLoadsProps {
  readonly view: AutopilotView | undefined
  readonly error: string | undefined
}

/** What `auto` rules go by: how full each node would be if nothing were handled. */
function NodeLoads({ view, error }: NodeLoadsProps) {
  return (
    <section aria-label={t('Load of the nodes')}>
      <h1>{t('Autopilot')}</h1>
      <h2>{t('How full each Redis node is, and would be if nothing were handled')}</h2>
      <RecordTable
        label={t('Load of the nodes')}
        rows={view?.nodes}
        error={error}
        id={({ redisClusterId, node }) => `${redisClusterId} ${node}`}
        empty={t('Nothing is measured: no rule is hot by itself (threshold: auto).')}
        columns={[
          {
            title: t('Node'),
            cell: ({ node, redisClusterId }) => (
              <>
                <code>{node}</code>
                <small>{redisClusterId}</small>
              </>
            ),
          },
          {
            title: t('State'),
            cell: ({ isStrained }) => (
              <span class={`state ${isStrained ? 'attention' : 'handled'}`}>
                {isStrained ? t('strained') : t('calm')}
              </span>
            ),
          },
          { title: t('In use'), cell: ({ utilisation }) => percent(utilisation), isNumber: true },
          {
            title: t('Without strategies'),
            // What the server does beside what is reported would be there without strategies as well.
            cell: ({ utilisation, unhandledUtilisation }) => percent(Math.max(utilisation, unhandledUtilisation)),
            isNumber: true,
          },
          { title: t('Serves'), cell: ({ operationsPerSecond }) => rate(operationsPerSecond), isNumber: true },
          { title: t('Asked for'), cell: ({ demandPerSecond }) => rate(demandPerSecond), isNumber: true },
          {
            title: t('Full at'),
            cell: ({ capacityPerSecond }) => (capacityPerSecond === null ? '–' : rate(capacityPerSecond)),
            isNumber: true,
          },
          {
            title: t('Round trip'),
            cell: ({ roundTripMs }) => milliseconds(roundTripMs),
            isNumber: true,
            isMinor: true,
          },
          { title: t('Why'), cell: ({ text }) => <span class="reason">{text}</span>, isMinor: true },
          { title: t('Measured'), cell: ({ measuredAt }) => <Time at={measuredAt} />, isTight: true },
        ]}
      />
    </section>
  )
}

function Beside({ view }: { readonly view: AutopilotView }) {
  return (
    <section aria-label={t('What shadow rules would do')}>
      <h2>{t('Keys that an auto rule in shadow mode would handle')}</h2>
      <RecordTable
        label={t('What shadow rules would do')}
        rows={view.beside}
        id={({ redisClusterId, key, ruleId }) => `${redisClusterId} ${key} ${ruleId}`}
        empty=""
        columns={[
          {
            title: t('Key'),
            cell: ({ redisClusterId, key }) => <KeyLink redisClusterId={redisClusterId} text={key} />,
          },
          {
            title: t('Rule'),
            cell: ({ ruleId }) => <a href={`#/rules?edit=${encodeURIComponent(ruleId)}`}>{ruleId}</a>,
          },
          { title: t('Since'), cell: ({ since }) => <Time at={since} />, isTight: true },
          { title: t('Handled now'), cell: ({ isHandled }) => (isHandled ? t('yes') : t('no')) },
          { title: t('Why'), cell: ({ reason }) => <span class="reason">{reason}</span>, isMinor: true },
        ]}
      />
    </section>
  )
}

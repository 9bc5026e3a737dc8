import type { Overview, Safety } from '@firebreak/core'
import { link, overview } from '../data/live.ts'
import { count, percent, rate } from '../format/format.ts'
import { KeyTable } from './key-table.tsx'
import { TrafficChart } from './traffic-chart.tsx'

/** What is hot now, and are we safe. */
export function NowPage() {
  const now = overview.value
  if (now === undefined) return <p class="empty">Waiting for the hub …</p>
  const { rate: traffic } = now
  // A verdict is about this moment: without the hub there is none.
  const isLost = link.value === 'lost'
  const reads = traffic.redis + traffic.local + traffic.copies
  return (
    <>
      <section class={`verdict ${isLost ? 'unknown' : safetyOf(now)}`}>
        <h1>{isLost ? 'Unknown: the hub does not answer.' : now.verdict}</h1>
        <dl>
          <Figure name="reads" value={rate(reads)} />
          <Figure name="by Redis" value={rate(traffic.redis + traffic.copies)} />
          <Figure name="from memory" value={reads > 0 ? percent(traffic.local / reads) : '–'} />
          <Figure name="limited" value={rate(traffic.limited)} />
          {now.hot !== undefined && (
            <>
              <Figure name="hot, handled" value={count(now.hot.handled)} />
              <Figure name="only observed" value={count(now.hot.observed)} />
              <Figure name="not handled" value={count(now.hot.unhandled)} />
            </>
          )}
          <Figure name="sensors" value={count(now.sensors.connected)} />
          <Figure name="keys watched" value={count(now.ingest.trackedKeys)} />
        </dl>
      </section>
      {now.alarms.length > 0 && (
        <section class="alarms" aria-label="Alarms">
          {now.alarms.map((alarm) => (
            <p key={alarm.id} class={alarm.severity}>
              <b>{alarm.cause}</b> <span>{alarm.retry}</span>
            </p>
          ))}
        </section>
      )}
      <section aria-label="Traffic">
        <h2>Reads a second, by who answered</h2>
        <TrafficChart points={now.traffic} />
      </section>
      <section aria-label="Keys">
        <h2>Hottest keys</h2>
        <KeyTable keys={now.keys} hubTime={now.hubTime} />
      </section>
    </>
  )
}

/** Hubs of earlier versions say only whether we are safe. */
function safetyOf({ safety, isOff, isSafe }: Overview): Safety {
  return safety ?? (isOff ? 'off' : isSafe ? 'safe' : 'unsafe')
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

import { allReads, type Overview, readsOfRedis, type Safety, savedReads } from '@firebreak/core'
import { link } from '../data/live.ts'
import { count, percent, rate } from '../format/format.ts'
import { t } from '../text/text.ts'
import { safetyOf, verdictText } from './verdict-text.ts'

/** Are we safe: a word that is true, and the figures behind it. */
export function Verdict({ now }: { readonly now: Overview }) {
  // A verdict is about this moment: without the hub there is none.
  const isLost = link.value === 'lost'
  const safety = isLost ? 'unknown' : safetyOf(now)
  const { rate: traffic, hot } = now
  const reads = allReads(traffic)
  return (
    <section class={`verdict ${safety}`}>
      <h1>
        <span class="sign" aria-hidden="true">
          {signs[safety]}
        </span>
        {isLost ? t('Unknown: the hub does not answer.') : verdictText(now, safety)}
      </h1>
      <dl class="figures leading">
        <Figure name={t('reads')} value={rate(reads)} />
        <Figure name={t('never reach Redis')} value={reads > 0 ? percent(savedReads(traffic) / reads) : '–'} />
        {hot !== undefined && (
          <>
            <Figure name={t('hot, handled')} value={count(hot.handled)} />
            <Figure name={t('not handled')} value={count(hot.unhandled)} isBad={hot.unhandled > 0} />
          </>
        )}
      </dl>
      <dl class="figures minor">
        <Figure name={t('reach Redis')} value={rate(readsOfRedis(traffic))} />
        <Figure name={t('limited')} value={rate(traffic.limited)} />
        {hot !== undefined && <Figure name={t('only observed')} value={count(hot.observed)} />}
        <Figure name={t('sensors')} value={count(now.sensors.connected)} />
        <Figure name={t('keys watched')} value={count(now.ingest.trackedKeys)} />
      </dl>
    </section>
  )
}

const signs: Readonly<Record<Safety, string>> = { safe: '✓', observed: '◐', unsafe: '!', off: '⏻', unknown: '?' }

interface FigureProps {
  readonly name: string
  readonly value: string
  readonly isBad?: boolean
}

export function Figure({ name, value, isBad = false }: FigureProps) {
  return (
    <div class={isBad ? 'is-bad' : undefined}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

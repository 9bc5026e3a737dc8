import { allReads, type Overview, readsOfRedis, type Safety, savedReads } from '@firebreak/core'
import { link } from '../data/live.ts'
import { count, percent, rate } from '../format/format.ts'
import { language, t } from '../text/text.ts'

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
        {isLost ? t('Unknown: the hub does not answer.') : sentenceOf(now, safety)}
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

/** The hub writes English; in another language the sentence is made of its facts. */
function sentenceOf(now: Overview, safety: Safety): string {
  if (language.value === 'en') return now.verdict
  const { handled = 0, observed = 0, unhandled = 0 } = now.hot ?? {}
  const all = handled + observed + unhandled
  const values = { all, handled, observed, unhandled }
  const critical = now.alarms.find(({ severity }) => severity === 'critical')
  switch (safety) {
    case 'off':
      return t('Protection is off: {all} hot keys, nothing is handled. Switch it on again.', values)
    case 'unsafe':
      return critical === undefined
        ? t(
            'Not safe: {unhandled} of {all} hot keys are not handled. Check that the services run with the SDK or behind the proxy.',
            values,
          )
        : t('Not safe: {cause}', { cause: critical.cause })
    case 'unknown':
      return t('No sensor is reporting, so we cannot tell whether anything is hot.')
    case 'observed':
      return t('{all} hot keys: {handled} handled, {observed} only observed.', values)
    case 'safe':
      return all === 0 ? t('Safe: nothing is hot.') : t('Safe: {all} hot keys, all handled.', values)
  }
}

/** Hubs of earlier versions say only whether we are safe. */
function safetyOf({ safety, isOff, isSafe }: Overview): Safety {
  return safety ?? (isOff ? 'off' : isSafe ? 'safe' : 'unsafe')
}

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

import { type KeyDetail, parseKeyText, type RulesView, readableKey } from '@firebreak/core'
import { canOperate } from '../data/access.ts'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { ago, bytes, percent, rate, timeOfDay } from '../format/format.ts'
import { Sparkline } from '../overview/sparkline.tsx'
import { RecordTable } from '../services/record-table.tsx'
import { route } from '../shell/route.ts'
import { KeyActions } from './key-actions.tsx'
import { actionRule, handlingText, heatGauge, strategyText } from './key-facts.ts'

/** What one key is doing, and what can be done about it. */
export function KeyPage() {
  const [redisClusterId = '', text = ''] = route.value.parts
  // Another key is another page: nothing of the one before may be left in its fields.
  return <OneKey key={`${redisClusterId} ${text}`} redisClusterId={redisClusterId} text={text} />
}

function OneKey({ redisClusterId, text }: { readonly redisClusterId: string; readonly text: string }) {
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}`
  const { value: detail, error, reload } = useLoaded<KeyDetail>(path, 1000)
  const rules = useLoaded<RulesView>('/v1/rules')
  const name = parseKeyText(text) ?? text
  const reloadAll = () => {
    reload()
    rules.reload()
  }
  return (
    <>
      <section class={`verdict ${cardClass(detail)}`}>
        <h1>
          <code>{readableKey(text)}</code>
        </h1>
        {error !== undefined && <p class="problem">{error}</p>}
        {detail !== undefined && <Facts detail={detail} rules={rules.value} />}
      </section>
      {canOperate.value && rules.value !== undefined && (detail !== undefined || error !== undefined) && (
        <KeyActions
          redisClusterId={redisClusterId}
          text={text}
          name={name}
          ratePerSecond={detail?.ratePerSecond ?? 0}
          inForce={actionRule(rules.value.rules, redisClusterId, name)}
          onChange={reloadAll}
        />
      )}
      <section aria-label="Services">
        <h2>Who uses it</h2>
        <RecordTable
          rows={detail?.topHosts}
          empty="Nobody in the last minute."
          columns={[
            { title: 'Service', text: ({ serviceId }) => serviceId },
            { title: 'Host', text: ({ hostId }) => hostId },
            { title: 'Rate', text: ({ ratePerSecond }) => rate(ratePerSecond), isNumber: true },
          ]}
        />
      </section>
      <section aria-label="Events">
        <h2>What happened</h2>
        <RecordTable
          rows={detail?.events}
          empty="Nothing yet."
          columns={[
            { title: 'Time', text: ({ at }) => timeOfDay(at) },
            { title: 'Event', text: ({ kind }) => kind },
            { title: 'Why', text: (event) => event.text },
          ]}
        />
      </section>
    </>
  )
}

function cardClass(detail: KeyDetail | undefined): string {
  if (detail === undefined) return 'unknown'
  return { handled: 'safe', observed: 'observed', unhandled: 'unsafe', none: 'unknown' }[detail.handling ?? 'none']
}

function Facts({ detail, rules }: { readonly detail: KeyDetail; readonly rules: RulesView | undefined }) {
  const rule = rules?.rules.find(({ id }) => id === detail.ruleId)
  const gauge = heatGauge(detail.ratePerSecond, rule)
  return (
    <>
      <p>
        <span class={`state ${detail.state}`}>{detail.state}</span>{' '}
        {detail.since !== null && `for ${ago(detail.since, overview.value?.hubTime ?? Date.now())}`}{' '}
        <Sparkline values={detail.sparkline} />
      </p>
      {gauge !== undefined && (
        <div class="meter" role="img" aria-label={gaugeText(detail.ratePerSecond, gauge.threshold)}>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect class={gauge.isOver ? 'over' : undefined} width={gauge.rateAt * 100} height="10" />
            <line x1={gauge.thresholdAt * 100} x2={gauge.thresholdAt * 100} y1="0" y2="10" />
          </svg>
        </div>
      )}
      <dl class="facts">
        <dt>Rate</dt>
        <dd class="rate">
          {gauge === undefined ? rate(detail.ratePerSecond) : gaugeText(detail.ratePerSecond, gauge.threshold)}
          {detail.errorPerSecond > 0 && ` (± ${rate(detail.errorPerSecond)})`}, {percent(detail.share)} of all;{' '}
          {rate(detail.writesPerSecond)} writes, {bytes(detail.bytesPerSecond)}/s
        </dd>
        <dt>Why</dt>
        <dd>{detail.reason}</dd>
        <dt>Strategy</dt>
        <dd>{strategyText(detail.strategy)}</dd>
        <dt>Effect</dt>
        <dd>{handlingText(detail)}</dd>
        <dt>Where</dt>
        <dd>
          cluster {detail.redisClusterId}, slot {detail.slot}
        </dd>
      </dl>
    </>
  )
}

function gaugeText(ratePerSecond: number, threshold: number): string {
  const relation = ratePerSecond >= threshold ? 'over' : 'under'
  return `${rate(ratePerSecond)}, ${relation} the threshold of ${rate(threshold)}`
}

import {
  type AutopilotView,
  type EpisodesView,
  type HistoryView,
  type KeyDetail,
  parseKeyText,
  type RuleStalenessView,
  type RulesView,
} from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { TimeChart } from '../chart/time-chart.tsx'
import { canOperate } from '../data/access.ts'
import { link, overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { ago, bytes, count, milliseconds, percent, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { marksOf } from '../overview/traffic.tsx'
import { Figure } from '../overview/verdict.tsx'
import { route } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Episodes } from '../timeline/episodes.tsx'
import { periodName, periodOf, RangeChoice, zoomTo } from '../timeline/range.tsx'
import { KeyActions } from './key-actions.tsx'
import { actionRule, handlingText, strategyText, thresholdsOf, thresholdText } from './key-facts.ts'
import { Inspection } from './key-inspection.tsx'
import { KeyName } from './key-link.tsx'
import { StateBadge } from './key-table.tsx'

/** What one key is doing, and what can be done about it. */
export function KeyPage() {
  const [redisClusterId = '', text = ''] = route.value.parts
  // Another key is another page: nothing of the one before may be left in its fields.
  return <OneKey key={`${redisClusterId} ${text}`} redisClusterId={redisClusterId} text={text} />
}

interface KeyProps {
  readonly redisClusterId: string
  readonly text: string
}

function OneKey({ redisClusterId, text }: KeyProps) {
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}`
  const { value: detail, error, reload } = useLoaded<KeyDetail>(path, 1000)
  const rules = useLoaded<RulesView>('/v1/rules')
  const name = parseKeyText(text) ?? text
  const rule = rules.value?.rules.find(({ id }) => id === detail?.ruleId)
  const inForce = actionRule(rules.value?.rules ?? [], redisClusterId, name)
  const reloadAll = () => {
    reload()
    rules.reload()
  }
  return (
    <>
      <section class={`verdict key-head ${cardClass(detail)}`}>
        <h1>
          <KeyName text={text} length={400} />
          <span class="cluster">{redisClusterId}</span>
          {detail !== undefined && <StateBadge state={detail.state} />}
          {detail?.since != null && (
            <small class="muted">
              {t('for {time}', { time: ago(detail.since, overview.value?.hubTime ?? Date.now()) })}
            </small>
          )}
        </h1>
        {error !== undefined && <p class="problem">{error}</p>}
        {detail !== undefined && (
          <>
            <p class="standing">
              {detail.strategy !== null && <b>{detail.strategy.strategy}</b>}
              {detail.ruleId !== null && (
                <a href={`#/rules?edit=${encodeURIComponent(detail.ruleId)}`}>
                  {t('rule {rule}', { rule: detail.ruleId })}
                </a>
              )}
              <span>{handlingText(detail)}</span>
            </p>
            <Figures detail={detail} />
          </>
        )}
      </section>
      {canOperate.value && rules.value !== undefined && (detail !== undefined || error !== undefined) && (
        <KeyActions
          redisClusterId={redisClusterId}
          text={text}
          name={name}
          now={detail ?? notUsed}
          inForce={inForce}
          onChange={reloadAll}
        />
      )}
      <RateChart redisClusterId={redisClusterId} text={text} detail={detail} rule={rule} />
      <div class="halves">
        {detail !== undefined && <Facts detail={detail} rule={rule} />}
        <div>
          <Who detail={detail} />
          {canOperate.value && <Inspection redisClusterId={redisClusterId} text={text} />}
        </div>
      </div>
      <KeyEpisodes redisClusterId={redisClusterId} text={text} />
      <Events detail={detail} />
    </>
  )
}

const notUsed = { ratePerSecond: 0, strategy: null, ruleId: null, effect: null, handling: null } as const

function cardClass(detail: KeyDetail | undefined): string {
  // What was true when the hub was heard last is no verdict now.
  if (detail === undefined || link.value === 'lost') return 'unknown'
  return { handled: 'safe', observed: 'observed', unhandled: 'unsafe', none: 'unknown' }[detail.handling ?? 'none']
}

function Figures({ detail }: { readonly detail: KeyDetail }) {
  const { effect } = detail
  return (
    <dl class="figures">
      <Figure name={t('accesses')} value={rate(detail.ratePerSecond)} />
      <Figure name={t('writes')} value={rate(detail.writesPerSecond)} />
      <Figure name={t('bytes')} value={`${bytes(detail.bytesPerSecond)}/s`} />
      <Figure name={t('share of all')} value={percent(detail.share)} />
      {effect !== null && (
        <>
          {/* Every access counts, also one from memory: without a strategy all of them would reach Redis. */}
          <Figure name={t('Redis would see')} value={rate(Math.max(detail.ratePerSecond, effect.redisPerSecondNow))} />
          <Figure name={t('Redis sees')} value={rate(effect.redisPerSecondNow)} />
          <Figure name={t('from memory')} value={percent(effect.localHitRate)} />
        </>
      )}
      {detail.node !== undefined && <NodeFigures redisClusterId={detail.redisClusterId} node={detail.node} />}
    </dl>
  )
}

/** The rate against the thresholds: the last minute from the key itself, longer periods from the history. */
function RateChart(props: KeyProps & { readonly detail: KeyDetail | undefined; readonly rule: Rule | undefined }) {
  const { redisClusterId, text, detail, rule } = props
  const now = overview.value?.hubTime ?? Date.now()
  const period = periodOf(now, '1m')
  const isLive = period === undefined
  const search = new URLSearchParams({ by: 'key', cluster: redisClusterId, key: text, marks: '60' })
  const path = isLive ? '' : `/v1/history?${search}&from=${period.from}&to=${period.to}`
  const { value: past, error } = useLoaded<HistoryView>(path, 5000, periodName('1m'))
  const row = past?.rows.find(({ name }) => name === text)
  const live = detail?.sparkline ?? []
  const second = Math.floor(now / 1000) * 1000
  const times = isLive
    ? live.map((_, index) => second - (live.length - index) * 1000)
    : Array.from({ length: past?.points ?? 0 }, (_, index) => past!.from + index * past!.resolutionMs)
  const values = isLive ? live : (row?.series ?? times.map(() => 0))
  const saved = isLive ? undefined : row?.savedSeries
  const peak = values.length === 0 ? 0 : Math.max(...values)
  return (
    <section aria-label={t('Rate')}>
      <div class="card-head">
        <h2>{t('Accesses per second against the thresholds')}</h2>
        <RangeChoice live="1m" />
      </div>
      {error !== undefined && <p class="problem">{error}</p>}
      <TimeChart
        label={t('Accesses per second')}
        summary={t('now {now}, peak {peak}', { now: rate(values.at(-1) ?? 0), peak: rate(peak) })}
        times={times}
        series={[
          { label: t('accesses'), colour: '--redis', values },
          ...(saved === undefined ? [] : [{ label: t('kept from Redis'), colour: '--local', values: saved }]),
        ]}
        levels={thresholdsOf(rule)}
        marks={marksOf((isLive ? detail?.events : past?.events) ?? [])}
        height={190}
        onZoom={zoomTo}
      />
    </section>
  )
}

/** The load of the key's node: as it is, and as it would be without any strategy. */
function NodeFigures({ redisClusterId, node }: { readonly redisClusterId: string; readonly node: string }) {
  const loads = useLoaded<AutopilotView>('/v1/autopilot', 5000)
  const { value } = useLoaded<NodeRows>(
    `/v1/history?by=node&cluster=${encodeURIComponent(redisClusterId)}&limit=50`,
    5000,
  )
  const ofCluster = loads.value?.nodes.filter((one) => one.redisClusterId === redisClusterId) ?? []
  const load = ofCluster.find((one) => one.node === node) ?? (ofCluster.length === 1 ? ofCluster[0] : undefined)
  const asked = value?.rows.find(({ name }) => name === node)?.series.at(-2)
  return (
    <>
      {load !== undefined && <Figure name={t('its node serves')} value={rate(load.operationsPerSecond)} />}
      {(load !== undefined || asked !== undefined) && (
        <Figure
          name={t('its node without strategies')}
          value={rate(Math.max(load?.demandPerSecond ?? 0, load === undefined ? (asked ?? 0) : 0))}
        />
      )}
    </>
  )
}

type NodeRows = Pick<HistoryView, 'rows'>

function Facts({ detail, rule }: { readonly detail: KeyDetail; readonly rule: Rule | undefined }) {
  const staleness = useLoaded<{ rules: RuleStalenessView[] }>('/v1/staleness', 5000)
  const seen = staleness.value?.rules.find(({ ruleId }) => ruleId === detail.ruleId)
  return (
    <section aria-label={t('Facts')}>
      <h2>{t('Why, and what is done')}</h2>
      <dl class="facts">
        <dt>{t('Rate')}</dt>
        <dd>
          {thresholdText(detail.ratePerSecond, rule)}
          {detail.errorPerSecond > 0 && ` (± ${rate(detail.errorPerSecond)})`}
        </dd>
        <dt>{t('Why')}</dt>
        <dd>{detail.reason || t('No rule matches this key.')}</dd>
        <dt>{t('Rule')}</dt>
        <dd>
          {detail.ruleId === null ? (
            '–'
          ) : (
            <a href={`#/rules?edit=${encodeURIComponent(detail.ruleId)}`}>{detail.ruleId}</a>
          )}
        </dd>
        <dt>{t('Commands')}</dt>
        <dd>
          {t('{reads} read, {writes} write; a process that is asked below counts each command.', {
            reads: rate(Math.max(0, detail.ratePerSecond - detail.writesPerSecond)),
            writes: rate(detail.writesPerSecond),
          })}
        </dd>
        <dt>{t('Strategy')}</dt>
        <dd>{strategyText(detail.strategy)}</dd>
        <dt>{t('Effect')}</dt>
        <dd>{handlingText(detail)}</dd>
        <dt>{t('Measured staleness, over all keys of the rule')}</dt>
        <dd>
          {seen === undefined
            ? t('No value has been compared yet.')
            : t('p50 {p50}, p99 {p99}, worst {max} in {n} comparisons', {
                p50: milliseconds(seen.p50Ms),
                p99: milliseconds(seen.p99Ms),
                max: milliseconds(seen.maxMs),
                n: count(seen.observations),
              })}
        </dd>
        <dt>{t('Where')}</dt>
        <dd>
          {t('cluster {cluster}, slot {slot}', { cluster: detail.redisClusterId, slot: detail.slot })}
          {detail.node !== undefined && detail.node !== '' && `, ${t('node {node}', { node: detail.node })}`}
        </dd>
      </dl>
    </section>
  )
}

function Who({ detail }: { readonly detail: KeyDetail | undefined }) {
  return (
    <section aria-label={t('Services')}>
      <h2>{t('Who uses it')}</h2>
      <RecordTable
        label={t('Who uses it')}
        rows={detail?.topHosts}
        id={({ serviceId, hostId }) => `${serviceId} ${hostId}`}
        empty={t('Nobody in the last minute.')}
        columns={[
          { title: t('Service'), cell: ({ serviceId }) => serviceId },
          { title: t('Host'), cell: ({ hostId }) => hostId },
          { title: t('Rate'), cell: ({ ratePerSecond }) => rate(ratePerSecond), isNumber: true },
        ]}
      />
    </section>
  )
}

function KeyEpisodes({ redisClusterId, text }: KeyProps) {
  const search = new URLSearchParams({ cluster: redisClusterId, key: text, limit: '20' })
  const { value, error } = useLoaded<EpisodesView>(`/v1/history/events?${search}`, 5000)
  return (
    <section aria-label={t('From crossing to served')}>
      <h2>{t('From crossing to served, in the last day')}</h2>
      <Episodes view={value} error={error} isOfOneKey />
    </section>
  )
}

function Events({ detail }: { readonly detail: KeyDetail | undefined }) {
  return (
    <section aria-label={t('Events')}>
      <h2>{t('What happened')}</h2>
      <RecordTable
        label={t('What happened')}
        rows={detail?.events.filter(({ kind }) => kind !== 'extended').slice(0, 20)}
        id={({ at, kind, text }) => `${at} ${kind} ${text}`}
        empty={t('Nothing yet.')}
        columns={[
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          { title: t('Event'), cell: ({ kind }) => <span class={`state ${kind}`}>{t(kind)}</span>, isTight: true },
          { title: t('Why'), cell: (event) => event.text },
        ]}
      />
    </section>
  )
}

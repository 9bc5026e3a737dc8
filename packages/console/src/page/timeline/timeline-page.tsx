import { type AuditEntry, type EpisodesView, keyText } from '@firebreak/core'
import { type ChartMark, TimeChart } from '../chart/time-chart.tsx'
import { useLoaded } from '../data/loaded.ts'
import { count, dateTime } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { marksOf } from '../overview/traffic.tsx'
import { route, setQuery } from '../shell/route.ts'
import { Paging, pageIn } from '../table/paging.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Episodes } from './episodes.tsx'
import { endingNow, hubNow, periodName, periodOf, RangeChoice, zoomTo } from './range.tsx'

const episodesOfPage = 25
const eventsOfPage = 50
const points = 240

const filters = ['key', 'rule', 'service', 'who'] as const
const titles = { key: 'Key', rule: 'Rule', service: 'Service', who: 'Person' } as const

/** What did Firebreak and people do, and when? */
export function TimelinePage() {
  const { query } = route.value
  const period = periodOf(hubNow(), '1h') ?? endingNow(hubNow(), '1h')
  const [page, eventsPage] = [pageIn(query['page']), pageIn(query['events'])]
  const wanted = new URLSearchParams({
    limit: String(episodesOfPage),
    page: String(page + 1),
    events: String(eventsOfPage),
    eventsPage: String(eventsPage + 1),
    points: String(points),
  })
  for (const name of filters) {
    const value = query[name]
    if (value !== undefined && value !== '') wanted.set(name, name === 'key' ? keyText(value) : value)
  }
  const times = `from=${period.from}&to=${period.to}`
  const { value, error } = useLoaded<EpisodesView>(
    `/v1/history/events?${times}&${wanted}`,
    3000,
    `${wanted} ${periodName('1h')}`,
  )
  return (
    <>
      <section aria-label={t('Filter')}>
        <div class="card-head">
          <h1>{t('Timeline')}</h1>
          <RangeChoice live="1h" />
        </div>
        <div class="fields">
          {filters.map((name) => (
            <label key={name}>
              {t(titles[name])}
              <input
                type="search"
                name={name}
                value={query[name] ?? ''}
                onChange={(event) => setQuery({ [name]: event.currentTarget.value, page: '', events: '' })}
              />
            </label>
          ))}
        </div>
        {value !== undefined && <HotKeys view={value} />}
      </section>
      <section aria-label={t('Episodes')}>
        <h2>{t('From detected to cooled')}</h2>
        <Episodes view={value} error={error} />
        {value !== undefined && value.total > 0 && (
          <Paging
            name="page"
            page={page}
            size={episodesOfPage}
            total={value.total}
            alone={t('{n} times', { n: count(value.total) })}
          />
        )}
      </section>
      <People changes={value?.changes} error={error} />
      <section aria-label={t('Events')}>
        <h2>{t('Every event')}</h2>
        <RecordTable
          label={t('Events')}
          rows={value?.events}
          error={error}
          id={({ at, kind, redisClusterId, key, text }) => `${at} ${kind} ${redisClusterId} ${key} ${text}`}
          empty={t('Nothing happened in this period.')}
          columns={[
            { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
            { title: t('Event'), cell: ({ kind }) => <span class={`state ${kind}`}>{t(kind)}</span>, isTight: true },
            {
              title: t('Key'),
              cell: ({ redisClusterId, key }) => key !== '' && <KeyLink redisClusterId={redisClusterId} text={key} />,
            },
            { title: t('Rule'), cell: ({ ruleId }) => ruleId, isMinor: true },
            { title: t('Why'), cell: ({ text }) => text, isMinor: true },
          ]}
        />
        {value?.eventTotal !== undefined && value.eventTotal > 0 && (
          <Paging
            name="events"
            page={eventsPage}
            size={eventsOfPage}
            total={value.eventTotal}
            alone={t('{n} events', { n: count(value.eventTotal) })}
          />
        )}
      </section>
    </>
  )
}

/** How many keys were hot over the period, with what people changed; drawn over, it zooms. */
function HotKeys({ view }: { readonly view: EpisodesView }) {
  const { hotKeys, resolutionMs, from, changes, events = [], leftOut = 0, eventsFrom } = view
  if (hotKeys === undefined || resolutionMs === undefined) return null
  const marks: ChartMark[] = changes.map(({ at, who, what }) => ({ at, colour: '--local', text: `${who}: ${what}` }))
  const alarms = marksOf(events.filter(({ kind }) => kind === 'alarm' || kind === 'rollback'))
  const most = Math.max(0, ...hotKeys)
  return (
    <>
      <TimeChart
        label={t('Hot keys over time')}
        summary={t('{now} hot at the end, {peak} at most', { now: count(hotKeys.at(-1) ?? 0), peak: count(most) })}
        times={hotKeys.map((_, index) => from + index * resolutionMs)}
        series={[{ label: t('hot keys'), colour: '--redis', values: hotKeys }]}
        marks={[...marks, ...alarms]}
        unit=""
        height={130}
        onZoom={zoomTo}
      />
      {leftOut > 0 && (
        <p class="problem">{t('{n} more times are unknown: their decisions were not kept.', { n: count(leftOut) })}</p>
      )}
      {eventsFrom != null && eventsFrom > from && (
        <p class="muted">{t('Decisions are kept from {time} on.', { time: dateTime(eventsFrom) })}</p>
      )}
    </>
  )
}

/** What people did meanwhile; the audit has before and after. */
function People(props: { readonly changes: readonly AuditEntry[] | undefined; readonly error: string | undefined }) {
  return (
    <section aria-label={t('People')}>
      <div class="card-head">
        <h2>{t('What people did')}</h2>
        <a href="#/audit">{t('before and after')}</a>
      </div>
      <RecordTable
        label={t('People')}
        rows={props.changes}
        error={props.error}
        id={({ at, who, what }) => `${at} ${who} ${what}`}
        empty={t('Nobody changed anything in this period.')}
        columns={[
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          { title: t('Person'), cell: ({ who }) => who, isTight: true },
          { title: t('What'), cell: ({ what }) => what },
        ]}
      />
    </section>
  )
}

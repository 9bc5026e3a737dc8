import { type EpisodesView, type HistoryView, keyText } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Episodes } from './episodes.tsx'
import { endingNow, hubNow, periodName, periodOf, RangeChoice } from './range.tsx'

/** Events that are read, most of which may say that a key stays hot, and those that are shown. */
const readEvents = 1000
const shownEvents = 50

const filters = ['key', 'rule', 'service', 'who'] as const
const titles = { key: 'Key', rule: 'Rule', service: 'Service', who: 'Person' } as const

/** What did Firebreak do, and when? */
export function TimelinePage() {
  const { query } = route.value
  const period = periodOf(hubNow(), '1h') ?? endingNow(hubNow(), '1h')
  const wanted = new URLSearchParams({ limit: '25' })
  for (const name of filters) {
    const value = query[name]
    if (value !== undefined && value !== '') wanted.set(name, name === 'key' ? keyText(value) : value)
  }
  const isAll = query['all'] === '1'
  const subject = `${wanted} ${periodName('1h')}`
  const times = `from=${period.from}&to=${period.to}`
  const episodes = useLoaded<EpisodesView>(`/v1/history/events?${times}&${wanted}`, 3000, subject)
  wanted.delete('who')
  wanted.set('limit', String(readEvents))
  const events = useLoaded<HistoryView>(`/v1/history?${times}&${wanted}`, 3000, subject)
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
                onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
              />
            </label>
          ))}
        </div>
      </section>
      <section aria-label={t('Episodes')}>
        <h2>{t('From detected to cooled')}</h2>
        <Episodes view={episodes.value} error={episodes.error} />
      </section>
      <section aria-label={t('Events')}>
        <div class="card-head">
          <h2>{t('Every event')}</h2>
          <label class="check">
            <input
              type="checkbox"
              name="all"
              checked={isAll}
              onChange={(event) => setQuery({ all: event.currentTarget.checked ? '1' : '' })}
            />
            {t('with keys that stay hot')}
          </label>
        </div>
        <RecordTable
          label={t('Events')}
          rows={events.value?.events.filter(({ kind }) => isAll || kind !== 'extended').slice(0, shownEvents)}
          error={events.error}
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
      </section>
    </>
  )
}

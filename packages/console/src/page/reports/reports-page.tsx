import type { HeatReport, ReportGroup } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { bytes, count, dateTime, duration, percent, rate } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'
import { Figure } from '../overview/verdict.tsx'
import { route, setQuery } from '../shell/route.ts'
import { download } from '../table/export.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

/** What was hot, and what did it save? By day or by week, to export and to print. */
export function ReportsPage() {
  const { on } = route.value.query
  const by = route.value.query['by'] === 'week' ? 'week' : 'day'
  const path = `/v1/reports?by=${by}${on === undefined ? '' : `&on=${encodeURIComponent(on)}`}`
  const { value: report, error } = useLoaded<HeatReport>(path, 30_000)
  return (
    <div class="report">
      <section aria-label={t('Report')}>
        <div class="card-head">
          <h1>{report === undefined ? t('Reports') : t('Report {name}', { name: report.name })}</h1>
          <span class="tools no-print">
            <fieldset class="choices" aria-label={t('Period')}>
              {(['day', 'week'] as const).map((one) => (
                <button key={one} type="button" aria-pressed={by === one} onClick={() => setQuery({ by: one, on: '' })}>
                  {t(one)}
                </button>
              ))}
            </fieldset>
            <button type="button" disabled={report === undefined} onClick={() => setQuery({ on: report!.previous })}>
              {t('Previous')}
            </button>
            <button type="button" disabled={report?.next == null} onClick={() => setQuery({ on: report!.next! })}>
              {t('Following')}
            </button>
            <a class="button" href={`${path}&format=csv`} download={`firebreak-${report?.name ?? by}.csv`}>
              CSV
            </a>
            <button
              type="button"
              disabled={report === undefined}
              onClick={() =>
                download(`firebreak-${report!.name}.json`, 'application/json', JSON.stringify(report, null, 2))
              }
            >
              JSON
            </button>
            <button type="button" onClick={() => print()}>
              {t('Print')}
            </button>
          </span>
        </div>
        {error !== undefined && <p class="problem">{error}</p>}
        {report !== undefined && <Totals report={report} />}
      </section>
      {report !== undefined && (
        <>
          <ReportKeys report={report} />
          <div class="halves">
            <Groups title={t('By service')} rows={report.services} />
            <Groups title={t('By rule')} rows={report.rules} />
          </div>
          <Recurring report={report} />
        </>
      )}
    </div>
  )
}

function Totals({ report }: { readonly report: HeatReport }) {
  const { totals, coverage, from, to, leftOut = 0, eventsFrom } = report
  const isPartial = coverage < 0.9 && to < Date.now()
  return (
    <>
      <p class={isPartial ? 'problem' : 'muted'}>
        {t('{from} to {to} UTC; {share} of it was recorded', {
          from: utcTime(from),
          to: utcTime(to),
          share: percent(coverage),
        })}
      </p>
      {leftOut > 0 && (
        <p class="problem">{t('{n} more times are unknown: their decisions were not kept.', { n: count(leftOut) })}</p>
      )}
      {eventsFrom != null && eventsFrom > from && coverage > 0 && (
        <p class="muted">{t('Decisions are kept from {time} on.', { time: dateTime(eventsFrom) })}</p>
      )}
      <dl class="figures">
        <Figure name={t('keys hot')} value={count(totals.keys)} />
        <Figure name={t('episodes')} value={count(totals.episodes)} />
        <Figure name={t('accesses')} value={count(totals.accesses)} />
        <Figure name={t('kept from Redis')} value={count(totals.saved)} />
        <Figure name={t('of all reads')} value={percent(totals.savedShare)} />
        <Figure name={t('bytes')} value={bytes(totals.bytes)} />
        <Figure name={t('false alarms')} value={count(totals.falseAlarms)} />
      </dl>
    </>
  )
}

/** Days and weeks of a report are those of UTC. */
function utcTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}

function ReportKeys({ report }: { readonly report: HeatReport }) {
  return (
    <section aria-label={t('Hot keys')}>
      <h2>{t('Hot keys')}</h2>
      <RecordTable
        label={t('Hot keys')}
        rows={report.keys}
        id={({ redisClusterId, key }) => `${redisClusterId} ${key}`}
        empty={report.coverage === 0 ? t('Nothing was recorded in this period.') : t('No key was hot in this period.')}
        columns={[
          {
            title: t('Key'),
            cell: ({ redisClusterId, key }) => <KeyLink redisClusterId={redisClusterId} text={key} />,
          },
          { title: t('Times'), cell: ({ episodes }) => count(episodes), isNumber: true },
          { title: t('Hot for'), cell: ({ hotMs }) => duration(hotMs), isNumber: true },
          { title: t('Peak'), cell: ({ peakPerSecond }) => rate(peakPerSecond), isNumber: true },
          { title: t('Peak at'), cell: ({ peakAt }) => dateTime(peakAt), isMinor: true },
          { title: t('Share'), cell: ({ share }) => percent(share), isNumber: true, isMinor: true },
          { title: t('Kept from Redis'), cell: ({ saved }) => count(saved), isNumber: true },
          { title: t('False alarms'), cell: ({ falseAlarms }) => count(falseAlarms), isNumber: true, isMinor: true },
          { title: t('Services'), cell: ({ services }) => services.join(', '), isMinor: true },
          { title: t('Rules'), cell: ({ ruleIds }) => ruleIds.join(', '), isMinor: true },
        ]}
      />
    </section>
  )
}

function Groups({ title, rows }: { readonly title: string; readonly rows: readonly ReportGroup[] }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <RecordTable
        label={title}
        rows={rows}
        id={({ name }) => name}
        empty={t('None.')}
        columns={[
          { title: t('Name'), cell: ({ name }) => name },
          { title: t('Keys'), cell: ({ keys }) => count(keys), isNumber: true },
          { title: t('Times'), cell: ({ episodes }) => count(episodes), isNumber: true },
          { title: t('Hot for'), cell: ({ hotMs }) => duration(hotMs), isNumber: true },
          { title: t('Kept from Redis'), cell: ({ saved }) => count(saved), isNumber: true },
        ]}
      />
    </section>
  )
}

function Recurring({ report }: { readonly report: HeatReport }) {
  return (
    <section aria-label={t('Recurring')}>
      <h2>{t('Recurring keys')}</h2>
      <RecordTable
        label={t('Recurring')}
        rows={report.recurring}
        id={({ redisClusterId, key }) => `${redisClusterId} ${key}`}
        empty={t('No key was hot on two days of the last seven.')}
        columns={[
          {
            title: t('Key'),
            cell: ({ redisClusterId, key }) => <KeyLink redisClusterId={redisClusterId} text={key} />,
          },
          { title: t('Days'), cell: ({ days }) => days.join(', ') },
        ]}
      />
    </section>
  )
}

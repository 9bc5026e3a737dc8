import type { HubView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { ago, bytes, count, percent, rate } from '../format/format.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface HubsProps {
  readonly hubs: readonly HubView[] | undefined
  readonly error: string | undefined
}

/** This hub, and the others on the same store. */
export function Hubs({ hubs, error }: HubsProps) {
  const now = overview.value?.hubTime ?? Date.now()
  const versions = new Set(hubs?.map(({ version }) => version))
  return (
    <section aria-label={t('Hubs')}>
      <h2>{(hubs?.length ?? 1) > 1 ? t('Hubs that share the store') : t('Hub')}</h2>
      <RecordTable
        label={t('Hubs')}
        rows={hubs}
        error={error}
        id={({ hubId, isThis }) => `${isThis} ${hubId}`}
        empty=""
        columns={[
          {
            title: t('hub'),
            cell: ({ hubId, isThis }) => (
              <>
                <code>{hubId}</code>
                {isThis && <small>{t('this one')}</small>}
              </>
            ),
          },
          {
            title: t('State'),
            cell: ({ isAlone, version }) => (
              <>
                <span class={`state ${isAlone ? 'unhandled' : 'handled'}`}>
                  {isAlone ? t('cut off from the store') : t('healthy')}
                </span>
                {versions.size > 1 && (
                  <small>{t('versions differ: {version}', { version: version ?? t('unknown') })}</small>
                )}
              </>
            ),
          },
          { title: t('Version'), cell: ({ version }) => version ?? t('unknown'), isMinor: true },
          { title: t('Processes'), cell: ({ processes }) => count(processes), isNumber: true },
          {
            title: t('Reports'),
            cell: ({ reportsPerSecond }) => (reportsPerSecond === undefined ? '–' : rate(reportsPerSecond)),
            isNumber: true,
          },
          {
            title: t('Not counted'),
            cell: ({ refusedReports }) => (refusedReports === undefined ? '–' : count(refusedReports)),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Busy'),
            cell: ({ busy }) => (busy === undefined ? '–' : percent(busy)),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Memory'),
            cell: ({ memoryBytes }) => (memoryBytes === undefined ? '–' : bytes(memoryBytes)),
            isNumber: true,
          },
          {
            title: t('Running for'),
            cell: ({ startedAt }) => (startedAt === undefined ? '–' : ago(startedAt, now)),
            isNumber: true,
            isMinor: true,
          },
        ]}
      />
    </section>
  )
}

import type { TransportView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { count, milliseconds } from '../format/format.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

/** The names of products are the same in every language. */
const names = { websocket: 'WebSocket', http: 'HTTP', nats: 'NATS', kafka: 'Kafka' } as const

export function transportName(kind: TransportView['kind']): string {
  return kind === 'centre' ? t('config centre') : names[kind]
}

/** How reports come in and tables go out, and which way is broken. */
export function Transports() {
  const { value, error } = useLoaded<{ transports: TransportView[] }>('/v1/transports')
  return (
    <section aria-label={t('Transports')}>
      <h2>{t('How reports come in and tables go out')}</h2>
      <RecordTable
        label={t('Transports')}
        rows={value?.transports}
        error={error}
        id={({ kind }) => kind}
        empty=""
        columns={[
          {
            title: t('Transport'),
            cell: ({ kind, address }) => (
              <>
                {transportName(kind)}
                {address !== '' && <small>{address}</small>}
              </>
            ),
          },
          { title: t('Carries'), cell: ({ carries }) => t(carriedNames[carries]) },
          {
            title: t('State'),
            cell: ({ isLive, detail }) => (
              <>
                <span class={`state ${isLive ? 'handled' : 'unhandled'}`}>{isLive ? t('healthy') : t('failed')}</span>
                {detail !== '' && <small>{detail}</small>}
              </>
            ),
          },
          {
            title: t('Used by'),
            cell: ({ kind, users }) =>
              kind === 'centre'
                ? t('tables of {n} services', { n: count(users) })
                : t('{n} sensors', { n: count(users) }),
          },
          { title: t('Reports'), cell: ({ reports }) => (reports === null ? '–' : count(reports)), isNumber: true },
          {
            title: t('Oldest counts'),
            cell: ({ lagMs }) => (lagMs === null ? '–' : milliseconds(lagMs)),
            isNumber: true,
          },
        ]}
      />
    </section>
  )
}

const carriedNames = { reports: 'reports', tables: 'tables', both: 'reports and tables' } as const

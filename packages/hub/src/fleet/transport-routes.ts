import type { ReportTransport, TransportView } from '@firebreak/core'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubCore } from '../hub-core.ts'

/** A stream that the hub reads reports from. */
export interface NamedStream {
  readonly kind: Extract<ReportTransport, 'nats' | 'kafka'>
  /** Without secrets. */
  readonly address: string
}

export interface TransportRoutesOptions {
  readonly core: HubCore
  readonly streams: readonly NamedStream[]
  /** The centre to which tables are published; undefined where they are not. */
  readonly centre: string | undefined
}

/** The ways on which reports come in and tables go out, and which of them is broken. */
export function transportRoutes(options: TransportRoutesOptions): ApiRoute[] {
  return [
    {
      method: 'GET',
      path: '/v1/transports',
      summary: 'The ways on which reports come in and tables go out',
      role: 'viewer',
      answer: '{ transports: TransportView[] }',
      handle: () => ({ transports: transportViews(options) }),
    },
  ]
}

function transportViews({ core, streams, centre }: TransportRoutesOptions): TransportView[] {
  const { collector, fleet, alarms, delivery } = core
  const hosts = fleet.hosts.views(core.now(), delivery.isPublished)
  const problemOf = (id: string) => alarms.list().find((alarm) => alarm.id === id)?.cause ?? ''
  const reports = (kind: ReportTransport, carries: 'reports' | 'both', address: string, detail = ''): TransportView => {
    const users = hosts.filter(({ reportsBy }) => reportsBy === kind)
    return {
      ...{ kind, carries, address, detail },
      isLive: detail === '',
      users: users.length,
      reports: collector.reportCountBy(kind),
      lagMs: users.length === 0 ? null : Math.max(...users.map(({ reportLagMs }) => reportLagMs ?? 0)),
    }
  }
  const publishing = problemOf('publish')
  return [
    reports('websocket', 'both', ''),
    reports('http', 'both', ''),
    // Their alarms bear their kind.
    ...streams.map(({ kind, address }) => reports(kind, 'reports', address, problemOf(kind))),
    ...(centre === undefined
      ? []
      : [
          {
            kind: 'centre' as const,
            carries: 'tables' as const,
            address: centre,
            isLive: publishing === '',
            detail: publishing,
            users: [...delivery.services()].length,
            reports: null,
            lagMs: null,
          },
        ]),
  ]
}

import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OtlpMetric, OtlpRequest } from '@firebreak/core/metrics'

/** An answer of a collector. */
export interface CollectorAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A request as it came in. */
export interface CollectedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: OtlpRequest
}

/** An OpenTelemetry collector as far as a client can see it: takes OTLP's JSON over HTTP and keeps it. */
export interface OtlpCollector {
  readonly port: number
  readonly url: string
  readonly requests: CollectedRequest[]
  /** Given out one after the other; 200 with `{}` after them. 'none': never answered. */
  readonly answers: (CollectorAnswer | 'none')[]
  /** The metrics of the newest request, by name. */
  metrics(): Map<string, OtlpMetric>
  /** The resource's attributes of the newest request. */
  resource(): Record<string, string>
  stop(): Promise<void>
}

/** Starts a collector; on a given port where one has to come back. */
export async function startOtlpCollector({ port = 0 } = {}): Promise<OtlpCollector> {
  const requests: CollectedRequest[] = []
  const answers: (CollectorAnswer | 'none')[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      requests.push({ method, path: url, headers, body: JSON.parse(text) as OtlpRequest })
      const answer = answers.shift() ?? { status: 200, body: '{}' }
      if (answer === 'none') return
      response
        .writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
        .end(answer.body ?? '{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const bound = (server.address() as AddressInfo).port
  const newest = () => requests.at(-1)!.body.resourceMetrics[0]!
  return {
    port: bound,
    url: `http://127.0.0.1:${bound}`,
    requests,
    answers,
    metrics: () => new Map(newest().scopeMetrics[0]!.metrics.map((metric) => [metric.name, metric])),
    resource: () => Object.fromEntries(newest().resource.attributes.map(({ key, value }) => [key, value.stringValue])),
    async stop() {
      const stopped = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await stopped
    },
  }
}

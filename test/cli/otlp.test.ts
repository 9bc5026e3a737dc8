import {
  type GuardedChild,
  type OtlpCollector,
  type RedisServer,
  startOtlpCollector,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
let server: RedisServer
let collector: OtlpCollector
const children: GuardedChild[] = []

beforeAll(async () => {
  server = await startRedis()
  collector = await startOtlpCollector()
})
afterEach(() => Promise.all(children.splice(0).map((child) => child.stop())))
afterAll(async () => {
  await collector.stop()
  await server.stop()
})

function run(args: readonly string[], env: Record<string, string>): GuardedChild {
  const child = startSource(main, args, { env: { ...process.env, ...env }, cwd: temporaryFolder('otlp') })
  children.push(child)
  return child
}

/** What came so far, by the name of the service. */
function services(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { body } of collector.requests) {
    const { attributes } = body.resourceMetrics[0]!.resource
    const name = attributes.find(({ key }) => key === 'service.name')!.value.stringValue
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

test("firebreak up pushes hub and proxy to the collector of OpenTelemetry's variables", async () => {
  const child = run(['up', '--redis', server.url, '--port', '0', '--proxy-port', '0', '--data', 'data'], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=k%3D1',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    OTEL_METRIC_EXPORT_INTERVAL: '200',
  })
  await child.printed(/Firebreak is up/)
  await waitFor(() => Object.keys(services()).length === 2)
  expect(Object.keys(services()).sort()).toEqual(['firebreak-hub', 'firebreak-proxy'])
  for (const { headers, path } of collector.requests) {
    expect([headers['api-key'], path]).toEqual(['k=1', '/v1/metrics'])
  }
  expect(collector.resource()['deployment.environment']).toBe('test')
  await child.stop()
  expect(child.output()).not.toContain('OpenTelemetry')
})

test('OTEL_SDK_DISABLED leaves a hub silent, and what is not spoken is told in a line', async () => {
  collector.requests.length = 0
  const disabled = run(['hub', '--port', '0', '--otlp-endpoint', collector.url, '--otlp-service-name', 'disabled'], {
    OTEL_SDK_DISABLED: 'true',
  })
  const grpc = run(['hub', '--port', '0', '--otlp-service-name', 'grpc'], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
  })
  const plain = run(['hub', '--port', '0', '--otlp-endpoint', collector.url, '--otlp-service-name', 'plain'], {})
  for (const child of [disabled, grpc, plain]) await child.printed(/hub http:\S+/)
  // The last push comes when a hub ends: of these only from the one that pushes.
  await Promise.all([disabled, grpc, plain].map((child) => child.stop()))
  expect(Object.keys(services())).toEqual(['plain'])
  expect(grpc.output()).toContain('OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; metrics are pushed as http/json only')
})

import { expect, test } from 'vitest'
import { resolveOtlpOptions } from './otlp-options.ts'
import { readOtlpVariables } from './otlp-variables.ts'

test('every relevant variable of OpenTelemetry is read, and encoded values are decoded', () => {
  const { options, warnings } = readOtlpVariables({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20b, x=1=2',
    OTEL_METRIC_EXPORT_INTERVAL: '5000',
    OTEL_EXPORTER_OTLP_TIMEOUT: '700',
    OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=prod,team=caf%C3%A9',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_TRACES_EXPORTER: 'console,otlp',
  })
  expect(warnings).toEqual([])
  expect(options).toEqual({
    endpoint: 'http://collector:4318/v1/metrics',
    headers: { 'api-key': 'a b', x: '1=2' },
    intervalMs: 5000,
    timeoutMs: 700,
    serviceName: 'shop',
    attributes: { 'deployment.environment': 'prod', team: 'café' },
    traces: true,
  })
  expect(resolveOtlpOptions(options)?.tracesEndpoint).toBe('http://collector:4318/v1/traces')
})

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }, 'http://c:4318/v1/metrics'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/otlp/' }, 'https://c/otlp/v1/metrics'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c:4318' }, 'http://c:4318/'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://c/push?k=1' }, 'https://c/push?k=1'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://m/x', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://all' }, 'http://m/x'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: '', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://all' }, 'http://all/v1/metrics'],
])('%j pushes to %s', (env, endpoint) => {
  const { options, warnings } = readOtlpVariables(env)
  expect(warnings).toEqual([])
  expect(resolveOtlpOptions(options)?.endpoint).toBe(endpoint)
})

test('variables of the signal take precedence over those for all signals', () => {
  const { options } = readOtlpVariables({
    OTEL_EXPORTER_OTLP_HEADERS: 'a=all',
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'a=metrics',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: '2',
  })
  expect(options).toEqual({ headers: { a: 'metrics' }, timeoutMs: 2 })
})

test.each([
  [{ OTEL_METRIC_EXPORT_INTERVAL: 'soon' }, 'OTEL_METRIC_EXPORT_INTERVAL is "soon"'],
  [{ OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, 'OTEL_EXPORTER_OTLP_TIMEOUT is "0"'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS is not as'],
  [{ OTEL_RESOURCE_ATTRIBUTES: 'a=%zz' }, 'OTEL_RESOURCE_ATTRIBUTES is not as'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }, 'OTEL_EXPORTER_OTLP_ENDPOINT must be'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:secret@c' }, 'OTEL_EXPORTER_OTLP_ENDPOINT must be'],
  [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317' },
    'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; metrics are pushed as http/json only',
  ],
])('%j is ignored with a warning that does not contain the secret', (env, warning) => {
  const { options, warnings } = readOtlpVariables(env)
  expect(options).toEqual({})
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain(warning)
  expect(warnings[0]).not.toContain('secret')
})

test.each([
  [{ OTEL_SDK_DISABLED: 'TRUE' }, false],
  [{ OTEL_METRICS_EXPORTER: 'none' }, false],
  [{ OTEL_METRICS_EXPORTER: 'prometheus, otlp' }, true],
  [{ OTEL_SDK_DISABLED: 'false' }, true],
])('%j: something is pushed: %s', (env, isPushing) => {
  const { options } = readOtlpVariables({ ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c' })
  expect(resolveOtlpOptions(options) !== undefined).toBe(isPushing)
})

test('without an address nothing is pushed', () => {
  expect(resolveOtlpOptions(undefined)).toBeUndefined()
  expect(resolveOtlpOptions({ serviceName: 'a' })).toBeUndefined()
})

test('an address without a path gets the default path, and the service gets its name', () => {
  expect(resolveOtlpOptions({ endpoint: 'http://c:4318', serviceName: 'a', attributes: { b: 'c' } })).toEqual({
    endpoint: 'http://c:4318/v1/metrics',
    headers: {},
    intervalMs: 60_000,
    timeoutMs: 10_000,
    attributes: { b: 'c', 'service.name': 'a' },
  })
})

test.each([
  [{ endpoint: 'ftp://c' }, 'otlp.endpoint'],
  [{ endpoint: 'http://user:secret@c' }, 'otlp.endpoint'],
  [{ endpoint: 'http://c', intervalMs: 0 }, 'otlp.intervalMs'],
  [{ endpoint: 'http://c', timeoutMs: Number.NaN }, 'otlp.timeoutMs'],
  [{ endpoint: 'http://c', headers: { 'a b': 'secret' } }, 'otlp.headers.a b'],
  [{ endpoint: 'http://c', headers: { a: 'secret\nb' } }, 'otlp.headers.a'],
])('the options %j are refused by name', (options, option) => {
  const refused = expect(() => resolveOtlpOptions(options))
  refused.toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID', option }))
  refused.not.toThrow(/secret/)
})

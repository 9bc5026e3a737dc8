import { type Setting, text, wholeFrom } from './setting.ts'

/** The settings for pushing metrics to an OpenTelemetry collector, the same for all commands. */
export function otlpSettings(serviceName: string): readonly Setting[] {
  const milliseconds = wholeFrom(1, 2 ** 31 - 1)
  return [
    {
      name: 'otlpEndpoint',
      otlp: 'endpoint',
      type: text,
      placeholder: 'URL',
      default: 'none',
      summary: 'also push metrics to an OpenTelemetry collector, such as http://collector:4318',
    },
    {
      name: 'otlpHeaders',
      otlp: 'headers',
      type: { kind: 'pairs' },
      isSecret: true,
      default: 'none',
      summary: 'headers of each push, such as an API key',
    },
    {
      name: 'otlpIntervalMs',
      otlp: 'intervalMs',
      type: milliseconds,
      default: '60000',
      summary: 'how often metrics are pushed',
    },
    {
      name: 'otlpTimeoutMs',
      otlp: 'timeoutMs',
      type: milliseconds,
      default: '10000',
      summary: 'time limit for a push',
    },
    {
      name: 'otlpServiceName',
      otlp: 'serviceName',
      type: text,
      placeholder: 'NAME',
      default: serviceName,
      summary: 'service.name of the pushed metrics',
    },
    {
      name: 'otlpAttributes',
      otlp: 'attributes',
      type: { kind: 'pairs' },
      default: 'none',
      summary: 'additional resource attributes',
    },
  ]
}

import { parseArgs } from 'node:util'
import { type Command, UsageError } from '../command/command.ts'
import { runDrill } from '../drill/drill.ts'
import type { Spread } from '../drill/drill-figures.ts'
import type { DrillResult } from '../drill/drill-run.ts'

export const drill: Command = {
  flags: ['rounds', 'clients', 'threshold', 'redis', 'hub', 'json'],
  help: `Make a key hot on several real client processes, none of them over the threshold alone, and measure how long it
takes from the moment the threshold is crossed until the key is detected, delivered, and served locally by all.

Examples:
  firebreak drill
  firebreak drill --rounds 20 --clients 8
  firebreak drill --json | jq .effectiveMs

Options:
  --rounds N      how often, each with a new key (default 5)
  --clients N     client processes (default 4)
  --threshold N   accesses a second at which the key is hot (default 1000)
  --redis URL     a Redis to drill on (env REDIS_URL; default: one started for the drill)
  --hub URL       a hub to drill on, several with commas (default: one started for the drill); a rule for the prefix
                  "drill:" is put there
  --json          one JSON object
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        rounds: { type: 'string', default: '5' },
        clients: { type: 'string', default: '4' },
        threshold: { type: 'string', default: '1000' },
        redis: { type: 'string' },
        hub: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const result = await runDrill({
      rounds: wholeNumber('rounds', values.rounds),
      clients: wholeNumber('clients', values.clients),
      threshold: wholeNumber('threshold', values.threshold),
      redisUrl: values.redis ?? io.env['REDIS_URL'],
      hubUrls: values.hub?.split(','),
      signal: io.signal,
      onProgress: (text) => void io.stderr.write(`${text}\n`),
    })
    io.stdout.write(values.json ? `${JSON.stringify(result)}\n` : render(result))
    return 0
  },
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`--${name} is "${text}"; it must be a whole number of 1 or more`)
  return Number(text)
}

function render(result: DrillResult): string {
  const row = (name: string, { p50, p99, max }: Spread) =>
    `  ${name.padEnd(34)} ${[p50, p99, max].map((value) => value.toFixed(1).padStart(9)).join('')}`
  return `
${result.rounds} rounds, ${result.clients} clients, hot from ${result.threshold} accesses a second; no client alone above ${result.highestAlone}
Redis: ${result.redis}

  milliseconds                             p50      p99      max
${row('crossed → detected by the hub', result.detectedMs)}
${row('crossed → delivered to all', result.deliveredMs)}
${row('crossed → served locally by all', result.effectiveMs)}
${row('write → seen by every client', result.writeSeenMs)}
${row('the same with caching off', result.writeSeenControlMs)}

  GETs of the key at Redis: ${result.redisGetsPerSecond.before}/s before, ${result.redisGetsPerSecond.after}/s after: ${(result.redisShareAfter * 100).toFixed(2)} % of its reads
  stale reads (a lease after a newer write): ${result.staleReads}
`
}

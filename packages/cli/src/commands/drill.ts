import { parseArgs } from 'node:util'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { secretSetting } from '../connect/secret-setting.ts'
import { type DrillOptions, runDrill } from '../drill/drill.ts'
import type { Spread } from '../drill/drill-figures.ts'
import type { DrillResult } from '../drill/drill-run.ts'
import { tokenOf } from '../hub-api/hub-api.ts'
import { dataFolderOf, readRunning } from '../up/running-file.ts'

export const drill: Command = {
  flags: ['rounds', 'clients', 'threshold', 'redis', 'hub', 'json'],
  help: `Make a key hot across several real client processes, none of which exceeds the threshold alone, and measure how long it
takes from the moment the threshold is crossed until the key is detected, delivered, and served locally by all.

Examples:
  firebreak drill
  firebreak drill --rounds 20 --clients 8
  firebreak drill --json | jq .effectiveMs

Options:
  --rounds N      number of rounds, each with a new key (default 5)
  --clients N     client processes (default 4)
  --threshold N   accesses per second at which the key is hot (default 1000)
  --redis URL     the Redis to use (env REDIS_URL, or REDIS_URL_FILE for a file; default: that of the running "firebreak up", else one started for
                  the drill)
  --hub URL       the hub to use, several separated by commas (env FIREBREAK_HUB; default: that of the running "firebreak up",
                  else one started for the drill); it gets a rule for the prefix "drill:" until the drill ends
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
      ...placesOf(values, io),
      signal: io.signal,
      onProgress: (text) => void io.stderr.write(`${text}\n`),
    })
    io.stdout.write(values.json ? `${JSON.stringify(result)}\n` : render(result))
    return 0
  },
}

/** Where to drill: by flags, otherwise the environment, otherwise a `firebreak up` of this folder. */
function placesOf(
  { redis, hub }: { redis?: string | undefined; hub?: string | undefined },
  io: CommandIo,
): Pick<DrillOptions, 'redisUrl' | 'hubUrls' | 'token'> {
  const { env } = io
  const running = readRunning(dataFolderOf(env))
  const hubs = hub ?? env['FIREBREAK_HUB'] ?? running?.hubUrl
  return {
    redisUrl: secretSetting({ flag: 'redis', variable: 'REDIS_URL' }, redis, io) ?? running?.redisUrl,
    hubUrls: hubs?.split(','),
    token: tokenOf({ env }),
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`--${name} is "${text}"; it must be a whole number, 1 or more`)
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

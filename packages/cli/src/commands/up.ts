import { parseArgs } from 'node:util'
import { maskUrl } from '@firebreak/core'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { otlpOf, stderrLogger } from '../command/otlp.ts'
import { whenEnded } from '../command/when-ended.ts'
import { defaultDataFolder } from '../up/running-file.ts'
import { startUp, type Up } from '../up/up.ts'

export const up: Command = {
  flags: ['port', 'proxy-port', 'redis', 'data', 'log-level', 'otlp-endpoint'],
  help: `Start the hub with its console, a Redis where none is named, and a proxy before it.

Examples:
  firebreak up
  REDIS_URL=redis://10.0.0.5:6379 firebreak up
  firebreak up --port 7070 --data ./firebreak-data

Options:
  --redis URL       the Redis (env REDIS_URL); with none, a redis-server or valkey-server on PATH is started, else the
                    embedded Valkey
  --port N          the hub's and the console's port (env FIREBREAK_PORT; default 7070, or a free one if that is taken)
  --proxy-port N    the proxy's port (env FIREBREAK_PROXY_PORT; default 6380, or a free one if that is taken)
  --data FOLDER     where rules, history and audit are kept (env FIREBREAK_DATA; default firebreak-data)
  --log-level NAME  fatal, error, warn, info, debug (env FIREBREAK_LOG; default warn)
  --otlp-endpoint URL  push metrics of hub and proxy to an OpenTelemetry collector, as http://127.0.0.1:4318 (also its own
                    variables: OTEL_EXPORTER_OTLP_ENDPOINT and the rest; default none)
Ctrl-C ends it all.
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        redis: { type: 'string' },
        port: { type: 'string' },
        'proxy-port': { type: 'string' },
        data: { type: 'string' },
        'log-level': { type: 'string' },
        'otlp-endpoint': { type: 'string' },
      },
    })
    const running = await startUp({
      redisUrl: values.redis ?? io.env['REDIS_URL'],
      hubPort: port('port', values.port ?? io.env['FIREBREAK_PORT']),
      proxyPort: port('proxy-port', values['proxy-port'] ?? io.env['FIREBREAK_PROXY_PORT']),
      dataFolder: values.data ?? io.env['FIREBREAK_DATA'] ?? defaultDataFolder,
      logLevel: values['log-level'] ?? io.env['FIREBREAK_LOG'] ?? 'warn',
      otlp: otlpOf(values['otlp-endpoint'], io),
      logger: stderrLogger(io),
    })
    greet(running, io)
    await whenEnded(io.signal)
    io.stdout.write('\nEnding …\n')
    await running.close()
    return 0
  },
}

function port(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!Number.isInteger(number) || number < 0 || number > 65535)
    throw new UsageError(`--${flag} is "${text}"; it must be 0 to 65535`)
  return number
}

const packageName = 'firebreak'

function greet({ hub, redis, proxyUrl }: Up, io: CommandIo): void {
  io.stdout.write(`
Firebreak is up.

  Console  ${hub.url}
  Proxy    ${proxyUrl}   point any Redis client here
  Redis    ${redis.url}
           ${redis.description}

Try next:
${nextSteps(io)}

In your application (npm install firebreak ioredis):

  import { protect } from '${packageName}'
  import { Redis } from 'ioredis'

  const redis = protect(new Redis('${redis.kind === 'url' ? maskUrl(redis.url) : redis.url}'), {
    hubs: ['${hub.url}'],
    serviceId: 'shop',
  })

Ctrl-C ends it all.
`)
}

/** What to run in another terminal, by the way this one was started. */
function nextSteps({ env }: CommandIo): string {
  const isCheckout = env['npm_package_name'] === 'firebreak-workspace'
  const command = (name: string) => (isCheckout ? `npm run -s firebreak -- ${name}` : `npx firebreak ${name}`)
  const steps = [
    ...(isCheckout ? [['npm run demo', 'a flash sale for a minute: watch a key become hot, be handled and cool']] : []),
    [command('top'), 'the hottest keys, in this terminal'],
    [command('drill'), 'measure every step from hot to handled'],
  ]
  const width = Math.max(...steps.map(([words]) => words!.length))
  return steps.map(([words, what]) => `  ${words!.padEnd(width)}   ${what}`).join('\n')
}

import { maskUrl } from '@firebreak/core/resp'
import type { Command, CommandIo } from '../command/command.ts'
import { stderrLogger } from '../command/stderr-logger.ts'
import { whenEnded } from '../command/when-ended.ts'
import { CommandSettings, flagsOf, helpOf } from '../flags/command-settings.ts'
import { defaultDataFolder } from '../up/running-file.ts'
import { snippetOf } from '../up/snippet.ts'
import { startUp, type Up } from '../up/up.ts'
import { upSettings } from '../up/up-settings.ts'

export const up: Command = {
  flags: flagsOf(upSettings),
  help: `Start the hub with its console, a Redis unless you name one, and a proxy in front of it.

Examples:
  firebreak up
  REDIS_URL=redis://10.0.0.5:6379 firebreak up
  REDIS_URL=redis://10.0.0.1:7000,10.0.0.2:7000 firebreak up     (nodes of a Redis Cluster)
  firebreak up --port 7070 --data ./firebreak-data

${helpOf(upSettings)}
Ctrl-C stops everything.
`,
  async run(args, io) {
    const ended = whenEnded(io.signal)
    const settings = CommandSettings.read(upSettings, args, io)
    const { redis, port, proxyPort, data, logLevel } = settings.values as UpValues
    const running = await startUp({
      redisUrl: redis,
      hubPort: port,
      proxyPort,
      dataFolder: data ?? defaultDataFolder,
      logLevel: logLevel ?? 'warn',
      otlp: settings.otlp,
      logger: stderrLogger(io),
    })
    greet(running, io)
    await ended
    io.stdout.write('\nEnding …\n')
    await running.close()
    return 0
  },
}

interface UpValues {
  readonly redis?: string
  readonly port?: number
  readonly proxyPort?: number
  readonly data?: string
  readonly logLevel?: string
}

function greet({ hub, redis, proxyUrl, takenPorts }: Up, io: CommandIo): void {
  io.stdout.write(`
Firebreak is up.

  Console  ${hub.url}
  Proxy    ${proxyUrl}   point any Redis client here
  Redis    ${maskUrl(redis.url)}
           ${redis.description}
${others(takenPorts)}
Try next:
${nextSteps(io)}

In your application (npm install firebreak ioredis):

${indented(snippetOf(redis, hub.url))}
Ctrl-C stops everything.
`)
}

function indented(code: string): string {
  return code.replaceAll(/^(?=.)/gm, '  ')
}

/** Why the addresses are not the usual ones: mostly a forgotten `up` in another folder. */
function others(takenPorts: readonly number[]): string {
  if (takenPorts.length === 0) return ''
  const [ports, are] = takenPorts.length === 1 ? ['Port', 'is'] : ['Ports', 'are']
  return `
  ${ports} ${takenPorts.join(' and ')} ${are} taken, perhaps by another Firebreak, so these are free ones. Commands run in this folder
  find this one.
`
}

/** What to run in another terminal, depending on how this one was started. */
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

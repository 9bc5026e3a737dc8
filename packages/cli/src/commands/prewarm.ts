import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Command, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'

interface Job {
  readonly id: string
  readonly keys: readonly string[]
  readonly at: number
  readonly forMs: number
}

interface Plan {
  readonly redisClusterId: string
  readonly steps: readonly {
    readonly ruleId: string
    readonly level: number
    readonly strategies: readonly string[]
    readonly services: readonly string[]
    readonly keys: readonly string[]
  }[]
}

interface Added {
  readonly plan: Plan
  /** Undefined: a dry run. */
  readonly job?: Job
  readonly result?: { readonly warmed: number; readonly unmatched: readonly string[] }
}

export const prewarm: Command = {
  flags: ['hub', 'cluster', 'at', 'for', 'service', 'value', 'file', 'dry-run', 'list', 'cancel'],
  help: `Make named keys hot before anybody asks for them: every process serves them from its first read on as its rule says.

Examples:
  firebreak prewarm product_100..120
  firebreak prewarm product_100..120 --at 19:58 --for 30m
  firebreak prewarm banner --value 'banner=Sale!'
  firebreak prewarm --file sale-keys.txt --at 19:58 --dry-run
  firebreak prewarm --list
  firebreak prewarm --cancel ID

Options:
  --at TIME         19:58 (the next time it is that late at the hub), or an ISO date (default now)
  --for SPAN        how long the keys stay hot without being read: 90s, 30m, 2h (default 10m)
  --file FILE       more keys, one a line, ranges too; - is stdin
  --dry-run         say which rule would do what for which keys, and change nothing
  --cluster ID      the Redis that the keys are in (default: the only one that sensors speak of)
  --service NAME    only for this service, may stand several times (default all that are connected)
  --value KEY=TEXT  put this value into Redis first, may stand several times
  --list            jobs to come
  --cancel ID       take a job back
  --hub URL         the hub (env FIREBREAK_HUB; default: the running "firebreak up")

A cluster or a service that the hub does not know, or a key for which no rule does anything, is an error (exit code 1): then
nothing is warmed.
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        hub: { type: 'string' },
        cluster: { type: 'string' },
        file: { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        at: { type: 'string' },
        for: { type: 'string', default: '10m' },
        service: { type: 'string', multiple: true, default: [] },
        value: { type: 'string', multiple: true, default: [] },
        list: { type: 'boolean', default: false },
        cancel: { type: 'string' },
      },
    })
    const api = HubApi.of(values.hub, io)
    if (values.list) {
      const { jobs } = await api.call<{ jobs: Job[] }>('GET', '/v1/prewarm')
      for (const { id, keys, at } of jobs)
        io.stdout.write(`${new Date(at).toISOString()}  ${keys.length} keys (${keys[0]} …)  ${id}\n`)
      if (jobs.length === 0) io.stdout.write('No job is to come.\n')
      return 0
    }
    if (values.cancel !== undefined) {
      await api.call('DELETE', `/v1/prewarm/${encodeURIComponent(values.cancel)}`)
      io.stdout.write('The job is cancelled.\n')
      return 0
    }
    const keys = [...positionals, ...(values.file === undefined ? [] : readKeys(values.file))]
    if (keys.length === 0) throw new UsageError('it needs the keys, as product_100..120, or a --file of them')
    const { plan, job, result } = await api.call<Added>('POST', '/v1/prewarm', {
      ...(values.cluster !== undefined && { redisClusterId: values.cluster }),
      keys,
      dryRun: values['dry-run'],
      services: values.service,
      forMs: spanMs(values.for),
      values: Object.fromEntries(values.value.map(keyAndValue)),
      ...(values.at !== undefined && { at: values.at }),
    })
    if (job === undefined) {
      io.stdout.write(planText(plan))
      return 0
    }
    if (result === undefined) {
      io.stdout.write(`${job.keys.length} keys will be hot at ${new Date(job.at).toISOString()} (job ${job.id}).\n`)
      return 0
    }
    io.stdout.write(`${result.warmed} keys are hot.\n`)
    if (result.unmatched.length === 0) return 0
    io.stderr.write(
      `No rule matches ${result.unmatched.join(', ')}: nothing is done for them. Add one with "firebreak rules apply".\n`,
    )
    return 1
  },
}

function readKeys(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    throw new UsageError(`--file: ${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
  const keys = text.split(/\r?\n/).filter((line) => line !== '')
  if (keys.length === 0) throw new UsageError(`--file: ${file} holds no keys`)
  return keys
}

function planText({ redisClusterId, steps }: Plan): string {
  const lines = steps.map(({ ruleId, level, strategies, services, keys }) => {
    const some = keys.length > 3 ? `${keys[0]} … ${keys.at(-1)}` : keys.join(', ')
    const whom = services.length === 0 ? 'the services of that time' : services.join(', ')
    return `  ${keys.length} keys (${some}): ${strategies.join('|')} by rule ${ruleId}, level ${level}, for ${whom}\n`
  })
  return `Dry run, nothing is warmed. On the cluster ${redisClusterId}:\n${lines.join('')}`
}

function spanMs(text: string): number {
  const match = text.match(/^(\d+)(s|m|h)$/)
  if (match === null) throw new UsageError(`--for is "${text}"; it must be like 90s, 30m or 2h`)
  return Number(match[1]) * { s: 1000, m: 60_000, h: 3_600_000 }[match[2] as 's' | 'm' | 'h']
}

function keyAndValue(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--value is "${text}"; it must be KEY=TEXT`)
  return [text.slice(0, at), text.slice(at + 1)]
}

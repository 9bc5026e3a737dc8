import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi, HubCallError } from '../hub-api/hub-api.ts'

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
  flags: [
    'hub',
    'cluster',
    'at',
    'cron',
    'time-zone',
    'for',
    'service',
    'value',
    'file',
    'dry-run',
    'list',
    'cancel',
    'json',
  ],
  help: `Make named keys hot before anybody asks for them: every process handles them by their rule from the first read on.

Examples:
  firebreak prewarm product_100..120
  firebreak prewarm product_100..120 --at 19:58 --for 30m
  firebreak prewarm banner --value 'banner=Sale!'
  firebreak prewarm --file sale-keys.txt --at 19:58 --dry-run
  firebreak prewarm product_100..120 --cron '58 9 * * fri' --time-zone Asia/Shanghai
  firebreak prewarm --list
  firebreak prewarm --cancel ID

Options:
  --at TIME         19:58 (the next time the hub's clock shows it), or an ISO date (default now)
  --cron FIELDS     repeat: minute, hour, day of month, month, day of week, as in cron(5)
  --time-zone ZONE  the time zone of --cron (default UTC)
  --for SPAN        how long the keys stay hot without being read: 90s, 30m, 2h (default 10m)
  --file FILE       more keys, one per line, ranges too; lines that begin with # are skipped; - is stdin
  --dry-run         show which rule would do what for which keys, and change nothing
  --cluster ID      the Redis that the keys are in (default: the only one that sensors report)
  --service NAME    only for this service, may be repeated (default all that are connected)
  --value KEY=TEXT  put this value into Redis first, may be repeated
  --list            pending jobs
  --cancel ID       cancel a job
  --json            the hub's answer as JSON
  --hub URL         the hub (env FIREBREAK_HUB; default: the running "firebreak up")

If the hub does not know the cluster or service, or no rule does anything for a key, that is an error (exit code 1), and
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
        cron: { type: 'string' },
        'time-zone': { type: 'string' },
        for: { type: 'string', default: '10m' },
        service: { type: 'string', multiple: true, default: [] },
        value: { type: 'string', multiple: true, default: [] },
        list: { type: 'boolean', default: false },
        cancel: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const api = HubApi.of(values.hub, io)
    if (values.list) {
      const answer = await api.call<{ jobs: Job[] }>('GET', '/v1/prewarm')
      if (values.json) return printJson(io, answer)
      const { jobs } = answer
      for (const { id, keys, at } of jobs)
        io.stdout.write(`${new Date(at).toISOString()}  ${countOf(keys)} (${keys[0]} …)  ${id}\n`)
      if (jobs.length === 0) io.stdout.write('No pending jobs.\n')
      return 0
    }
    if (values.cancel !== undefined) {
      await api.call('DELETE', `/v1/prewarm/${encodeURIComponent(values.cancel)}`)
      io.stdout.write('The job was cancelled.\n')
      return 0
    }
    if (positionals[0] === 'list' || positionals[0] === 'cancel') {
      throw new UsageError(`did you mean "prewarm --${positionals[0]}"? A key of that name goes into a --file`)
    }
    const keys = [...positionals, ...(values.file === undefined ? [] : readKeys(values.file))]
    if (keys.length === 0) throw new UsageError('name the keys, such as product_100..120, or a --file of them')
    const request = {
      ...(values.cluster !== undefined && { redisClusterId: values.cluster }),
      keys,
      dryRun: values['dry-run'],
      services: values.service,
      forMs: spanMs(values.for),
      values: Object.fromEntries(values.value.map(keyAndValue)),
      ...(values.at !== undefined && { at: values.at }),
      ...(values.cron !== undefined && { cron: values.cron }),
      ...(values['time-zone'] !== undefined && { timeZone: values['time-zone'] }),
    }
    const added = await api.call<Added>('POST', '/v1/prewarm', request).catch(withFlags)
    const { plan, job, result } = added
    if (values.json) return printJson(io, added)
    if (job === undefined) {
      io.stdout.write(planText(plan))
      return 0
    }
    if (result === undefined) {
      io.stdout.write(`${countOf(job.keys)} will be hot at ${new Date(job.at).toISOString()} (job ${job.id}).\n`)
      return 0
    }
    io.stdout.write(`${result.warmed} ${result.warmed === 1 ? 'key is' : 'keys are'} hot.\n`)
    if (result.unmatched.length === 0) return 0
    io.stderr.write(
      `No rule matches ${result.unmatched.join(', ')}: nothing is done for these keys. Add one with "firebreak rules apply".\n`,
    )
    return 1
  },
}

/** Maps the hub's field names to the flags of this command. */
function withFlags(error: unknown): never {
  if (!(error instanceof HubCallError)) throw error
  const message = error.message.replace(/^the hub replied: (\w+):/, (all, field: string) =>
    flagOfField[field] === undefined ? all : `the hub replied: ${flagOfField[field]}:`,
  )
  throw new HubCallError(message, { cause: error })
}

const flagOfField: Readonly<Record<string, string>> = {
  redisClusterId: '--cluster',
  services: '--service',
  forMs: '--for',
  cron: '--cron',
  timeZone: '--time-zone',
  at: '--at',
  values: '--value',
}

function readKeys(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    throw new UsageError(`--file: ${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
  const lines = text.split('\n').map((line) => line.trim())
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'))
  if (keys.length === 0) throw new UsageError(`--file: ${file} holds no keys`)
  return keys
}

function planText({ redisClusterId, steps }: Plan): string {
  const lines = steps.map(({ ruleId, level, strategies, services, keys }) => {
    const some = keys.length > 3 ? `${keys[0]} … ${keys.at(-1)}` : keys.join(', ')
    const whom = services.length === 0 ? 'the services of that time' : services.join(', ')
    return `  ${countOf(keys)} (${some}): ${strategies.join('|')} by rule ${ruleId}, level ${level}, for ${whom}\n`
  })
  return `Dry run, nothing is warmed. On the cluster ${redisClusterId}:\n${lines.join('')}`
}

function countOf({ length }: readonly string[]): string {
  return length === 1 ? '1 key' : `${length} keys`
}

function printJson(io: CommandIo, answer: unknown): number {
  io.stdout.write(`${JSON.stringify(answer)}\n`)
  return 0
}

function spanMs(text: string): number {
  const match = text.match(/^(\d+)(s|m|h)$/)
  if (match === null) throw new UsageError(`--for is "${text}"; it must be a duration such as 90s, 30m or 2h`)
  return Number(match[1]) * { s: 1000, m: 60_000, h: 3_600_000 }[match[2] as 's' | 'm' | 'h']
}

function keyAndValue(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--value is "${text}"; it must be KEY=TEXT`)
  return [text.slice(0, at), text.slice(at + 1)]
}

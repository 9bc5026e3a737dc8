import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startLimitsServer } from '@firebreak/hub'
import { plainScript, plainScriptNames } from '@firebreak/limits'
import {
  MemoryRuleStore,
  type Policy,
  parsePolicy,
  RedisRuleStore,
  writePolicyDocument,
  writePolicyText,
} from '@firebreak/limits/policy'
import { Redis } from 'ioredis'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'

const help = `firebreak limits: the rule service alone

Examples:
  firebreak limits --policy rules.conf
  firebreak limits --policy rules.yaml --redis redis://127.0.0.1:6379 --leak-storage zset
  firebreak limits check rules.conf
  firebreak limits convert rules.conf --to yaml
  firebreak limits script token-bucket > token-bucket.lua

Calls are under /v1/limits/: browse, update, browse_complete, multi_browse, feedback, value, rules, alive, dump, policy,
reload, convert, history, diff, rollback, metrics. SIGHUP reads the policy file again; a broken one is refused with
file:line and the old one stays.

Options                    env twin                       default
  --policy FILE            FIREBREAK_LIMITS_POLICY        no rules
  --host HOST              FIREBREAK_LIMITS_HOST          127.0.0.1
  --port PORT              FIREBREAK_LIMITS_PORT          4980
  --redis URL              FIREBREAK_LIMITS_REDIS         counters in this process
  --leak-storage KIND      FIREBREAK_LIMITS_LEAK_STORAGE  list (or zset)
  --prefix PREFIX          FIREBREAK_LIMITS_PREFIX        {fb:rules}
  --token TOKEN            FIREBREAK_LIMITS_TOKEN         none; needed where the host is not loopback
  --koala-paths            FIREBREAK_LIMITS_KOALA_PATHS   off; Koala's own paths (/rule/browse, …), where a GET counts
  --to FORM                                               yaml (or json, text), for convert
`

const flags = ['policy', 'host', 'port', 'redis', 'leak-storage', 'prefix', 'token', 'to'] as const

/** The `limits` command. */
export const limitsCommand: Command = {
  help,
  subcommands: ['check', 'convert', 'script'],
  flags: [...flags, 'koala-paths'],
  async run(args, io) {
    const texts = Object.fromEntries(flags.map((flag) => [flag, { type: 'string' as const }]))
    const options = { ...texts, 'koala-paths': { type: 'boolean' as const } }
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const koalaPaths =
      (values['koala-paths'] as boolean | undefined) ?? io.env['FIREBREAK_LIMITS_KOALA_PATHS'] === 'true'
    const value = (flag: (typeof flags)[number]) =>
      ((values as Record<string, unknown>)[flag] as string | undefined) ??
      io.env[`FIREBREAK_LIMITS_${flag.toUpperCase().replaceAll('-', '_')}`]
    const [subcommand, file, ...more] = positionals
    if (more.length > 0) throw new UsageError(`"${more[0]}" is one word too many`)
    if (subcommand === undefined) return serve(value, koalaPaths, io)
    if (subcommand === 'script') {
      const script = file === undefined ? undefined : plainScript(file)
      if (script === undefined) throw new UsageError(`script needs one of ${plainScriptNames.join(', ')}`)
      io.stdout.write(script)
      return 0
    }
    if (file === undefined) throw new UsageError(`${subcommand} needs a policy file`)
    if (subcommand === 'check') {
      const { rules, dicts } = readPolicy(file)
      io.stdout.write(`${file}: ${rules.length} rules, ${Object.keys(dicts).length} dicts, all well\n`)
      return 0
    }
    if (subcommand === 'convert') {
      const write = writers[value('to') ?? 'yaml']
      if (write === undefined) throw new UsageError(`--to is "${value('to')}"; it must be yaml, json or text`)
      io.stdout.write(write(readPolicy(file)))
      return 0
    }
    throw new UsageError(`there is no "${subcommand}" here; there are check, convert and script`)
  },
}

const writers: Record<string, (policy: Policy) => string> = {
  yaml: (policy) => writePolicyDocument(policy, 'yaml'),
  json: (policy) => writePolicyDocument(policy, 'json'),
  text: writePolicyText,
}

function readPolicy(file: string): Policy {
  return parsePolicy(readFileSync(file, 'utf8'), file)
}

async function serve(
  value: (flag: (typeof flags)[number]) => string | undefined,
  koalaPaths: boolean,
  io: CommandIo,
): Promise<number> {
  const port = Number(value('port') ?? 4980)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError(`--port is "${value('port')}"`)
  const leakStorage = value('leak-storage') ?? 'list'
  if (leakStorage !== 'list' && leakStorage !== 'zset') {
    throw new UsageError(`--leak-storage is "${leakStorage}"; it must be list or zset`)
  }
  const redisUrl = value('redis')
  const client = redisUrl === undefined ? undefined : new Redis(redisUrl)
  client?.on('error', (error) => io.stderr.write(`firebreak limits: Redis: ${error.message}\n`))
  const prefix = value('prefix')
  const store =
    client === undefined
      ? new MemoryRuleStore()
      : new RedisRuleStore(client, { leakStorage, ...(prefix && { prefix }) })
  const policyFile = value('policy')
  const host = value('host')
  const token = value('token')
  const server = await startLimitsServer({
    store,
    port,
    koalaPaths,
    ...(policyFile !== undefined && { policyFile }),
    ...(host !== undefined && { host }),
    ...(token !== undefined && { token }),
  })
  const onHangUp = () => {
    try {
      io.stdout.write(`policy version ${server.reload()}\n`)
    } catch (error) {
      io.stderr.write(`firebreak limits: ${(error as Error).message}; the old policy stays\n`)
    }
  }
  process.on('SIGHUP', onHangUp)
  io.stdout.write(
    `rule service on ${server.url}/v1/limits/ with ${server.service.policy.rules.length} rules, counters ${redisUrl === undefined ? 'in this process' : 'on Redis'}\n`,
  )
  await new Promise<void>((resolve) => {
    if (io.signal.aborted) resolve()
    else io.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  process.off('SIGHUP', onHangUp)
  await server.close()
  client?.disconnect()
  return 0
}

import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { portBounds } from '@firebreak/core/settings'
import { startLimitsServer } from '@firebreak/hub'
import { plainScript, plainScriptNames } from '@firebreak/limits'
import { type Policy, parsePolicy, writePolicyDocument, writePolicyText } from '@firebreak/limits/policy'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { whenEnded } from '../command/when-ended.ts'
import { CommandSettings, flagsOf, helpOf } from '../flags/command-settings.ts'
import { onHangUp } from '../limits/on-hang-up.ts'
import { openRuleStore } from '../limits/rule-store.ts'
import { limitsSettings } from './limits-settings.ts'

const help = `The rule service for rate limits on its own, without a hub; check or convert a policy.

Examples:
  firebreak limits --policy rules.conf
  firebreak limits --policy rules.yaml --redis redis://127.0.0.1:6379 --leak-storage zset
  firebreak limits --policy rules.yaml --data-folder ./limits
  firebreak limits check rules.conf
  firebreak limits convert rules.conf --to yaml
  firebreak limits script token-bucket > token-bucket.lua

Calls are under /v1/limits/: browse, update, browse_complete, multi_browse, feedback, value, rules, alive, dump, policy,
reload, convert, history, diff, rollback, metrics. SIGHUP reloads the policy file; an invalid one is refused with
file:line and the old one stays in force. With --data-folder the newest policy is kept across restarts, whoever made it,
and the file is only used for an empty folder.

${helpOf(limitsSettings)}
  --to yaml|json|text
      for convert: the output format (default yaml)
`

/** The `limits` command. */
export const limitsCommand: Command = {
  help,
  subcommands: ['check', 'convert', 'script'],
  flags: [...flagsOf(limitsSettings), 'to'],
  async run(args, io) {
    const [subcommand, ...rest] = args
    if (subcommand === undefined || subcommand.startsWith('-')) return serve(args, io)
    const { values, positionals } = parseArgs({
      args: rest,
      options: { to: { type: 'string', default: 'yaml' } },
      allowPositionals: true,
    })
    const [file, ...more] = positionals
    if (more.length > 0) throw new UsageError(`"${more[0]}" is one word too many`)
    if (subcommand === 'script') {
      const script = file === undefined ? undefined : plainScript(file)
      if (script === undefined) throw new UsageError(`script needs one of ${plainScriptNames.join(', ')}`)
      io.stdout.write(script)
      return 0
    }
    if (subcommand !== 'check' && subcommand !== 'convert') {
      throw new UsageError(`unknown command "${subcommand}"; use check, convert or script`)
    }
    if (file === undefined) throw new UsageError(`${subcommand} needs a policy file`)
    if (subcommand === 'check') {
      const { rules, dicts } = readPolicy(file)
      io.stdout.write(`${file}: ${rules.length} rules, ${Object.keys(dicts).length} dicts, no errors\n`)
      return 0
    }
    const write = writers[values.to]
    if (write === undefined) throw new UsageError(`--to is "${values.to}"; it must be yaml, json or text`)
    io.stdout.write(write(readPolicy(file)))
    return 0
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

interface LimitsValues {
  readonly policy?: string
  readonly host?: string
  readonly port?: number
  readonly redis?: string
  readonly leakStorage?: 'list' | 'zset'
  readonly prefix?: string
  readonly token?: string
  readonly koalaPaths?: boolean
  readonly dataFolder?: string
}

async function serve(args: readonly string[], io: CommandIo): Promise<number> {
  const ended = whenEnded(io.signal)
  const settings = CommandSettings.read(limitsSettings, args, io)
  const { bounds, others } = portBounds(settings.values)
  const { policy, redis, leakStorage, prefix, ...listening } = others as LimitsValues
  const counters = openRuleStore({ redis, leakStorage, prefix }, (error) =>
    io.stderr.write(`firebreak limits: Redis: ${error.message}\n`),
  )
  const server = await startLimitsServer({
    store: counters.store,
    port: 4980,
    ...listening,
    ...(bounds !== undefined && { connections: bounds }),
    ...(policy !== undefined && { policyFile: policy }),
  })
  const stopListening = onHangUp('firebreak limits', server.reload, io)
  io.stdout.write(
    `rule service on ${server.url}/v1/limits/ with ${server.service.policy.rules.length} rules, counters ${redis === undefined ? 'in this process' : 'on Redis'}\n`,
  )
  await ended
  stopListening()
  await server.close()
  counters.close()
  return 0
}

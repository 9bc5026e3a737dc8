import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { didYouMean, type RulesView } from '@firebreak/core'
import { patternText, type Rule } from '@firebreak/core/rules'
import { parse as parseYaml, stringify as toYaml } from 'yaml'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'
import { importRules } from '../rules/import-rules.ts'
import { changeText, ruleChanges, rulesOf } from '../rules/rule-changes.ts'
import { winningRule } from '../rules/winning-rule.ts'

const subcommands = ['list', 'show', 'apply', 'export', 'import', 'remove', 'rollout']
/** The exit code if there is something to change. */
const differs = 3

const columns: readonly Column<Rule>[] = [
  { title: 'RULE', text: (rule) => rule.id },
  { title: 'MODE', text: (rule) => rule.mode },
  { title: 'KEYS', text: (rule) => patternText(rule.pattern), isFlexible: true },
  {
    title: 'HOT WHEN',
    text: (rule) =>
      rule.levels
        .map(({ auto, enter, measure }) => (auto ? 'auto' : `${enter} ${measure}/${rule.windowMs} ms`))
        .join('; '),
  },
  {
    title: 'THEN',
    text: (rule) =>
      rule.levels.map(({ strategies }) => strategies.map(({ strategy }) => strategy).join('|')).join('; '),
  },
  { title: 'PRIORITY', text: (rule) => String(rule.priority), align: 'right' },
]

export const rules: Command = {
  subcommands,
  flags: ['hub', 'diff', 'prune', 'from', 'keys', 'service', 'json', 'ndjson', 'csv'],
  help: `The rules of the hub.

Examples:
  firebreak rules
  firebreak rules show product
  firebreak rules apply rules.yaml        a rule or a list of rules, as YAML or JSON
  firebreak rules apply rules.yaml --diff --prune    show what would change, and change nothing
  firebreak rules apply rules.yaml --prune           also remove rules that are not in the file
  firebreak rules export > rules.yaml     all rules, as apply takes them
  firebreak rules remove product
  firebreak rules rollout product 10      10 % of the processes have the rule; then 50, then 100
  firebreak rules import hotkey.json --from jd-hotkey > rules.yaml
  firebreak rules import params.json --from sentinel --keys 'getProduct=product_{param}' > rules.yaml

rollout: the hub compares processes that have the rule with those that do not, and withdraws it from all of them if
errors, hit rate or staleness get worse (alarm rollout:ID).
apply validates the whole file first: if one rule is invalid, none is changed. Rules that already match are left alone.
import prints rules for apply without contacting a hub; stderr lists what could not be converted exactly.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 --diff found changes.

A rule: {id: product, prefix: "product_", threshold: 1000, windowMs: 1000, strategy: LocalCache}
All fields: docs/reference/rules.md

Options:
  --diff      with apply: show what would change, and change nothing
  --prune     with apply: remove rules of the hub that are not in the file
  --from S    with import: jd-hotkey (its JSON list of key rules) or sentinel (its JSON list of hot-parameter rules)
  --keys R=K  with import from sentinel: the keys of resource R, with {param} for the parameter; may be repeated
  --service S with import: the service that the rules apply to (default: all)
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        hub: { type: 'string' },
        diff: { type: 'boolean', default: false },
        prune: { type: 'boolean', default: false },
        from: { type: 'string' },
        keys: { type: 'string', multiple: true, default: [] },
        service: { type: 'string' },
        ...formatOptions,
      },
    })
    const [action = 'list', name] = positionals
    if (action === 'import') return importFile(needed(name, 'import FILE --from jd-hotkey|sentinel'), values, io)
    const api = HubApi.of(values.hub, io)
    if (action !== 'apply' && (values.diff || values.prune))
      throw new UsageError('--diff and --prune belong to "rules apply FILE"')
    switch (action) {
      case 'list':
        printRecords(
          io,
          values,
          columns,
          (await api.call<RulesView>('GET', '/v1/rules')).rules,
          'No rules: nothing will ever be hot.',
        )
        return 0
      case 'show':
        return show(api, needed(name, 'show ID'), io)
      case 'apply':
        return apply(api, needed(name, 'apply FILE'), values, io)
      case 'export': {
        const all = (await api.call<RulesView>('GET', '/v1/rules')).rules.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        io.stdout.write(values.json ? `${JSON.stringify(all, null, 2)}\n` : toYaml(all))
        return 0
      }
      case 'remove':
        await api.call('DELETE', `/v1/rules/${encodeURIComponent(needed(name, 'remove ID'))}`)
        io.stdout.write(`rule ${name} is removed\n`)
        return 0
      case 'rollout': {
        const percent = Number(needed(positionals[2], 'rollout ID PERCENT').replace(/%$/, ''))
        if (!Number.isInteger(percent) || percent < 0 || percent > 100)
          throw new UsageError(`PERCENT is "${positionals[2]}"; it must be a whole number from 0 to 100`)
        const path = `/v1/rules/${encodeURIComponent(needed(name, 'rollout ID PERCENT'))}/rollout`
        await api.call('POST', path, { percent })
        io.stdout.write(`rule ${name} is in force in ${percent} % of the processes\n`)
        return 0
      }
      default: {
        const close = didYouMean(action, subcommands)
        throw new UsageError(`unknown command "rules ${action}"${close ? `; did you mean "rules ${close}"?` : ''}`)
      }
    }
  },
}

function needed(value: string | undefined, usage: string): string {
  if (value === undefined) throw new UsageError(`usage: firebreak rules ${usage}`)
  return value
}

async function show(api: HubApi, id: string, io: CommandIo): Promise<number> {
  const { rules: all } = await api.call<RulesView>('GET', '/v1/rules')
  const rule = all.find((candidate) => candidate.id === id)
  if (rule === undefined) {
    io.stderr.write(`unknown rule ${id}; there are: ${all.map((other) => other.id).join(', ') || 'none'}\n`)
    return 1
  }
  io.stdout.write(`${JSON.stringify(rule, null, 2)}\n`)
  return 0
}

/** Makes the hub's rules match a file, rule by rule; each change is one call and one line in the hub's audit. */
async function apply(
  api: HubApi,
  file: string,
  { diff, prune }: { readonly diff: boolean; readonly prune: boolean },
  io: CommandIo,
): Promise<number> {
  const wanted = rulesOf(readRulesFile(file), file)
  const { rules: current } = await api.call<RulesView>('GET', '/v1/rules')
  const changes = ruleChanges(current, wanted, prune)
  const isSame = changes.every(({ kind }) => kind === 'keep')
  if (diff) {
    io.stdout.write(isSame ? 'Nothing to change.\n' : changes.map(changeText).join(''))
    return isSame ? 0 : differs
  }
  for (const change of changes) {
    if (change.kind === 'keep') {
      io.stdout.write(`rule ${change.after.id} is unchanged\n`)
    } else if (change.kind === 'remove') {
      await api.call('DELETE', `/v1/rules/${encodeURIComponent(change.before.id)}`)
      io.stdout.write(`rule ${change.before.id} is removed\n`)
    } else {
      await api.call('PUT', `/v1/rules/${encodeURIComponent(change.after.id)}`, change.after)
      io.stdout.write(`rule ${change.after.id} is applied\n`)
    }
  }
  const { rules: inForce } = await api.call<RulesView>('GET', '/v1/rules')
  for (const { id } of wanted) {
    const rule = inForce.find((one) => one.id === id)
    const winner = rule && winningRule(rule, inForce)
    if (winner === undefined) continue
    io.stderr.write(
      `rule ${id} has no effect: rule ${winner.id} (priority ${winner.priority}) takes all of its keys; give ${id} a higher priority\n`,
    )
  }
  return 0
}

/** Prints another system's rules as ours. */
function importFile(
  file: string,
  { from, keys, service, json }: { from?: string; keys: string[]; service?: string; json?: boolean },
  io: CommandIo,
): number {
  const { rules: imported, remarks } = importRules(readRulesFile(file), { from, keys, serviceId: service })
  for (const remark of remarks) io.stderr.write(`${remark}\n`)
  io.stdout.write(json ? `${JSON.stringify(imported, null, 2)}\n` : toYaml(imported))
  return 0
}

function readRulesFile(file: string): unknown {
  try {
    return parseYaml(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (cause) {
    // The parser quotes the place over several lines.
    const reason = (cause as Error).message.split('\n')[0]!.replace(/:$/, '')
    throw new UsageError(`${file} cannot be read: ${reason}`, { cause })
  }
}

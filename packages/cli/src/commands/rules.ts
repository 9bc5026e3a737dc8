import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { didYouMean, type RulesView } from '@firebreak/core'
import { patternText, type Rule } from '@firebreak/core/rules'
import { parse as parseYaml } from 'yaml'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const subcommands = ['list', 'show', 'apply', 'remove']

const columns: readonly Column<Rule>[] = [
  { title: 'RULE', text: (rule) => rule.id },
  { title: 'MODE', text: (rule) => rule.mode },
  { title: 'KEYS', text: (rule) => patternText(rule.pattern), isFlexible: true },
  {
    title: 'HOT WHEN',
    text: (rule) => rule.levels.map(({ enter, measure }) => `${enter} ${measure}/${rule.windowMs} ms`).join('; '),
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
  flags: ['hub', 'json', 'ndjson', 'csv'],
  help: `The rules of the hub.

Examples:
  firebreak rules
  firebreak rules show product
  firebreak rules apply rules.yaml        a rule, or a list of them, as YAML or JSON
  firebreak rules remove product

A rule: {id: product, prefix: "product_", threshold: 1000, windowMs: 1000, strategy: LocalCache}
All fields: docs/reference/rules.md

Options:
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { hub: { type: 'string' }, ...formatOptions },
    })
    const api = HubApi.of(values.hub, io)
    const [action = 'list', name] = positionals
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
        return apply(api, needed(name, 'apply FILE'), io)
      case 'remove':
        await api.call('DELETE', `/v1/rules/${encodeURIComponent(needed(name, 'remove ID'))}`)
        io.stdout.write(`rule ${name} is removed\n`)
        return 0
      default: {
        const close = didYouMean(action, subcommands)
        throw new UsageError(`there is no "rules ${action}"${close ? `; did you mean "rules ${close}"?` : ''}`)
      }
    }
  },
}

function needed(value: string | undefined, usage: string): string {
  if (value === undefined) throw new UsageError(`it is: firebreak rules ${usage}`)
  return value
}

async function show(api: HubApi, id: string, io: CommandIo): Promise<number> {
  const { rules: all } = await api.call<RulesView>('GET', '/v1/rules')
  const rule = all.find((candidate) => candidate.id === id)
  if (rule === undefined) {
    io.stderr.write(`there is no rule ${id}; there are: ${all.map((other) => other.id).join(', ') || 'none'}\n`)
    return 1
  }
  io.stdout.write(`${JSON.stringify(rule, null, 2)}\n`)
  return 0
}

async function apply(api: HubApi, file: string, io: CommandIo): Promise<number> {
  const parsed: unknown = parseYaml(readFileSync(file === '-' ? 0 : file, 'utf8'))
  const list = Array.isArray(parsed) ? parsed : [parsed]
  for (const rule of list as { id?: unknown }[]) {
    if (typeof rule?.id !== 'string') throw new UsageError(`${file}: every rule needs an id`)
    await api.call('PUT', `/v1/rules/${encodeURIComponent(rule.id)}`, rule)
    io.stdout.write(`rule ${rule.id} is applied\n`)
  }
  return 0
}

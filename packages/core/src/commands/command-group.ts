import type { CommandFlag, CommandRow, CommandType } from './command-row.ts'
import { parseKeySpecs } from './key-spec.ts'
import { NameTable } from './name-table.ts'

/** A row as written in the table: name, arity, access, key positions (see `KeySpec`), and flags. */
export type RowData = readonly [
  name: string,
  arity: number,
  access: CommandRow['access'],
  keys?: string,
  ...traits: (CommandFlag | 'cacheable')[],
]

/** Rows with one type and one version. A two-word name is a subcommand of the first word. */
export interface CommandGroup {
  readonly type: CommandType
  /** @default Redis 7.0 or earlier */
  readonly since?: string
  readonly rows: readonly RowData[]
}

/** Builds the whole table from its groups. */
export function makeTable(groups: readonly CommandGroup[]): NameTable<CommandRow> {
  const subcommands = new Map<string, [string, CommandRow][]>()
  const all = groups.flatMap(({ type, since, rows }) => rows.map((row) => makeRow(row, type, since)))
  for (const row of all) {
    const [name, subcommand] = row.name.split(' ')
    if (subcommand === undefined) continue
    const siblings = subcommands.get(name!) ?? []
    siblings.push([subcommand, row])
    subcommands.set(name!, siblings)
  }
  const tops = all.filter(({ name }) => !name.includes(' '))
  return new NameTable(
    tops.map((row) => {
      const children = subcommands.get(row.name)
      return [row.name, children === undefined ? row : { ...row, subcommands: new NameTable(children) }]
    }),
  )
}

function makeRow(data: RowData, type: CommandType, since: string | undefined): CommandRow {
  const [name, arity, access, keySpecs = '', ...traits] = data
  const keys = parseKeySpecs(keySpecs)
  const first = keys[0]
  const firstKey = first?.kind === 'range' ? first.first : first?.kind === 'rule' && first.rule !== 'migrate' ? 1 : 0
  return {
    name,
    arity,
    type,
    access,
    keys,
    firstKey,
    hasSingleKey: keys.length === 1 && first?.kind === 'range' && first.first === first.last,
    cacheable: traits.includes('cacheable'),
    flags: new Set(traits.filter((trait) => trait !== 'cacheable')),
    since,
    subcommands: undefined,
  }
}

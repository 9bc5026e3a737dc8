import { didYouMean } from '@firebreak/core'
import { WatchError } from '../errors.ts'

/** A row of the binlog, by column. */
export type Row = Readonly<Record<string, unknown>>

/** How the new value of a key is made from a row. */
export type ValueRecipe =
  /** The text of one column. */
  | { readonly kind: 'column'; readonly column: string }
  /** A text with `{column}` placeholders. */
  | { readonly kind: 'template'; readonly template: string }
  /** An object of some columns, or of all. */
  | { readonly kind: 'json'; readonly columns: readonly string[] | 'all' }
  /** The application's own loader, called by name with the key and the row. */
  | { readonly kind: 'loader'; readonly loader: string }

/** One key derived from the rows of a table. */
export interface KeyMapping {
  /** The key, with `{column}` placeholders. */
  readonly key: string
  readonly value: ValueRecipe
  /** The key's TTL after a refresh; undefined: none. */
  readonly ttlSeconds: number | undefined
  /**
   * What replaces a hot key whose row was deleted. A hot key is never deleted, because its readers would all go to the
   * database.
   */
  readonly tombstone: string
}

/** Which keys depend on which tables: `schema.table` → keys. */
export type RowMapping = ReadonlyMap<string, readonly KeyMapping[]>

const keyFields = ['key', 'value', 'ttlSeconds', 'tombstone']
const recipeFields = ['column', 'template', 'json', 'loader']

/**
 * Parses a mapping in the form that users write (JSON or YAML, already parsed):
 *
 *     tables:
 *       shop.product:
 *         - key: "product:{id}"
 *           value: { json: all }            # or json: [id, name], column: price, template: "{name} {price}", loader: page
 *           ttlSeconds: 600
 *           tombstone: "null"
 */
export function parseRowMapping(input: unknown): RowMapping {
  const root = record(input, 'the mapping', ['tables'])
  const tables = record(root['tables'], 'tables')
  const mapping = new Map<string, KeyMapping[]>()
  for (const [table, keys] of Object.entries(tables)) {
    if (!/^[^.]+\.[^.]+$/.test(table)) throw wrong(`tables.${table}`, 'write the table as schema.table')
    if (!Array.isArray(keys) || keys.length === 0) throw wrong(`tables.${table}`, 'must be a list of keys')
    mapping.set(
      table,
      keys.map((key, index) => parseKey(key, `tables.${table}[${index}]`)),
    )
  }
  if (mapping.size === 0) throw wrong('tables', 'names no table')
  return mapping
}

function parseKey(input: unknown, path: string): KeyMapping {
  const fields = record(input, path, keyFields)
  const { key, ttlSeconds, tombstone = 'null' } = fields
  if (typeof key !== 'string' || !/\{[^{}]+\}/.test(key))
    throw wrong(`${path}.key`, 'must be a string with a {column} in it')
  if (ttlSeconds !== undefined && !(Number.isSafeInteger(ttlSeconds) && (ttlSeconds as number) > 0)) {
    throw wrong(`${path}.ttlSeconds`, 'must be a whole number of seconds')
  }
  if (typeof tombstone !== 'string') throw wrong(`${path}.tombstone`, 'must be a string')
  return {
    key,
    value: parseRecipe(fields['value'], `${path}.value`),
    ttlSeconds: ttlSeconds as number | undefined,
    tombstone,
  }
}

function parseRecipe(input: unknown, path: string): ValueRecipe {
  if (input === 'delete')
    throw wrong(path, 'a key is refreshed, never deleted: a deleted hot key sends all its readers to the database')
  const fields = record(input, path, recipeFields)
  const [kind] = Object.keys(fields)
  if (Object.keys(fields).length !== 1) throw wrong(path, `must have one of ${recipeFields.join(', ')}`)
  const value = fields[kind!]
  if (kind === 'json') {
    if (value === 'all') return { kind, columns: 'all' }
    if (Array.isArray(value) && value.every((column) => typeof column === 'string'))
      return { kind, columns: value as string[] }
    throw wrong(`${path}.json`, 'must be a list of columns or "all"')
  }
  if (typeof value !== 'string' || value === '') throw wrong(`${path}.${kind}`, 'must be a string')
  if (kind === 'column') return { kind, column: value }
  if (kind === 'template') return { kind, template: value }
  return { kind: 'loader', loader: value }
}

function record(input: unknown, path: string, known?: readonly string[]): Record<string, unknown> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw wrong(path, 'must be an object')
  for (const name of known === undefined ? [] : Object.keys(input)) {
    if (known!.includes(name)) continue
    const close = didYouMean(name, known!)
    throw wrong(`${path}.${name}`, `unknown field${close ? `; did you mean ${close}?` : ''}`)
  }
  return input as Record<string, unknown>
}

function wrong(path: string, reason: string): WatchError {
  return new WatchError('FB_WATCH_MAPPING', `mapping, ${path}: ${reason}`, { isFatal: true })
}

/** Fills a row's columns into a template; a column that the row does not have is an error that names it. */
export function fillTemplate(template: string, row: Row): string {
  return template.replaceAll(/\{([^{}]+)\}/g, (_, column: string) => columnText(row, column))
}

/** A column's value as text. */
export function columnText(row: Row, column: string): string {
  const value = row[column]
  if (value === undefined)
    throw new WatchError('FB_WATCH_MAPPING', `the row has no column ${column}; it has ${Object.keys(row).join(', ')}`)
  if (value === null) return ''
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The new value according to a recipe; undefined if only the application's loader knows it. */
export function makeValue(recipe: ValueRecipe, row: Row): string | undefined {
  switch (recipe.kind) {
    case 'column':
      return columnText(row, recipe.column)
    case 'template':
      return fillTemplate(recipe.template, row)
    case 'json': {
      const columns = recipe.columns === 'all' ? Object.keys(row) : recipe.columns
      return JSON.stringify(Object.fromEntries(columns.map((column) => [column, jsonValue(row, column)])))
    }
    case 'loader':
      return undefined
  }
}

function jsonValue(row: Row, column: string): unknown {
  const value = row[column]
  if (value === undefined) return columnText(row, column)
  if (typeof value === 'bigint') return String(value)
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
}

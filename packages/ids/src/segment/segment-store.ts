import { readFileSync } from 'node:fs'
import { IdsError } from '../errors.ts'

/** A row of `leaf_alloc`. */
export interface TagRow {
  readonly tag: string
  /** Ids below this have been handed out. */
  readonly maxId: bigint
  readonly step: number
  readonly description: string
  /** As the database writes it. */
  readonly updatedAt: string
}

/** The ids `maxId - size` to `maxId - 1`, now reserved for us. */
export interface AllocatedSegment {
  readonly maxId: bigint
  readonly size: number
  /** The table's step, which may have been changed by hand. */
  readonly tableStep: number
}

/** Where segments come from: the table `leaf_alloc` of one database. */
export interface SegmentStore {
  /** For messages: kind and place, without a password. */
  readonly name: string
  /** Creates the table if it does not exist. */
  prepare(): Promise<void>
  rows(): Promise<TagRow[]>
  /** Advances the tag's `max_id` by `size` (if undefined, by the table's step) and reads it, in one transaction. */
  allocate(tag: string, size: number | undefined): Promise<AllocatedSegment>
  /**
   * Makes sure that `max_id` is at least this; false if it already was. Without it, a `max_id` that went back is an error
   * until it has passed.
   */
  raise?(tag: string, maxId: bigint): Promise<boolean>
  /** Adds a row; `FB_IDS_TAG_EXISTS` if the tag exists. */
  add(tag: string, step: number, maxId: bigint, description: string): Promise<void>
  close(): Promise<void>
}

/** One statement of a transaction, with `?` for its values. */
export interface SqlStatement {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** The result of a statement. Numbers are returned as text: a BIGINT does not fit into a JavaScript number. */
export interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly changed: number
}

/** What differs between databases. */
export interface SegmentDatabase {
  readonly name: string
  readonly schema: string
  /** The type that turns a number into text in `CAST(x AS …)`. */
  readonly textType: string
  /** Runs the statements in one transaction. */
  transaction(statements: readonly SqlStatement[]): Promise<SqlResult[]>
  /** True for the error of a second row with the same tag. */
  isDuplicate(error: unknown): boolean
  close(): Promise<void>
}

/** The largest step: the maximum of an INT column. */
const maxStep = 2 ** 31 - 1

/** Whether this is a valid segment size. */
export function isStep(step: number): boolean {
  return Number.isInteger(step) && step >= 1 && step <= maxStep
}

/** A row that no segment can come from; a step below 0 would issue ids twice. */
function rowInvalid(tag: string, store: string, row: SqlResult['rows'][number]): IdsError {
  const { step, max_id } = row
  const sentence = `the row of "${tag}" in ${store} has step ${step} and max_id ${max_id}; the step is from 1 to ${maxStep}, max_id 0 or more`
  return new IdsError('FB_IDS_TAG_INVALID', sentence, { tag, store })
}

/** The largest BIGINT. */
const lastId = '9223372036854775807'

/** The schema next to this module. */
export function readSchema(name: 'mariadb' | 'postgres' | 'sqlite'): string {
  return readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8')
}

/** Runs statements between BEGIN and COMMIT on one connection. */
export async function inTransaction(
  statements: readonly SqlStatement[],
  query: (sql: string, values: (string | number)[]) => Promise<SqlResult>,
): Promise<SqlResult[]> {
  await query('BEGIN', [])
  const results: SqlResult[] = []
  for (const { sql, values } of statements) results.push(await query(sql, [...values]))
  await query('COMMIT', [])
  return results
}

/** `leaf_alloc` over any SQL database. */
export class SqlSegmentStore implements SegmentStore {
  readonly name: string
  readonly #database: SegmentDatabase

  constructor(database: SegmentDatabase) {
    this.#database = database
    this.name = database.name
  }

  async prepare(): Promise<void> {
    await this.#database.transaction([{ sql: this.#database.schema, values: [] }])
  }

  async rows(): Promise<TagRow[]> {
    const columns = `biz_tag, ${this.#text('max_id')} AS max_id, ${this.#text('step')} AS step, description`
    const sql = `SELECT ${columns}, ${this.#text('update_time')} AS update_time FROM leaf_alloc ORDER BY biz_tag`
    const [result] = await this.#database.transaction([{ sql, values: [] }])
    return result!.rows.map((row) => ({
      tag: String(row['biz_tag']),
      maxId: BigInt(String(row['max_id'])),
      step: Number(row['step']),
      description: String(row['description'] ?? ''),
      updatedAt: String(row['update_time']),
    }))
  }

  async allocate(tag: string, size: number | undefined): Promise<AllocatedSegment> {
    const step = size === undefined ? 'step' : '?'
    // With a step below 0 the sum would exceed a BIGINT, which is a different error.
    const room = size === undefined ? 'CASE WHEN step > 0 THEN step ELSE 0 END' : '?'
    const [updated, read] = await this.#database.transaction([
      {
        // Beyond the last BIGINT, databases fail, wrap around or continue in floats, each in its own way.
        sql: `UPDATE leaf_alloc SET max_id = max_id + ${step}, update_time = CURRENT_TIMESTAMP WHERE biz_tag = ? AND max_id BETWEEN 0 AND ${lastId} - ${room} AND step BETWEEN 1 AND ${maxStep}`,
        values: size === undefined ? [tag] : [size, tag, size],
      },
      {
        sql: `SELECT ${this.#text('max_id')} AS max_id, ${this.#text('step')} AS step FROM leaf_alloc WHERE biz_tag = ?`,
        values: [tag],
      },
    ])
    const row = read!.rows[0]
    if (row === undefined) throw tagUnknown(tag)
    if (updated!.changed === 0) {
      const tableStep = Number(row['step'])
      if (!isStep(tableStep) || BigInt(String(row['max_id'])) < 0n) throw rowInvalid(tag, this.name, row)
      const sentence = `the ids of "${tag}" in ${this.name} are used up: max_id is ${row['max_id']}, and a BIGINT ends at ${lastId}; use a new tag`
      throw new IdsError('FB_IDS_TAG_EXHAUSTED', sentence, { tag, store: this.name })
    }
    const tableStep = Number(row['step'])
    return { maxId: BigInt(String(row['max_id'])), size: size ?? tableStep, tableStep }
  }

  async raise(tag: string, maxId: bigint): Promise<boolean> {
    const sql = 'UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = ? AND max_id < ?'
    const [updated] = await this.#database.transaction([{ sql, values: [String(maxId), tag, String(maxId)] }])
    return updated!.changed > 0
  }

  async add(tag: string, step: number, maxId: bigint, description: string): Promise<void> {
    const sql = 'INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, ?, ?, ?)'
    try {
      // The text of a BIGINT becomes one again in the database.
      await this.#database.transaction([{ sql, values: [tag, String(maxId), step, description] }])
    } catch (cause) {
      if (!this.#database.isDuplicate(cause)) throw cause
      throw new IdsError('FB_IDS_TAG_EXISTS', `the tag "${tag}" is in ${this.name} already`, { tag }, { cause })
    }
  }

  async close(): Promise<void> {
    await this.#database.close()
  }

  #text(column: string): string {
    return `CAST(${column} AS ${this.#database.textType})`
  }
}

/** No database has a row for this tag. */
export function tagUnknown(tag: string): IdsError {
  return new IdsError('FB_IDS_TAG_UNKNOWN', `unknown tag "${tag}" in leaf_alloc; add a row for it`, { tag })
}

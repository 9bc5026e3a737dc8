import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { entryToJson, explainDiskTrouble, type TableSnapshot } from '@firebreak/core'
import type { Trouble } from '../trouble/trouble.ts'
import { readSnapshot } from './read-table.ts'

/** The last good table as it stands in the file. */
export interface SavedTable {
  readonly snapshot: TableSnapshot
  /** Hub time less local time when it was saved, so that `until` can be judged before a hub is heard. */
  readonly hubOffsetMs: number
}

/**
 * The file that keeps the last good table, so that a process that starts while no hub is there knows what is hot. It is
 * written beside and renamed, so a reader never sees half of it, and several processes of a service may share it.
 */
export class TableFile {
  readonly #path: string
  readonly #trouble: Trouble
  #isWriting = false
  #next: SavedTable | undefined

  constructor(path: string, trouble: Trouble) {
    this.#path = path
    this.#trouble = trouble
  }

  /** The saved table; undefined where there is none that can be read. */
  read(): SavedTable | undefined {
    let text: string
    try {
      text = readFileSync(this.#path, 'utf8')
    } catch {
      return undefined
    }
    try {
      return parse(text, this.#trouble)
    } catch (error) {
      this.#trouble.note('table-file', `the table file ${this.#path} cannot be read and is ignored`, error)
      return undefined
    }
  }

  /** Writes in the background; of tables that come meanwhile only the last is written. */
  write(table: SavedTable): void {
    this.#next = table
    if (!this.#isWriting) void this.#writeAll()
  }

  /** Writes at once, for the end of a process. */
  writeNow(table: SavedTable): void {
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
      writeFileSync(this.#besidePath('now'), format(table), { mode: 0o600 })
      renameSync(this.#besidePath('now'), this.#path)
    } catch (error) {
      this.#failed(error)
    }
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    try {
      while (this.#next !== undefined) {
        const table = this.#next
        this.#next = undefined
        mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
        await writeFile(this.#besidePath('new'), format(table), { mode: 0o600 })
        await rename(this.#besidePath('new'), this.#path)
      }
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#isWriting = false
    }
  }

  #besidePath(suffix: string): string {
    return `${this.#path}.${process.pid}.${suffix}`
  }

  #failed(error: unknown): void {
    const why = explainDiskTrouble(error)
    this.#trouble.note('table-file', `the last good table cannot be kept in ${this.#path} (${why})`, error)
  }
}

function format({ snapshot, hubOffsetMs }: SavedTable): string {
  return JSON.stringify({ hubOffsetMs, snapshot: { ...snapshot, entries: snapshot.entries.map(entryToJson) } })
}

function parse(text: string, trouble: Trouble): SavedTable {
  const { snapshot, hubOffsetMs } = JSON.parse(text) as SavedTable
  if (typeof snapshot.epoch !== 'string' || !Number.isFinite(snapshot.version) || !Number.isFinite(hubOffsetMs))
    throw new TypeError('it lacks epoch, version or hubOffsetMs')
  return { hubOffsetMs, snapshot: readSnapshot(snapshot, trouble) }
}

import type { LoadedHandler } from '../cache/load.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import type { KeySpace } from '../gate/key-space.ts'

/** The key that has copies. */
export interface CopiedKey {
  readonly name: string
  readonly bytes: Uint8Array
  readonly slot: number
  readonly space: KeySpace
  /** True if the key has a copy of this name at present, whoever asks. */
  hasCopy(name: string): boolean
  /** Reads answered from a copy. */
  copyReads: number
  /** Reads the key itself; false if that is not possible now. */
  readOriginal(command: ReadCommand, onRead: LoadedHandler): boolean
}

/** What copies work with. */
export type CopyMeans = Pick<SharedByKeys, 'processId' | 'runtime' | 'watchers' | 'trouble' | 'guards'>

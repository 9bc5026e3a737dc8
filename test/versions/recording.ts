import { readFileSync } from 'node:fs'
import type { FrameType } from '@firebreak/core'

/** What an earlier version sent and stored; created by `record.ts` of that version. */
export interface Recording {
  readonly frames: Readonly<Record<FrameType, string>>
  readonly textReports: Readonly<Record<'1' | '2', string>>
  readonly tableFile: object
  readonly redisStore: readonly (readonly string[])[]
  readonly relayed: string
}

/** Every version that was ever recorded; a new one adds its folder. */
export const versions = ['0.1'] as const

export function recordingOf(version: string): Recording {
  return JSON.parse(readFileSync(new URL(`./${version}/recording.json`, import.meta.url), 'utf8')) as Recording
}

export function frameOf({ frames }: Recording, type: FrameType): Uint8Array {
  return new Uint8Array(Buffer.from(frames[type], 'base64'))
}

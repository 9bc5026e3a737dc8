import { readFileSync } from 'node:fs'
import { type CommandArgument, encodeCommand } from '@firebreak/core'

type ScriptName = 'take' | 'put' | 'renew' | 'drop' | 'elect'

const sources = new Map<ScriptName, string>()

/** An EVAL of one of the scripts beside this file. Copies are written seldom, so the source goes along each time. */
export function encodeScript(
  name: ScriptName,
  keys: readonly CommandArgument[],
  args: readonly CommandArgument[],
): Uint8Array {
  let source = sources.get(name)
  if (source === undefined) {
    source = readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8')
    sources.set(name, source)
  }
  return encodeCommand(['EVAL', source, keys.length, ...keys, ...args])
}

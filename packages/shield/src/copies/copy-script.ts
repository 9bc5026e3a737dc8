import { type CommandArgument, encodeCommand } from '@firebreak/core/resp'
import { luaSource } from '../script/lua-source.ts'

type ScriptName = 'take' | 'put' | 'renew' | 'drop' | 'elect' | 'resign'

/** An EVAL of one of the scripts in this folder. Copies are rarely written, so the source is sent each time. */
export function encodeScript(
  name: ScriptName,
  keys: readonly CommandArgument[],
  args: readonly CommandArgument[],
): Uint8Array {
  return encodeCommand(['EVAL', luaSource(new URL(`./${name}.lua`, import.meta.url)), keys.length, ...keys, ...args])
}

import { openRespClient } from '@firebreak/core/node'
import { encodeCommand } from '@firebreak/core/resp'
import type { RedisServer } from '@firebreak/testkit'

/** Twenty keys, hottest or biggest first, among many that are neither. */
export const plantedNames = Array.from({ length: 20 }, (_, index) => `planted:${String(index).padStart(2, '0')}`)

/** Many small keys that are hardly touched. */
export async function fillSmall(server: RedisServer, count: number): Promise<void> {
  const script = "for i=1,ARGV[1] do redis.call('SET','small:' .. i .. ':x', string.rep('v', i % 40)) end"
  await server.cli('EVAL', script, '0', String(count))
}

/** Elements of the planted list at a place; a string there has 40 bytes for each. */
export function bigElements(index: number): number {
  return Math.round(12_000 * 0.77 ** index)
}

/** Pushes many elements with few commands, so that the list is big and not hot. */
const push = (letter: string) => `
local left = tonumber(ARGV[1])
while left > 0 do
  local items = {}
  for i = 1, math.min(left, 4000) do items[i] = string.rep('${letter}', 37) end
  redis.call('RPUSH', KEYS[1], unpack(items))
  left = left - #items
end`

/** Twenty big strings and lists, each a good deal bigger than the next. */
export async function plantBig(send: (...args: string[]) => Promise<unknown>): Promise<void> {
  for (const [index, name] of plantedNames.entries()) {
    const size = bigElements(index)
    const script =
      index % 4 === 0
        ? "redis.call('SET', KEYS[1], string.rep('x', ARGV[1] * 40))"
        : index % 4 === 1
          ? push('x')
          : index % 4 === 2
            ? "redis.call('SET', KEYS[1], string.rep('y', ARGV[1] * 40))"
            : push('y')
    await send('EVAL', script, '1', name, String(size))
  }
}

/** Sends accesses of the planted keys over the network: the first 2,000 times, each next one 80 times less. */
export async function accessPlanted(port: number, factor = 1): Promise<number> {
  const connection = await openRespClient({ port })
  let sent = 0
  const parts: Uint8Array[] = []
  for (const [index, name] of plantedNames.entries()) {
    const times = Math.round((2000 - index * 80) * factor)
    for (let time = 0; time < times; time++) parts.push(encodeCommand(['GET', name]))
    sent += times
  }
  // Mixed, as real traffic is.
  for (let index = parts.length - 1; index > 0; index--) {
    const other = (index * 7919) % (index + 1)
    const part = parts[index]!
    parts[index] = parts[other]!
    parts[other] = part
  }
  for (let from = 0; from < parts.length; from += 100) {
    const batch = parts.slice(from, from + 100)
    await connection.batch(Buffer.concat(batch), batch.length, () => {})
  }
  connection.close()
  return sent
}

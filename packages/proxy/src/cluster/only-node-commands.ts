import { keySlotOfBytes, slotCount } from '@firebreak/core/commands'
import { encodeReply } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import { integerIn } from '../requests/words.ts'
import { clusterOfOne } from './cluster-of-one.ts'
import { SlotWalk } from './slot-walk.ts'

const ok = Buffer.from('+OK\r\n')
const notInteger = Buffer.from('-ERR value is not an integer or out of range\r\n')
const badSlot = Buffer.from('-ERR Invalid slot\r\n')
const badSlotOrCount = Buffer.from('-ERR Invalid slot or number of keys\r\n')
/** Addressed to a node of a cluster; to the only node that the client sees, they mean nothing. */
const nodeModes: ReadonlySet<string> = new Set(['READONLY', 'READWRITE', 'ASKING'])

/** True if the current request concerns the cluster whose only node the proxy presents itself as. */
export function isForOnlyNode(client: ProxyClient): boolean {
  const { way, name } = client.request.command
  if (way !== 'cluster' && !nodeModes.has(name)) return false
  return client.host.onlyNode(client) !== undefined
}

/**
 * Answers such a request. The keys of a slot are found by `ask` if a node behind the proxy knows them, otherwise among
 * all keys.
 */
export function answerAsOnlyNode(client: ProxyClient, ask?: (slot: number) => void): void {
  const { request, session, host, args } = client
  const { name, row } = request.command
  if (row !== undefined && args.length !== row.arity && !(row.arity < 0 && args.length >= -row.arity)) {
    const shown = name.toLowerCase().replace(' ', '|')
    client.answerNow(Buffer.from(`-ERR wrong number of arguments for '${shown}' command\r\n`))
  } else if (nodeModes.has(name)) client.answerNow(ok)
  else if (name === 'CLUSTER KEYSLOT') {
    const key = request.argument(2)
    client.answerNow(Buffer.from(`:${keySlotOfBytes(key, 0, key.length)}\r\n`))
  } else if (name === 'CLUSTER COUNTKEYSINSLOT' || name === 'CLUSTER GETKEYSINSLOT') keysInSlot(client, ask)
  else client.answerNow(encodeReply(clusterOfOne(name, host.onlyNode(client)!), session.version))
}

function keysInSlot(client: ProxyClient, ask?: (slot: number) => void): void {
  const { request } = client
  const isCount = request.command.name === 'CLUSTER COUNTKEYSINSLOT'
  const slot = integerIn(request.argument(2))
  const most = isCount ? Number.POSITIVE_INFINITY : integerIn(request.argument(3))
  if (slot === undefined || most === undefined) client.answerNow(notInteger)
  else if (slot < 0 || slot >= slotCount || most < 0) client.answerNow(isCount ? badSlot : badSlotOrCount)
  else if (ask !== undefined) ask(slot)
  else new SlotWalk(client, { slot, most, isCount }).goOn()
}

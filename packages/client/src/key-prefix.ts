import { isNodeRedis } from './node-redis/node-redis-client.ts'

/** A key with the client's key prefix. */
export function prefixedKey(client: object, key: string): string | Buffer {
  const { options, _keyPrefix } = client as { options?: { keyPrefix?: unknown }; _keyPrefix?: unknown }
  const prefix = isNodeRedis(client) ? _keyPrefix : options?.keyPrefix
  if (prefix instanceof Uint8Array) return Buffer.concat([prefix, Buffer.from(key)])
  return typeof prefix === 'string' ? prefix + key : key
}

/** A key as it must be written when commands are sent word by word: node-redis then leaves the prefix to the caller. */
export function sentKeyOf(client: object, key: string): string | Buffer {
  return isNodeRedis(client) ? prefixedKey(client, key) : key
}

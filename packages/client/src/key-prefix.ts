import { isNodeRedis } from './node-redis/node-redis-client.ts'

/** What a client puts before every key; bytes are none that we can put into a name. */
export function keyPrefixOf(client: object): string {
  const { options, _keyPrefix } = client as { options?: { keyPrefix?: unknown }; _keyPrefix?: unknown }
  const prefix = isNodeRedis(client) ? _keyPrefix : options?.keyPrefix
  return typeof prefix === 'string' ? prefix : ''
}

/** A key as it must be written where commands are sent word by word: node-redis then leaves the prefix to the caller. */
export function sentKeyOf(client: object, key: string): string {
  return isNodeRedis(client) ? keyPrefixOf(client) + key : key
}

import { describeValue, didYouMean, FirebreakError } from '@firebreak/core'
import { ClientUnsupportedError, UnknownOptionError } from './errors.ts'
import type { ProtectOptions } from './protect-options.ts'

type Kind = 'text' | 'number' | 'boolean' | 'function' | 'object' | 'list' | 'any'

/** Every option with the kind of its value; a missing one does not compile. */
const kinds: Readonly<Record<keyof ProtectOptions, Kind>> = {
  hubs: 'list',
  tables: 'text',
  token: 'text',
  tokenFile: 'text',
  serviceId: 'text',
  hostId: 'text',
  instanceId: 'text',
  agent: 'text',
  tableFile: 'any',
  redactKey: 'function',
  redactKeys: 'list',
  redactSecret: 'text',
  showsValues: 'boolean',
  leaseMs: 'number',
  retry: 'object',
  fallbackTtlMs: 'number',
  canaryMs: 'number',
  maxKeys: 'number',
  maxQueuedReports: 'number',
  maxQueuedEntries: 'number',
  limitProcesses: 'number',
  maxLimitWaiting: 'number',
  maxLimitWaitMs: 'number',
  limitDeadlineMs: 'number',
  diskTier: 'object',
  onWarning: 'function',
  runtime: 'object',
  hubTransport: 'object',
  redisClusterId: 'text',
  shield: 'object',
}

const expected: Readonly<Record<Exclude<Kind, 'any'>, string>> = {
  text: 'a string',
  number: 'a number',
  boolean: 'true or false',
  function: 'a function',
  object: 'an object',
  list: 'an array of strings',
}

/** Throws if an option does not exist or has a value of another kind; undefined is as good as not given. */
export function checkProtectOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const example = "protect(redis, { hubs: ['http://127.0.0.1:7070'], serviceId: 'shop' })"
    throw new FirebreakError(
      'FB_OPTION_INVALID',
      `protect: the options are ${describeValue(options)}; pass an object, as in ${example}`,
    )
  }
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (!Object.hasOwn(kinds, option)) throw unknownOption(option)
    checkKind(option, kinds[option as keyof ProtectOptions], value)
  }
}

function unknownOption(option: string): UnknownOptionError {
  // The names that the variables, the flags and other packages use for the same.
  const other = otherNames[option.toLowerCase()]
  return new UnknownOptionError(option, other ?? didYouMean(option, Object.keys(kinds)), Object.keys(kinds))
}

const otherNames: Readonly<Record<string, keyof ProtectOptions>> = {
  hub: 'hubs',
  huburl: 'hubs',
  hubsurl: 'hubs',
  url: 'hubs',
  service: 'serviceId',
  servicename: 'serviceId',
  host: 'hostId',
  instance: 'instanceId',
  cluster: 'redisClusterId',
  clusterid: 'redisClusterId',
  diskfolder: 'diskTier',
}

function checkKind(option: string, kind: Kind, value: unknown): void {
  if (value === null || kind === 'any') return
  const isRight =
    kind === 'list'
      ? Array.isArray(value) && value.every((one) => typeof one === 'string')
      : typeof value === (kind === 'text' ? 'string' : kind)
  if (isRight) return
  // What should have been a text may be a secret.
  const text = kind === 'text' && typeof value !== 'object' ? `a ${typeof value}` : describeKind(value)
  // What was most likely meant, ready to be copied.
  const hint =
    kind === 'list' && typeof value === 'string' ? `: ${option}: [${value.split(',').map(quoted).join(', ')}]` : ''
  throw Object.assign(
    new FirebreakError(
      'FB_OPTION_INVALID',
      `protect: option ${option} is ${text}; it must be ${expected[kind]}${hint}`,
    ),
    { option },
  )
}

function quoted(text: string): string {
  return describeValue(text.trim()).replaceAll('"', "'")
}

/** A value in words; a function or a class by its name, not its source. */
export function describeKind(value: unknown): string {
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`
  if (value instanceof Promise) return 'a promise'
  return describeValue(value)
}

/** What is passed to `protect` instead of a client, with what to do about it. */
export function unsupportedClient(given: unknown): ClientUnsupportedError {
  if (given instanceof Promise) return new ClientUnsupportedError('a promise', 'await it first')
  if (typeof given === 'function') {
    const call = /^class\b/.test(String(given)) ? `new ${given.name}(…)` : `${given.name}(…)`
    return new ClientUnsupportedError(describeKind(given), `pass what ${call} gives`)
  }
  if (typeof given === 'object' && given !== null && 'client' in given)
    return new ClientUnsupportedError('an object with a client in it', 'write protect(client, { hubs: […] })')
  return new ClientUnsupportedError(describeKind(given))
}

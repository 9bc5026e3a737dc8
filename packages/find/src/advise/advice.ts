import type { Finding } from '../findings/finding.ts'
import type { FoundKey } from '../keys/found-key.ts'
import type { PrefixNode } from '../keys/prefix-tree.ts'

/** A recommendation that follows from a finding. */
export interface Advice {
  /** The key, prefix, node or setting that it concerns. */
  readonly subject: string
  /** The recommended action, as a stable word. */
  readonly action:
    | 'split'
    | 'trim'
    | 'shrink'
    | 'hash-instead-of-keys'
    | 'fields-as-hash'
    | 'add-ttl'
    | 'unlink'
    | 'read-less'
    | 'cache-or-copy'
    | 'spread-writes'
    | 'rebalance'
    | 'lazyfree'
  readonly severity: 'high' | 'medium' | 'low'
  /** What is wrong, with the figure. */
  readonly problem: string
  /** What to do. */
  readonly remedy: string
  /** Commands, ready to type. */
  readonly commands: readonly string[]
  /** True if `--apply` can do it. */
  readonly isApplicable: boolean
}

/** The limits above which something counts as too much. */
export interface AdviceLimits {
  /** Elements of a collection. @default 10000 */
  readonly elements?: number
  /** Bytes of a collection. @default 10 MiB */
  readonly bytes?: number
  /** Bytes of a string. @default 1 MiB */
  readonly stringBytes?: number
  /** Elements of one segment after a split. @default 5000 */
  readonly segmentElements?: number
  /** Share of all accesses that makes a key hot. @default 0.05 */
  readonly hotShare?: number
}

const mib = 1 << 20

/** Turns findings into recommendations; changes nothing. */
export function advise(findings: readonly Finding[], limits: AdviceLimits = {}): Advice[] {
  const advice = findings.flatMap((finding) => [
    ...bigKeysOf(finding).flatMap((key) => adviseBigKey(key, limits)),
    ...(finding.kind === 'hot' ? finding.keys.flatMap((key) => adviseHotKey(key, limits)) : []),
    ...(finding.prefixes === undefined ? [] : advisePrefixes(finding.prefixes)),
    ...(finding.nodes ?? [])
      .filter(({ skew }) => skew > 1.5 && finding.nodes!.length > 1)
      .map((node) => rebalance(node, finding)),
  ])
  if (advice.some(({ action }) => action === 'split' || action === 'unlink' || action === 'trim')) advice.push(lazyFree)
  const order = { high: 0, medium: 1, low: 2 }
  const seen = new Set<string>()
  return advice
    .filter(({ subject, action }) => !seen.has(`${action} ${subject}`) && seen.add(`${action} ${subject}`))
    .sort((a, b) => order[a.severity] - order[b.severity])
}

/** Every key in a big-key finding, once. */
function bigKeysOf(finding: Finding): FoundKey[] {
  if (finding.kind !== 'big') return []
  const keys = new Map<string, FoundKey>()
  for (const key of [
    ...finding.keys,
    ...(finding.types ?? []).flatMap((type) => [...type.byBytes, ...type.byElements]),
  ]) {
    keys.set(`${key.database ?? 0} ${key.key}`, key)
  }
  return [...keys.values()]
}

function adviseBigKey(key: FoundKey, limits: AdviceLimits): Advice[] {
  const {
    elements: maxElements = 10_000,
    bytes: maxBytes = 10 * mib,
    stringBytes = mib,
    segmentElements = 5000,
  } = limits
  const name = quote(key.key)
  const elements = key.elements ?? 0
  const bytes = key.bytes ?? 0
  if (key.type === 'string') return bytes > stringBytes ? [shrink(key, name, bytes)] : []
  if (elements <= maxElements && bytes <= maxBytes) return []
  const size = `${elements.toLocaleString('en-US')} elements, ${formatMib(bytes)}`
  const severity = elements > 20 * maxElements || bytes > 10 * maxBytes ? ('high' as const) : ('medium' as const)
  const about = { subject: key.key, severity, problem: `a ${key.type} of ${size}` }
  switch (key.type) {
    case 'hash':
    case 'set':
    case 'list': {
      const segments = Math.max(2, Math.ceil(elements / segmentElements))
      return [
        {
          ...about,
          action: 'split',
          remedy: `split it into ${segments} segments of about ${segmentElements.toLocaleString('en-US')}: ${segmentRule(key, segments)}`,
          commands: [
            `firebreak find advise --apply split --key ${name} --segments ${segments}`,
            `firebreak find advise --apply cut-over --key ${name}`,
          ],
          isApplicable: true,
        },
        unlink(key, name),
      ]
    }
    case 'zset':
      return [
        {
          ...about,
          action: 'trim',
          remedy:
            'keep only what is read (a leaderboard rarely needs more than its top), or use one sorted set per range of scores',
          commands: [`ZREMRANGEBYRANK ${name} 0 -${maxElements + 1}`, `ZRANGE ${name} 0 99 REV WITHSCORES`],
          isApplicable: false,
        },
      ]
    case 'stream':
      return [
        {
          ...about,
          action: 'trim',
          remedy: 'trim it as it grows; ~ lets the server drop whole nodes, which costs nothing',
          commands: [`XTRIM ${name} MAXLEN ~ ${maxElements}`, `XADD ${name} MAXLEN ~ ${maxElements} * field value`],
          isApplicable: false,
        },
      ]
    default:
      return [unlink(key, name)]
  }
}

function segmentRule(key: FoundKey, segments: number): string {
  return key.type === 'list'
    ? `segment n holds the elements starting at n·size, as ${key.key}:0 … ${key.key}:${segments - 1}`
    : `a ${key.type === 'hash' ? 'field' : 'member'} lives in ${key.key}:N with N = crc32(it) mod ${segments}`
}

function shrink(key: FoundKey, name: string, bytes: number): Advice {
  return {
    subject: key.key,
    action: 'shrink',
    severity: bytes > 10 * mib ? 'high' : 'medium',
    problem: `a string of ${formatMib(bytes)}: every read moves all of it`,
    remedy: 'compress it, read only ranges, or split it into parts of about 100 KB',
    commands: [`GETRANGE ${name} 0 65535`],
    isApplicable: false,
  }
}

function unlink(key: FoundKey, name: string): Advice {
  return {
    subject: key.key,
    action: 'unlink',
    severity: 'low',
    problem: `DEL of ${(key.elements ?? 0).toLocaleString('en-US')} elements blocks the server while it frees them`,
    remedy: 'delete it with UNLINK, which frees memory in the background',
    commands: [`UNLINK ${name}`],
    isApplicable: false,
  }
}

const wholeReads: Readonly<Record<string, string>> = {
  HGETALL: 'HMGET key field …, or HSCAN',
  SMEMBERS: 'SMISMEMBER key member …, SRANDMEMBER, or SSCAN',
  LRANGE: 'LRANGE over the part that is shown',
  ZRANGE: 'ZRANGE over the part that is shown',
  HKEYS: 'HSCAN',
  HVALS: 'HMGET key field …',
  KEYS: 'SCAN',
}

function adviseHotKey(key: FoundKey, limits: AdviceLimits): Advice[] {
  const advice: Advice[] = []
  const name = quote(key.key)
  const whole = Object.entries(key.commands ?? {}).find(([command]) => wholeReads[command] !== undefined)
  if (whole !== undefined) {
    advice.push({
      subject: key.key,
      action: 'read-less',
      severity: 'medium',
      problem: `${whole[0]} reads all of it, ${whole[1].toLocaleString('en-US')} times while we watched`,
      remedy: `read only what is needed: ${wholeReads[whole[0]]}`,
      commands: whole[0] === 'HGETALL' ? [`HMGET ${name} field1 field2`] : [],
      isApplicable: false,
    })
  }
  if ((key.share ?? 0) < (limits.hotShare ?? 0.05)) return advice
  const writes = key.writes ?? 0
  const share = `${((key.share ?? 0) * 100).toFixed(0)} % of all accesses`
  if (writes * 2 > (key.accesses ?? 0)) {
    advice.push({
      subject: key.key,
      action: 'spread-writes',
      severity: 'high',
      problem: `${share}, most of them writes`,
      remedy: 'count in several keys and add them up when reading, or batch writes in the application',
      commands: [
        `INCRBY ${quote(`${key.key}:0`)} 1`,
        `MGET ${[0, 1, 2].map((part) => quote(`${key.key}:${part}`)).join(' ')}`,
      ],
      isApplicable: false,
    })
  } else {
    advice.push({
      subject: key.key,
      action: 'cache-or-copy',
      severity: 'high',
      problem: `${share} go to one key`,
      remedy: 'let Firebreak serve it from memory (LocalCache) or from copies on several nodes (RedundantKeys)',
      commands: [`echo ${quote(ruleFor(key))} | firebreak rules apply -`],
      isApplicable: false,
    })
  }
  return advice
}

/** A rule for this key alone that lets the hub decide by heat. */
function ruleFor({ key }: FoundKey): string {
  const id = `hot-${key.replace(/[^A-Za-z0-9_.:-]+/g, '-').slice(0, 60)}`
  return JSON.stringify({ id, key, threshold: 1000, strategy: 'LocalCache' })
}

/** A small share of a group's keys may deviate without changing the recommendation for the rest. */
const oddShare = 0.05

function advisePrefixes(root: PrefixNode): Advice[] {
  const advice: Advice[] = []
  const visit = (node: PrefixNode): void => {
    for (const child of node.children) visit(child)
    const isLeaf = node.children.length === 0
    if (!isLeaf || node.prefix === '' || node.keys < 10_000) return
    const mean = node.bytes / node.keys
    const isPlain = mean < 200 && node.elements <= node.keys * (1 + oddShare)
    if (isPlain && (node.fields?.length ?? 0) >= 2) advice.push(fieldsAsHash(node))
    else if (isPlain && /<n>$/.test(node.prefix)) advice.push(hashInstead(node, mean))
    const isKept = node.keysWithTtl !== undefined && node.keysWithTtl <= node.keys * oddShare
    if (isKept && node.bytes > root.bytes * 0.05) advice.push(addTtl(node, root))
  }
  visit(root)
  return advice
}

function hashInstead(node: PrefixNode, mean: number): Advice {
  const prefix = asExample(node.prefix.slice(0, -'<n>'.length))
  return {
    subject: node.prefix,
    action: 'hash-instead-of-keys',
    severity: node.keys > 1_000_000 ? 'high' : 'medium',
    problem: `${node.keys.toLocaleString('en-US')} small keys of ${Math.round(mean)} bytes each, half of it overhead of the key itself`,
    remedy:
      'put a few hundred of them into one hash (while it stays a listpack it takes a third of the memory): ' +
      `number n becomes field n % 256 of the hash n / 256, so ${prefix}1000 is field 232 of ${prefix}h3`,
    commands: [
      `HSET ${quote(`${prefix}h3`)} 232 value`,
      `HGET ${quote(`${prefix}h3`)} 232`,
      'CONFIG SET hash-max-listpack-entries 512',
    ],
    isApplicable: false,
  }
}

/** Suggests turning the fields of one entity, each a separate key, into one hash. */
function fieldsAsHash(node: PrefixNode): Advice {
  const key = asExample(node.prefix).replace(/[^A-Za-z0-9>}]$/, '')
  const fields = node.fields!.slice(0, 4)
  return {
    subject: node.prefix,
    action: 'fields-as-hash',
    severity: node.keys > 1_000_000 ? 'high' : 'medium',
    problem: `${node.keys.toLocaleString('en-US')} keys each hold one field of an entity: ${node.fields!.join(', ')}`,
    remedy: `store each entity as one hash, here for ${key}: one key instead of ${node.fields!.length}, read and expired together`,
    commands: [
      `HSET ${quote(key)} ${fields.map((field) => `${quote(field)} value`).join(' ')}`,
      `HMGET ${quote(key)} ${fields.map(quote).join(' ')}`,
    ],
    isApplicable: false,
  }
}

/** A prefix with an example number and id in place of the folded parts. */
function asExample(prefix: string): string {
  return prefix.replaceAll('<n>', '1').replaceAll('<id>', '0a1b2c3d')
}

/** The glob of a prefix's keys, as SCAN takes it. */
function scanGlob(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]]/g, '\\$&').replace(/<n>|<id>/g, '*')}*`.replaceAll('**', '*')
}

function addTtl(node: PrefixNode, root: PrefixNode): Advice {
  return {
    subject: node.prefix,
    action: 'add-ttl',
    severity: 'medium',
    problem: `${node.keys.toLocaleString('en-US')} keys, ${((node.bytes / root.bytes) * 100).toFixed(0)} % of the memory, and ${node.keysWithTtl === 0 ? 'none expires' : `only ${node.keysWithTtl!.toLocaleString('en-US')} expire`}`,
    remedy:
      'give them a TTL plus a random tenth so that they do not expire together (NX, which keeps existing TTLs, needs Redis 7.0)',
    commands: [
      `redis-cli --scan --pattern ${quote(scanGlob(node.prefix))} | ` +
        `awk 'BEGIN { srand() } { printf "EXPIRE \\"%s\\" %d NX\\n", $0, 86400 + rand() * 8640 }' | redis-cli`,
    ],
    isApplicable: false,
  }
}

function rebalance(node: NonNullable<Finding['nodes']>[number], finding: Finding): Advice {
  const slot = finding.slots?.find((candidate) => candidate.node === node.node)
  return {
    subject: node.node,
    action: 'rebalance',
    severity: node.skew > 2.5 ? 'high' : 'medium',
    problem: `${(node.share * 100).toFixed(0)} % of all operations, ${node.skew.toFixed(1)} times the mean over all nodes`,
    remedy:
      slot !== undefined && slot.share > 0.3
        ? `slot ${slot.slot} alone has ${(slot.share * 100).toFixed(0)} %: moving it moves the problem; look at its keys, and at hash tags that force them together`
        : 'move some of its slots to other nodes',
    commands: [
      'firebreak find slots --monitor',
      `redis-cli --cluster rebalance ${node.node} --cluster-use-empty-masters`,
    ],
    isApplicable: false,
  }
}

const lazyFree: Advice = {
  subject: 'lazyfree',
  action: 'lazyfree',
  severity: 'low',
  problem: 'big values are freed in the foreground when they expire, are evicted, overwritten or deleted',
  remedy: 'free memory in the background',
  commands: [
    'CONFIG SET lazyfree-lazy-expire yes',
    'CONFIG SET lazyfree-lazy-eviction yes',
    'CONFIG SET lazyfree-lazy-server-del yes',
    'CONFIG SET lazyfree-lazy-user-del yes',
    'CONFIG SET replica-lazy-flush yes',
  ],
  isApplicable: false,
}

function formatMib(bytes: number): string {
  return bytes >= mib ? `${(bytes / mib).toFixed(1)} MiB` : `${(bytes / 1024).toFixed(0)} KiB`
}

/** Quotes a key for a shell and redis-cli. */
function quote(key: string): string {
  if (/^[A-Za-z0-9_:.<>/{}-]+$/.test(key) && !/[<>{}]/.test(key)) return key
  return `'${key.replaceAll("'", `'\\''`)}'`
}

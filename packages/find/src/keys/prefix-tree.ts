/** One level of the tree: what is below a prefix. */
export interface PrefixNode {
  /** The prefix from the root, with runs of digits and ids folded: `user:<n>:cart`. */
  readonly prefix: string
  readonly keys: number
  readonly bytes: number
  readonly elements: number
  /** How many of the keys expire; absent if it was not looked up. */
  readonly keysWithTtl?: number
  /** After a folded number or id: the names of the keys' last parts, if there are few. */
  readonly fields?: readonly string[]
  readonly children: readonly PrefixNode[]
}

/** How keys are split into levels, and how large the tree may grow. */
export interface PrefixTreeOptions {
  /** Characters that end a level. @default ':' */
  readonly separators?: string
  /** Maximum number of levels. @default 4 */
  readonly maxDepth?: number
  /** Maximum number of nodes; keys that would need more go to their parent's `…`. @default 20000 */
  readonly maxNodes?: number
}

interface Node {
  segment: string
  keys: number
  bytes: number
  elements: number
  keysWithTtl: number
  /** Null once there are too many. */
  fields: Set<string> | null
  children: Map<string, Node> | undefined
}

/**
 * Sums over keys by prefix. Segments that are numbers, hex strings of 8 or more digits, or UUIDs are folded into `<n>`
 * and `<id>`: a million `user:123:cart` are one line instead of a million. What comes after the last separator is only
 * a level of its own if it was folded or the tree is small; the limit on nodes always applies.
 */
export class PrefixTree {
  readonly #separators = new Uint8Array(256)
  readonly #maxDepth: number
  readonly #maxNodes: number
  readonly #root: Node = makeNode('')
  #nodes = 1

  constructor(options: PrefixTreeOptions = {}) {
    for (const char of options.separators ?? ':') this.#separators[char.charCodeAt(0) & 0xff] = 1
    this.#maxDepth = options.maxDepth ?? 4
    this.#maxNodes = options.maxNodes ?? 20_000
  }

  add(key: Buffer, bytes: number, elements: number, hasTtl: boolean): void {
    let node = this.#root
    count(node, bytes, elements, hasTtl)
    let start = 0
    for (let depth = 0; depth < this.#maxDepth && start < key.length; depth++) {
      let end = start
      while (end < key.length && this.#separators[key[end]!] === 0) end++
      const isLast = end === key.length
      const kind = classify(key, start, end)
      // The tail of a key is its own name, not a group, unless it folds.
      if (isLast && kind === undefined) {
        if (isFolded(node)) noteField(node, key, start)
        return
      }
      const name = kind ?? key.toString('latin1', start, end)
      node = this.#child(node, isLast ? name : name + String.fromCharCode(key[end]!))
      count(node, bytes, elements, hasTtl)
      start = end + 1
    }
  }

  /** The tree, heaviest children first; those with less than `minShare` of the root's bytes are omitted. */
  toJSON(minShare = 0.001, isTtlKnown = true): PrefixNode {
    const least = this.#root.bytes * minShare
    return describe(this.#root, '', least, isTtlKnown)
  }

  #child(parent: Node, segment: string): Node {
    parent.children ??= new Map()
    let child = parent.children.get(segment)
    if (child !== undefined) return child
    const name = this.#nodes < this.#maxNodes ? segment : '…'
    child = parent.children.get(name)
    if (child === undefined) {
      child = makeNode(name)
      parent.children.set(name, child)
      this.#nodes++
    }
    return child
  }
}

function makeNode(segment: string): Node {
  return { segment, keys: 0, bytes: 0, elements: 0, keysWithTtl: 0, fields: new Set(), children: undefined }
}

/** An entity has few fields; more are names of their own. */
const maxFields = 32
const maxFieldBytes = 64

function isFolded({ segment }: Node): boolean {
  return segment.startsWith('<n>') || segment.startsWith('<id>')
}

function noteField(node: Node, key: Buffer, start: number): void {
  if (node.fields === null) return
  if (key.length - start <= maxFieldBytes) node.fields.add(key.toString('latin1', start))
  if (node.fields.size > maxFields || key.length - start > maxFieldBytes) node.fields = null
}

function count(node: Node, bytes: number, elements: number, hasTtl: boolean): void {
  node.keys++
  node.bytes += bytes
  node.elements += elements
  if (hasTtl) node.keysWithTtl++
}

function describe(node: Node, prefix: string, least: number, isTtlKnown: boolean): PrefixNode {
  const children = [...(node.children?.values() ?? [])]
    .filter((child) => child.bytes >= least)
    .sort((a, b) => b.bytes - a.bytes || (a.segment < b.segment ? -1 : 1))
    .map((child) => describe(child, prefix + child.segment, least, isTtlKnown))
  const { keys, bytes, elements, keysWithTtl } = node
  const fields = node.fields === null || node.fields.size === 0 ? {} : { fields: [...node.fields].sort() }
  return { prefix, keys, bytes, elements, ...(isTtlKnown ? { keysWithTtl } : {}), ...fields, children }
}

/** `<n>` for digits, `<id>` for long hex and UUIDs, undefined for a name. */
function classify(key: Buffer, start: number, end: number): string | undefined {
  const length = end - start
  if (length === 0) return undefined
  let digits = 0
  for (let at = start; at < end; at++) {
    const byte = key[at]!
    if (byte >= 0x30 && byte <= 0x39) digits++
    else if ((byte < 0x61 || byte > 0x66) && (byte < 0x41 || byte > 0x46) && byte !== 0x2d) return undefined
  }
  if (digits === length) return '<n>'
  return length >= 8 && digits > 0 ? '<id>' : undefined
}

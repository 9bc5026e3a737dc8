import type { RedisType } from '../keys/found-key.ts'

/**
 * Estimates how much memory a key takes in a server, from its dump: the sums that Redis 7's MEMORY USAGE makes, with
 * jemalloc's size classes. Other versions and allocators differ by a few per cent; the ranking of keys does not.
 *
 * Jemalloc rounds a request up to a class: multiples of 16 up to 128, then four classes for each doubling. A string has
 * a header of 1, 3, 5 or 9 bytes by its length and a terminating zero; one of up to 44 bytes is embedded in its object.
 */
export function allocated(bytes: number): number {
  if (bytes <= 8) return 8
  if (bytes <= 128) return (bytes + 15) & ~15
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3)
  return Math.ceil(bytes / step) * step
}

/** A string with its header, allocated on its own. */
export function stringMemory(length: number): number {
  const header = length < 32 ? 1 : length < 256 ? 3 : length < 65536 ? 5 : 9
  return allocated(header + length + 1)
}

const object = 16
const dict = 56
const dictEntry = 24
const quicklist = 40
const quicklistNode = 32
const stream = 80
const streamNode = 4096
/** A level-1 node of 40 bytes in most cases; levels are 1/4 as likely each. */
const skiplistNode = 53.4
const skiplistHeader = 640
/**
 * A pending entry, with its place in the group's tree and in its consumer's: 1 node in each if IDs differ only by their
 * sequence, 2 if they differ by their time.
 */
const pendingEntry = 24 + 2 * (16 + 1.5 * 244)
const longestInObject = 44

/** What was counted while a value was skipped. */
export interface ValueTally {
  elements: number
  /** Sum of the sizes of the strings, each as allocated. */
  stringBytes: number
  /** Sum of the plain lengths of the strings. */
  plainBytes: number
  /** Sum of the sizes of packed blobs, each as allocated. */
  blobBytes: number
  /** Number of packed blobs. */
  blobs: number
  /** The size of the last of them, as allocated. */
  lastBlobBytes: number
  /** The longest single element; 0 if all are in packed blobs, which are not opened. */
  largestBytes: number
  /** Consumer groups, their consumers and pending entries. */
  groups: number
  consumers: number
  pending: number
}

/** The memory of the entry in the keyspace and of the key's name. */
export function keyMemory(keyLength: number): number {
  return dictEntry + stringMemory(keyLength)
}

/** The memory of a plain string value. */
export function stringValueMemory(length: number, isInteger: boolean): number {
  if (isInteger) return object
  return length <= longestInObject ? allocated(object + 3 + length + 1) : object + stringMemory(length)
}

function hashTable(elements: number): number {
  return dict + 8 * Math.max(4, 2 ** Math.ceil(Math.log2(Math.max(1, elements))))
}

function radixTree(elements: number): number {
  // One compressed path and a leaf for the first, then a node for most: consecutive IDs share all but the end.
  const nodes = elements === 0 ? 1 : elements === 1 ? 2 : Math.round(elements * 1.25 + 2)
  return elements * 16 + nodes * 244
}

/** The memory of a value, without its key. */
export function valueMemory(type: RedisType, encoding: string, tally: ValueTally): number {
  switch (type) {
    case 'list':
      if (encoding === 'quicklist' || encoding === 'linkedlist') {
        // A plain list of old dumps becomes packed nodes of up to 8 KB when it is loaded.
        const nodes = encoding === 'quicklist' ? tally.blobs : Math.ceil(tally.plainBytes / 8192)
        const content = encoding === 'quicklist' ? tally.blobBytes : tally.plainBytes + 2 * tally.elements
        return object + quicklist + nodes * quicklistNode + content
      }
      return object + quicklist + quicklistNode + tally.blobBytes
    case 'set':
    case 'hash':
      if (encoding !== 'hashtable') return object + tally.blobBytes
      return object + hashTable(tally.elements) + tally.elements * dictEntry + tally.stringBytes
    case 'zset':
      if (encoding !== 'skiplist') return object + tally.blobBytes
      return (
        object +
        48 +
        hashTable(tally.elements) +
        skiplistHeader +
        tally.elements * (dictEntry + skiplistNode) +
        tally.stringBytes
      )
    case 'stream':
      return (
        object +
        stream +
        radixTree(tally.blobs) +
        tally.blobBytes +
        // The node being filled is allocated at its full size from the start.
        (tally.blobs === 0 ? 0 : Math.max(0, streamNode - tally.lastBlobBytes)) +
        tally.groups * (48 + 244) +
        tally.consumers * (48 + 244) +
        tally.pending * pendingEntry +
        tally.stringBytes
      )
    default:
      return object + tally.plainBytes
  }
}

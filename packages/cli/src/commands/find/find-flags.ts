import { connectionFlags } from '../../connect/connection-flags.ts'
import type { FlagSpec } from '../../flags/flag-table.ts'

/** How results are printed and where else they go. */
export const outputFlags: readonly FlagSpec[] = [
  { name: 'json', help: 'the whole finding as one JSON object' },
  { name: 'ndjson', help: 'one JSON object for each key' },
  { name: 'csv', help: 'comma-separated values' },
  {
    name: 'hub',
    value: 'URL',
    help: 'also send the finding to this hub, where the console shows it',
    env: 'FIREBREAK_FIND_HUB',
  },
  {
    name: 'fail-on',
    value: 'COND',
    help: 'exit 3 where a key meets it: bytes>10mb, elements>100000, ops>5000, share>0.2, skew>2',
  },
  { name: 'quiet', short: 'q', help: 'no progress and no notes' },
]

/** What every way of looking takes. */
export const lookFlags: readonly FlagSpec[] = [
  { name: 'top', value: 'N', help: 'keys in each list', default: '20' },
  { name: 'match', value: 'GLOB', help: 'only keys that match' },
  { name: 'type', value: 'TYPE', help: 'only string, list, set, zset, hash, stream or module' },
  { name: 'max-time', value: 'TIME', help: 'end after this long with what was found' },
]

const scanFlags: readonly FlagSpec[] = [
  { name: 'throttle', value: 'N', help: 'keys a second and server at most' },
  { name: 'count', value: 'N', help: "SCAN's COUNT (default 32)" },
  { name: 'gentle', help: 'pause for as long as each page took: half the speed, and nobody notices' },
]

const monitorFlags: readonly FlagSpec[] = [
  { name: 'duration', value: 'TIME', help: 'how long to watch', default: '10s' },
  { name: 'burst', value: 'TIME', help: 'MONITOR at a time', default: '500ms' },
  { name: 'rest', value: 'TIME', help: 'rest between bursts; 0 watches without a break', default: '500ms' },
  { name: 'max-bytes', value: 'SIZE', help: 'bytes to read of a server at most', default: '64mb' },
]

const captureFlags: readonly FlagSpec[] = [
  { name: 'file', value: 'FILE', help: 'a pcap or pcapng file instead of the network; - is stdin' },
  { name: 'interface', short: 'i', value: 'NAME', help: 'network interface', default: 'any' },
  { name: 'ports', value: 'LIST', help: 'ports of the servers, with commas (default: that of the server)' },
  { name: 'buffer', value: 'SIZE', help: "the kernel's buffer for packets", default: '64mb' },
]

/** The flags of each subcommand. */
export const findFlags: Readonly<Record<string, readonly FlagSpec[]>> = {
  hot: [
    { name: 'scan', help: 'by the access counters of an LFU server (the default)' },
    { name: 'monitor', help: 'by MONITOR, in bursts' },
    { name: 'capture', help: 'by reading the network with tcpdump, or --file' },
    { name: 'server', help: 'by HOTKEYS of Redis 8.6, Valkey 9.2' },
    ...lookFlags,
    ...scanFlags,
    { name: 'resample', value: 'TIME', help: 'read the hottest counters again after this long', default: '2s' },
    ...monitorFlags,
    ...captureFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
  big: [
    { name: 'scan', help: 'by SCAN and MEMORY USAGE (the default)' },
    { name: 'rdb', value: 'FILE', help: 'in a dump; - is stdin' },
    { name: 'live', help: 'in the data that a server sends to a replica (PSYNC)' },
    ...lookFlags,
    { name: 'min-bytes', value: 'SIZE', help: 'only keys of this memory or more' },
    { name: 'min-elements', value: 'N', help: 'only keys of so many elements or more' },
    { name: 'samples', value: 'N', help: "MEMORY USAGE's SAMPLES; 0 looks at all", default: '5' },
    { name: 'elements', help: 'count elements even where that touches LRU and LFU (masters before 7.2)' },
    { name: 'masters', help: 'read masters, not replicas' },
    { name: 'separators', value: 'CHARS', help: 'where a prefix ends', default: ':' },
    { name: 'depth', value: 'N', help: 'levels of prefixes', default: '4' },
    ...scanFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
  slots: [
    { name: 'monitor', help: 'find the keys of the busiest node with MONITOR' },
    { name: 'capture', help: 'find slots and keys by reading the network' },
    { name: 'skew', value: 'N', help: 'a node with more than this times the mean is skewed', default: '1.5' },
    ...lookFlags,
    ...monitorFlags.map((flag) => (flag.name === 'duration' ? { ...flag, default: '5s' } : flag)),
    ...captureFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
  advise: [
    {
      name: 'from',
      value: 'FILE',
      help: 'findings to read, as --json printed them; - is stdin (default: look now, with --scan)',
    },
    { name: 'apply', value: 'WHAT', help: 'split or cut-over; without it nothing is changed' },
    { name: 'key', value: 'KEY', help: 'the key to split or cut over' },
    { name: 'segments', value: 'N', help: 'how many (default: one for each 5,000 elements)' },
    { name: 'batch', value: 'N', help: 'elements in one step', default: '1000' },
    { name: 'throttle', value: 'N', help: 'elements (or keys) a second at most' },
    { name: 'max-elements', value: 'N', help: 'collections of more are too big', default: '10000' },
    { name: 'max-size', value: 'SIZE', help: 'collections of more are too big', default: '10mb' },
    ...lookFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
}

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
    help: 'exit with 3 if a key meets the condition: bytes>10mb, elements>100000, ops>5000, share>0.2, skew>2',
  },
  { name: 'quiet', short: 'q', help: 'no progress and no notes' },
]

/** Flags of every search method. */
export const lookFlags: readonly FlagSpec[] = [
  { name: 'top', value: 'N', help: 'number of keys in each list', default: '20' },
  { name: 'match', value: 'GLOB', help: 'only keys that match' },
  { name: 'type', value: 'TYPE', help: 'only string, list, set, zset, hash, stream or module' },
  { name: 'max-time', value: 'TIME', help: 'stop after this long and print what was found' },
]

const scanFlags: readonly FlagSpec[] = [
  { name: 'throttle', value: 'N', help: 'maximum keys per second and server' },
  { name: 'count', value: 'N', help: "SCAN's COUNT (default 32)" },
  { name: 'gentle', help: 'pause after each page for as long as it took: half the speed, no noticeable load' },
]

const monitorFlags: readonly FlagSpec[] = [
  { name: 'duration', value: 'TIME', help: 'how long to watch', default: '10s' },
  { name: 'burst', value: 'TIME', help: 'length of each MONITOR burst', default: '500ms' },
  { name: 'rest', value: 'TIME', help: 'pause between bursts; 0 watches without a break', default: '500ms' },
  { name: 'max-bytes', value: 'SIZE', help: 'maximum bytes to read from a server', default: '64mb' },
]

const captureFlags: readonly FlagSpec[] = [
  { name: 'file', value: 'FILE', help: 'a pcap or pcapng file instead of the network; - is stdin' },
  { name: 'interface', short: 'i', value: 'NAME', help: 'network interface', default: 'any' },
  { name: 'ports', value: 'LIST', help: 'server ports, separated by commas (default: that of the server)' },
  { name: 'buffer', value: 'SIZE', help: "the kernel's buffer for packets", default: '64mb' },
]

/** The flags of each subcommand. */
export const findFlags: Readonly<Record<string, readonly FlagSpec[]>> = {
  hot: [
    { name: 'scan', help: 'by the access counters of an LFU server (the default)' },
    { name: 'monitor', help: 'by MONITOR, in bursts' },
    { name: 'capture', help: 'by reading network traffic with tcpdump, or from --file' },
    { name: 'server', help: 'by HOTKEYS of Redis 8.6, Valkey 9.2' },
    ...lookFlags,
    ...scanFlags,
    { name: 'resample', value: 'TIME', help: 're-read the hottest counters after this long', default: '2s' },
    ...monitorFlags,
    ...captureFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
  big: [
    { name: 'scan', help: 'by SCAN and MEMORY USAGE (the default)' },
    { name: 'rdb', value: 'FILE', help: 'from a dump; - is stdin' },
    { name: 'live', help: 'from the data that a server sends to a replica (PSYNC)' },
    ...lookFlags,
    { name: 'min-bytes', value: 'SIZE', help: 'only keys with at least this much memory' },
    { name: 'min-elements', value: 'N', help: 'only keys with at least this many elements' },
    { name: 'samples', value: 'N', help: "MEMORY USAGE's SAMPLES; 0 means all", default: '5' },
    { name: 'elements', help: 'count elements even if that affects LRU and LFU data (masters before 7.2)' },
    { name: 'masters', help: 'read masters, not replicas' },
    { name: 'separators', value: 'CHARS', help: 'characters that end a prefix', default: ':' },
    { name: 'depth', value: 'N', help: 'number of prefix levels', default: '4' },
    ...scanFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
  slots: [
    { name: 'monitor', help: 'find the keys of the busiest node with MONITOR' },
    { name: 'capture', help: 'find slots and keys by reading network traffic' },
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
      help: 'findings to read, as printed by --json; - is stdin (default: run --scan now)',
    },
    { name: 'apply', value: 'WHAT', help: 'split or cut-over; without this, nothing is changed' },
    { name: 'key', value: 'KEY', help: 'the key to split or cut over' },
    { name: 'segments', value: 'N', help: 'number of segments (default: one per 5,000 elements)' },
    { name: 'batch', value: 'N', help: 'elements per step', default: '1000' },
    { name: 'throttle', value: 'N', help: 'maximum elements (or keys) per second' },
    { name: 'max-elements', value: 'N', help: 'collections above this are too big', default: '10000' },
    { name: 'max-size', value: 'SIZE', help: 'collections above this are too big', default: '10mb' },
    ...lookFlags,
    ...outputFlags,
    ...connectionFlags,
  ],
}

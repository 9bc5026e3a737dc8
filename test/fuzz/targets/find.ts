import { FirebreakError } from '@firebreak/core'
import { encodeCommand } from '@firebreak/core/resp'
import { CaptureReader, RdbParser } from '@firebreak/find'
import { parseMonitorLine } from '../../../packages/find/src/monitor/monitor-line.ts'
import { finFlag, ipPacket, pcap, pcapng, synFlag } from '../../../packages/find/src/testing/packets.ts'
import {
  length,
  listpack,
  longLength,
  RdbBuilder,
  text,
  ziplist,
  zipmap,
} from '../../../packages/find/src/testing/rdb-builder.ts'
import { chunksOf } from '../random.ts'
import { type FuzzTarget, LawBroken } from '../target.ts'

function rdbSeeds(): Buffer[] {
  const common = (builder: RdbBuilder) =>
    builder
      .raw([0xfa])
      .raw(text('redis-ver'))
      .raw(text('7.0.15'))
      .raw([0xfe, 0, 0xfb, 2, 1])
      .key(0, 'string', text('value'))
      .key(1, 'list', length(2), text('a'), text('b'))
      .key(4, 'hash', length(1), text('f'), text('v'))
  return [
    common(new RdbBuilder(9)).build(),
    common(new RdbBuilder(11))
      .key(10, 'zl', text(ziplist(['a', 'bb'])))
      .key(9, 'zm', text(zipmap([['f', 'v']])))
      .build(),
    common(new RdbBuilder(12))
      .key(16, 'lp', text(listpack(['a', 5n])))
      .key(17, 'z', text(listpack(['m', '1'])))
      .key(18, 'ql', length(1), length(2), text(listpack(['x'])))
      .build(),
    new RdbBuilder(10)
      .key(0, 'lzf', Buffer.from([0xc3, 5, 20, 1, 0x61, 0x61, 0xe0, 9]))
      .key(0, 'int', Buffer.from([0xc1, 5, 0]))
      .build(),
    new RdbBuilder(11)
      .key(
        15,
        'stream',
        length(1),
        text(Buffer.alloc(16)),
        text(listpack(['1', '0', '1', 'f', '0'])),
        length(1),
        length(1),
        length(0),
        length(0),
      )
      .build(),
    new RdbBuilder(80, 'VALKEY').key(0, 'k', longLength(5n), Buffer.from('value')).build(),
  ]
}

function readDump(chunks: readonly Buffer[]): string {
  const seen: string[] = []
  try {
    const parser = new RdbParser({
      key: ({ key, type, bytes, elements }) => seen.push(`${key.toString('latin1')} ${type} ${bytes} ${elements}`),
      auxiliary: (name, value) => seen.push(`${name}=${value}`),
      note: (note) => seen.push(note),
    })
    for (const chunk of chunks) parser.push(chunk)
    if (!parser.isDone) parser.end()
  } catch (error) {
    if (!(error instanceof FirebreakError)) throw error
    seen.push(`${error.code} ${error.message}`)
  }
  return seen.join('\n')
}

export const rdbTarget: FuzzTarget = {
  name: 'rdb',
  words: [
    'REDIS0011',
    '\xfa',
    '\xfc',
    '\xfd',
    '\xfe',
    '\xff',
    '\xfb',
    '\xf7',
    '\xf8',
    '\x80\xff\xff\xff\xff',
    '\x81\xff\xff\xff\xff\xff\xff\xff\xff',
    '\xc3',
    '\xc0',
  ],
  seeds: rdbSeeds,
  run(input) {
    const whole = readDump([input])
    const chunked = readDump(chunksOf(input))
    if (whole !== chunked)
      throw new LawBroken(`a dump read in chunks is another one: ${whole.slice(-300)}\nbut ${chunked.slice(-300)}`)
  },
}

function readCapture(chunks: readonly Buffer[]): string {
  const reader = new CaptureReader({ ports: [6379] })
  try {
    for (const chunk of chunks) reader.push(chunk)
    reader.end()
  } catch (error) {
    if (!(error instanceof FirebreakError)) throw error
    return `${error.code} ${error.message}`
  }
  return JSON.stringify(reader.counts)
}

export const captureTarget: FuzzTarget = {
  name: 'pcap',
  words: ['*2\r\n$3\r\nGET\r\n$1\r\nk\r\n', '\xff\xff\xff\xff', '\x00\x00\x00\x00', '\x16\x03\x01'],
  seeds() {
    const packets = (version: 4 | 6) => [
      ipPacket({ sequence: 99, flags: synFlag }, version),
      ipPacket({ sequence: 100, payload: encodeCommand(['GET', 'key']) }, version),
      ipPacket({ sequence: 140, payload: encodeCommand(['SET', 'a', 'b']) }, version),
      ipPacket({ sequence: 122, payload: encodeCommand(['PING']) }, version),
      ipPacket({ sequence: 171, flags: finFlag }, version),
    ]
    return [
      pcap(packets(4)),
      pcap(packets(6), 101, { isBig: true }),
      pcapng(packets(4)),
      pcap(packets(4), 113, { snapBytes: 60 }),
    ]
  },
  run(input) {
    const whole = readCapture([input])
    const chunked = readCapture(chunksOf(input))
    if (whole !== chunked) throw new LawBroken(`a capture read in chunks is another one: ${whole} but ${chunked}`)
  },
}

export const monitorTarget: FuzzTarget = {
  name: 'monitor',
  words: ['"', '\\"', '\\x00', '\\', '] ', '[0 '],
  seeds: () => [
    Buffer.from('+1700000000.123456 [0 127.0.0.1:5000] "GET" "key\\x00\\"a"'),
    Buffer.from('1700000000.1 [3 unix:/tmp/a b] "EVAL" "return 1" "0"'),
    Buffer.from('1700000000.1 [0 lua] "SET" "a" "b"'),
  ],
  run(input) {
    parseMonitorLine(input.toString('latin1'))
  },
}

import { encodeCommand } from '@firebreak/core/resp'
import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CaptureFormatError } from '../errors.ts'
import { finFlag, ipPacket, linkHeaders, pcap, pcapng, synFlag } from '../testing/packets.ts'
import { CaptureReader } from './capture-reader.ts'
import { type CommandCounts, CommandStream } from './command-stream.ts'
import { TcpReassembly } from './tcp-reassembly.ts'

const command = (...args: string[]) => Buffer.from(encodeCommand(args))

function read(capture: Buffer, pieceBytes = capture.length): CaptureReader {
  const reader = new CaptureReader()
  for (let at = 0; at < capture.length; at += pieceBytes)
    reader.push(Buffer.from(capture.subarray(at, at + pieceBytes)))
  reader.end()
  return reader
}

/** A connection that sends the given bytes in segments of the given size. */
function conversation(bytes: Buffer, segmentBytes: number, version: 4 | 6 = 4, start = 0xfffffff0): Buffer[] {
  const packets = [ipPacket({ sequence: start, flags: synFlag }, version)]
  for (let at = 0; at < bytes.length; at += segmentBytes) {
    packets.push(ipPacket({ sequence: start + 1 + at, payload: bytes.subarray(at, at + segmentBytes) }, version))
  }
  packets.push(ipPacket({ sequence: start + 1 + bytes.length, flags: finFlag }, version))
  return packets
}

const talk = Buffer.concat([
  command('SET', 'user:1', 'x'.repeat(10_000)),
  command('GET', 'user:1'),
  command('MGET', 'a', 'b', 'user:1'),
  Buffer.from('PING\r\n'),
  command('HELLO', '3'),
  command('EVAL', 'return 1', '1', 'scripted'),
])

describe.each(['pcap', 'pcap with the other byte order', 'pcapng'])('%s', (format) => {
  test.each(Object.keys(linkHeaders).map(Number))('commands on link type %i, over IPv4 and IPv6', (linkType) => {
    for (const version of [4, 6] as const) {
      for (const segmentBytes of [7, 100, 65000]) {
        const packets = conversation(talk, segmentBytes, version)
        const capture =
          format === 'pcapng' ? pcapng(packets, linkType) : pcap(packets, linkType, { isBig: format !== 'pcap' })
        for (const pieceBytes of [capture.length, 1000]) {
          const reader = read(capture, pieceBytes)
          expect(reader.counts).toMatchObject({ commands: 6, gaps: 0, flows: 1, skippedBytes: 0 })
          const [first] = reader.counter.hottest(10, 1)
          expect(first).toMatchObject({ key: 'user:1', accesses: 3, writes: 1, commands: { SET: 1, GET: 1, MGET: 1 } })
          expect(reader.counter.hottest(10, 1).map(({ key }) => key)).toEqual(['user:1', 'a', 'b', 'scripted'])
        }
      }
    }
  })
})

test('time on the wire gives the rate', () => {
  expect(read(pcap(conversation(talk, 5000))).seconds).toBe(4)
  expect(read(pcapng(conversation(talk, 5000))).seconds).toBe(4)
})

test('a packet cut by the capture is a gap, and reading goes on behind it', () => {
  const packets = conversation(Buffer.concat([command('SET', 'k', 'v'.repeat(772)), command('GET', 'after')]), 400)
  const reader = read(pcap(packets, 1, { snapBytes: 200 }))
  expect(reader.counts.gaps).toBeGreaterThan(0)
  expect(reader.counts.lostBytes).toBeGreaterThan(0)
  expect(reader.counter.hottest(5, 1).map(({ key }) => key)).toContain('after')
})

test('TLS is distinguished from RESP and counted', () => {
  const hello = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
  const { counts } = read(pcap(conversation(Buffer.concat([hello, Buffer.alloc(400, 42)]), 100)))
  expect(counts).toMatchObject({ tlsConnections: 1, commands: 0 })
})

test('fragments and packets to other ports are counted, not read', () => {
  const fragment = ipPacket({ sequence: 1, payload: talk.subarray(0, 100) })
  fragment[6] = 0x20
  const other = ipPacket({ sequence: 1, payload: talk.subarray(0, 100), port: 80 })
  expect(read(pcap([fragment, other])).counts).toMatchObject({ fragments: 1, otherPackets: 1, commands: 0 })
})

test('anything but a capture, or a damaged one, is refused with the offset', () => {
  const fail = (bytes: Buffer) => {
    try {
      read(bytes)
    } catch (error) {
      expect(error).toBeInstanceOf(CaptureFormatError)
      return error as CaptureFormatError
    }
    throw new Error('it was taken for a capture')
  }
  expect(fail(Buffer.from('GET / HTTP/1.1\r\nHost: example\r\n')).message).toMatch(/neither pcap nor pcapng/)
  const capture = pcap(conversation(talk, 1000))
  expect(fail(capture.subarray(0, capture.length - 3)).message).toMatch(/middle of a packet/)
  const damaged = Buffer.from(capture)
  damaged.writeUInt32LE(0x7fffffff, 24 + 8)
  expect(fail(damaged)).toMatchObject({ offset: 24 })
})

/** Commands whose values contain nothing that looks like a command. */
const commands = fc.array(
  fc.tuple(
    fc.constantFrom('SET', 'GET', 'LPUSH', 'HSET'),
    fc.stringMatching(/^[a-z]{1,12}$/),
    fc.stringMatching(/^[a-z0-9 ]{0,300}$/),
  ),
  { minLength: 1, maxLength: 30 },
)

function decode(run: (streams: TcpReassembly) => void): {
  seen: string[]
  streams: TcpReassembly
  counts: CommandCounts
} {
  const seen: string[] = []
  const counts: CommandCounts = { commands: 0, skippedBytes: 0, resyncs: 0 }
  const streams = new TcpReassembly(
    () => new CommandStream((args) => seen.push(args.map((arg) => Buffer.from(arg).toString()).join(' ')), counts),
  )
  run(streams)
  streams.closeAll()
  return { seen, streams, counts }
}

test('segments that arrive twice, late, split differently or in any order give every command once and in order', () => {
  fc.assert(
    fc.property(
      commands,
      fc.integer({ min: 1, max: 80 }),
      fc.integer(),
      fc.nat(0xffffffff),
      (list, size, seed, start) => {
        const bytes = Buffer.concat(list.map((args) => command(...args)))
        let state = seed
        const random = () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff
        const segments: { at: number; end: number; order: number }[] = []
        for (let at = 0; at < bytes.length; at += size) {
          const end = Math.min(bytes.length, at + size)
          segments.push({ at, end, order: at / size + random() * 12 })
          // Sent again, with more or less around it.
          if (random() < 0.3) {
            const from = Math.max(0, at - Math.floor(random() * size))
            const to = Math.min(bytes.length, end + Math.floor(random() * size))
            segments.push({ at: from, end: to, order: at / size + random() * 20 })
          }
        }
        segments.sort((a, b) => a.order - b.order)
        const { seen, streams } = decode((tcp) => {
          tcp.open('flow', start)
          for (const { at, end } of segments) tcp.add('flow', (start + 1 + at) >>> 0, bytes.subarray(at, end))
        })
        expect(seen).toEqual(list.map((args) => args.join(' ')))
        expect(streams.counts.gaps).toBe(0)
      },
    ),
    { numRuns: scale(300, 20_000) },
  )
})

test('lost segments cost only the commands they were part of, and no others are invented', () => {
  fc.assert(
    fc.property(
      commands,
      fc.integer({ min: 20, max: 200 }),
      fc.array(fc.nat(60), { maxLength: 5 }),
      (list, size, lost) => {
        const bytes = Buffer.concat(list.map((args) => command(...args)))
        const expected = list.map((args) => args.join(' '))
        let lostBytes = 0
        const { seen, streams } = decode((tcp) => {
          tcp.open('flow', 7)
          for (let at = 0, index = 0; at < bytes.length; at += size, index++) {
            const segment = bytes.subarray(at, at + size)
            if (lost.includes(index)) lostBytes += segment.length
            else tcp.add('flow', 8 + at, segment)
          }
        })
        let position = 0
        for (const one of seen) {
          const found = expected.indexOf(one, position)
          expect(found, one).toBeGreaterThanOrEqual(0)
          position = found + 1
        }
        expect(streams.counts.lostBytes).toBeLessThanOrEqual(lostBytes)
        if (lostBytes === 0) expect(seen).toEqual(expected)
        // A lost segment can affect the commands that it touches and the one right after it.
        const spoiled = lost.length * (Math.ceil(size / 20) + 2)
        expect(seen.length).toBeGreaterThanOrEqual(expected.length - spoiled)
      },
    ),
    { numRuns: scale(300, 20_000) },
  )
})

test('data that waits for a lost segment is bounded, and so are connections', () => {
  const sink = { bytes: 0, gaps: 0 }
  const tcp = new TcpReassembly(
    () => ({ data: (bytes) => void (sink.bytes += bytes.length), gap: () => void sink.gaps++ }),
    { maxWaitingBytes: 1000, maxFlows: 3 },
  )
  tcp.open('a', 0)
  for (let index = 1; index <= 50; index++) tcp.add('a', 1 + index * 100, new Uint8Array(100))
  expect(sink).toEqual({ bytes: 5000, gaps: 1 })
  for (const name of ['b', 'c', 'd', 'e']) tcp.open(name, 1)
  expect(tcp.counts.droppedFlows).toBe(2)
})

test('a connection whose start was not captured is read from its next command on', () => {
  const middle = talk.subarray(5000)
  const packets = conversation(middle, 500).slice(1)
  const { counts, counter } = read(pcap(packets))
  expect(counts.resyncs).toBe(1)
  expect(counter.hottest(10, 1)[0]).toMatchObject({ key: 'user:1', accesses: 2 })
})

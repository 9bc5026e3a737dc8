import { systemRuntime } from '@firebreak/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Outlet } from './outlet.ts'
import type { Transport } from './transport.ts'
import { Turn } from './turn.ts'

/** Accepts writes like a socket that has not sent them yet: it reads the memory later. */
class SlowTransport implements Transport {
  readonly written: Buffer[] = []
  readonly queuedBytes = 0
  readonly peer = ''
  readonly local = ''

  write(bytes: Buffer): boolean {
    this.written.push(bytes)
    return false
  }

  get text(): string {
    return Buffer.concat(this.written).toString('latin1')
  }

  pause(): void {}
  resume(): void {}
  finish(): void {}
  end(): void {}
  destroy(): void {}
}

interface Put {
  /** Letters, all different, so that any change of order shows. */
  readonly text: string
  readonly isKept: boolean
  /** The event ends after it. */
  readonly endsEvent: boolean
  /** The buffered bytes are written after it. */
  readonly isFlushed: boolean
}

test('all bytes are sent once and in order, whatever happens to memory that is not kept', () => {
  const put = fc.record({
    text: fc.string({ minLength: 1, maxLength: 60 }),
    isKept: fc.boolean(),
    endsEvent: fc.boolean(),
    isFlushed: fc.boolean(),
  })
  const settings = fc.record({
    puts: fc.array(put, { maxLength: 40 }),
    isOpenAtOnce: fc.boolean(),
    isInEvents: fc.boolean(),
  })
  fc.assert(
    fc.property(
      settings,
      ({ puts, isOpenAtOnce, isInEvents }: { puts: Put[]; isOpenAtOnce: boolean; isInEvents: boolean }) => {
        const turn = new Turn(systemRuntime)
        const outlet = new Outlet('client', turn)
        const transport = new SlowTransport()
        if (isOpenAtOnce) outlet.open(transport)
        const kept = Buffer.from(puts.map(({ text }) => text).join(''), 'latin1')
        const scratch = Buffer.alloc(kept.length)
        let at = 0
        if (isInEvents) turn.beginEvent()
        for (const { text, isKept, endsEvent, isFlushed } of puts) {
          const end = at + text.length
          if (isKept) outlet.put(kept, at, end, true)
          else {
            kept.copy(scratch, at, at, end)
            outlet.put(scratch, at, end)
          }
          at = end
          if (isFlushed) outlet.flush()
          if (!endsEvent || !isInEvents) continue
          turn.endEvent()
          scratch.fill(0)
          turn.beginEvent()
        }
        if (isInEvents) turn.endEvent()
        scratch.fill(0)
        if (!isOpenAtOnce) outlet.open(transport)
        expect(outlet.queuedBytes + transport.text.length).toBe(kept.length)
        outlet.flush()
        expect(transport.text).toBe(kept.toString('latin1'))
        expect(outlet.queuedBytes).toBe(0)
      },
    ),
  )
})

test('a kept buffer is not copied if it is sent alone, and is shared as one view if it goes to many', () => {
  const kept = Buffer.from('reply reply reply ')
  const transports = [1, 2].map(() => {
    const turn = new Turn(systemRuntime)
    const outlet = new Outlet('client', turn)
    const transport = new SlowTransport()
    outlet.open(transport)
    turn.beginEvent()
    outlet.put(kept, 0, 6, true)
    outlet.put(kept, 6, 12, true)
    turn.endEvent()
    outlet.flush()
    return transport
  })
  const views = transports.map(({ written }) => written)
  expect(views.map(([view]) => [view!.buffer === kept.buffer, view!.toString()])).toEqual([
    [true, 'reply reply '],
    [true, 'reply reply '],
  ])
  expect(views[0]![0]).toBe(views[1]![0])
})

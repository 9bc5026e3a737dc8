import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReplySlots } from './reply-slots.ts'

test('whatever the order in which pieces of replies arrive, they are sent in the order of the requests', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }), { maxLength: 20 }),
      fc.infiniteStream(fc.nat()),
      (replies, picks) => {
        let out = ''
        const slots = new ReplySlots({
          put: (bytes, start, end) => (out += Buffer.from(bytes.subarray(start, end)).toString()),
        })
        const open = replies.map((pieces) => ({ slot: slots.take(), pieces: [...pieces] }))
        while (open.length > 0) {
          const index = picks.next().value! % open.length
          const { slot, pieces } = open[index]!
          const piece = Buffer.from(pieces.shift()!)
          slots.reply(slot, piece, 0, piece.length, pieces.length === 0)
          if (pieces.length === 0) open.splice(index, 1)
        }
        expect(out).toBe(replies.flat().join(''))
        expect(slots.owed).toBe(0)
        expect(slots.waitingBytes).toBe(0)
        expect(slots.next).toBe(0)
      },
    ),
  )
})

import { encodeCommand } from '@firebreak/core/resp'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RequestRest } from './request-rest.ts'

test('however the rest of a request is split, its end is found', () => {
  const args = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(
      args,
      fc.nat(1000),
      fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 60 }),
      (args, cut, pieces) => {
        // The first argument is the current one: its missing part, then the others.
        const first = args[0]!
        const rest = encodeCommand(args).subarray(4 + `$${first.length}\r\n`.length)
        const head = cut % (first.length + 2)
        const following = Buffer.from('*1\r\n$4\r\nPING\r\n')
        const stream = Buffer.concat([rest.subarray(head), following])
        const request = new RequestRest(first.length + 2 - head, args.length - 1)
        let at = 0
        for (const piece of [...pieces, stream.length]) {
          if (request.isDone) break
          const end = Math.min(stream.length, at + piece)
          at = request.take(stream, at, end)
          if (!request.isDone) expect(at).toBe(end)
        }
        expect(stream.subarray(at)).toEqual(following)
      },
    ),
  )
})

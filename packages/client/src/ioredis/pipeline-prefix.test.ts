import { expect, test } from 'vitest'
import { PipelinePrefix } from './pipeline-prefix.ts'

function sink() {
  const written: (string | Buffer)[] = []
  return { written, write: (data: string | Buffer) => written.push(data) }
}

test('what is sent in the middle of a pipeline goes out before the command that must not overtake it', () => {
  const socket = sink()
  const pipeline = sink()
  const prefix = new PipelinePrefix(pipeline, socket)
  const answer = prefix.gather(() => {
    socket.write('first ')
    socket.write('second ')
    return 'sent'
  })
  expect(answer).toBe('sent')
  expect([socket.written, pipeline.written]).toEqual([[], []])
  prefix.own.write('own')
  expect(pipeline.written).toEqual(['first second own'])
  // Only once: the next command of the pipeline is sent alone.
  prefix.own.write('next')
  expect(pipeline.written).toEqual(['first second own', 'next'])
})

test('bytes and text are joined as bytes', () => {
  const socket = sink()
  const pipeline = sink()
  const prefix = new PipelinePrefix(pipeline, socket)
  prefix.gather(() => socket.write(Buffer.from([0xff])))
  prefix.own.write('é')
  expect(pipeline.written).toEqual([Buffer.from([0xff, 0xc3, 0xa9])])
})

test('the socket is restored afterwards, even if sending throws or somebody had replaced its write', () => {
  const socket = sink()
  const theirs = socket.write
  const prefix = new PipelinePrefix(sink(), socket)
  expect(() =>
    prefix.gather(() => {
      throw new Error('not sent')
    }),
  ).toThrow('not sent')
  expect(socket.write).toBe(theirs)
  class Socket {
    written: unknown[] = []
    write(data: unknown) {
      this.written.push(data)
    }
  }
  const inherited = new Socket()
  new PipelinePrefix(sink(), inherited).gather(() => {})
  expect(Object.hasOwn(inherited, 'write')).toBe(false)
})

import { plainLines } from '@firebreak/core'

/**
 * A stream that only passes on what a terminal displays, wherever the text comes from and whichever command forgot to
 * check: keys, hosts, errors of a server. Pipes too, because there is often a terminal behind one.
 */
export function plainStream<Stream extends NodeJS.WritableStream>(stream: Stream): Stream {
  const write = (chunk: string | Uint8Array, ...rest: never[]) =>
    stream.write(typeof chunk === 'string' ? plainChunk(chunk) : chunk, ...rest)
  return new Proxy(stream, {
    get(target, name) {
      if (name === 'write') return write
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A progress bar goes back to the beginning of its line before it writes. */
function plainChunk(chunk: string): string {
  return chunk.startsWith('\r') ? `\r${plainLines(chunk.slice(1))}` : plainLines(chunk)
}

/** One picture of an animation: a WebP as a browser's canvas makes it, and how long it is shown. */
export interface AnimationFrame {
  readonly webp: Buffer
  readonly shownMs: number
}

/**
 * Joins still WebP pictures of one size into an animated one that runs for ever. Both are RIFF files: the picture's chunk
 * (`VP8 ` or `VP8L`) moves into a frame (`ANMF`) of the new one.
 */
export function animatedWebp(frames: readonly AnimationFrame[], width: number, height: number): Buffer {
  const size = Buffer.concat([uint24(width - 1), uint24(height - 1)])
  const canvas = chunk('VP8X', Buffer.concat([Buffer.from([0x02, 0, 0, 0]), size]))
  // Background: white; 0 runs: for ever.
  const animation = chunk('ANIM', Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0]))
  const pictures = frames.map(({ webp, shownMs }) =>
    chunk('ANMF', Buffer.concat([uint24(0), uint24(0), size, uint24(shownMs), Buffer.from([0x02]), pictureOf(webp)])),
  )
  const body = Buffer.concat([Buffer.from('WEBP'), canvas, animation, ...pictures])
  return chunk('RIFF', body)
}

/** The chunk with the picture, header included. */
function pictureOf(webp: Buffer): Buffer {
  if (webp.toString('latin1', 0, 4) !== 'RIFF' || webp.toString('latin1', 8, 12) !== 'WEBP')
    throw new Error('this is no WebP: does the browser encode it?')
  for (let at = 12; at + 8 <= webp.length; ) {
    const length = webp.readUInt32LE(at + 4)
    const end = at + 8 + length + (length % 2)
    const name = webp.toString('latin1', at, at + 4)
    if (name === 'VP8 ' || name === 'VP8L') return webp.subarray(at, end)
    at = end
  }
  throw new Error('this WebP holds no picture')
}

function chunk(name: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(name, 0, 'latin1')
  head.writeUInt32LE(body.length, 4)
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)])
}

function uint24(value: number): Buffer {
  return Buffer.from([value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff])
}

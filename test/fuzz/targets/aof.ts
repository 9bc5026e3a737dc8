import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeCommand } from '@firebreak/core/resp'
import { ChangeReader, increments, parseManifest } from '@firebreak/watch'
import { AofPartReader } from '../../../packages/watch/src/aof/aof-part-reader.ts'
import type { FuzzTarget } from '../target.ts'

let folder = ''

/** A file as `AofTail` reads it: commands, then changes. */
export const aofTarget: FuzzTarget = {
  name: 'aof',
  batch: 64,
  words: ['#TS:1700000000\r\n', '*3\r\n$3\r\nSET\r\n', 'MULTI', 'EXEC', 'FLUSHALL', 'SWAPDB', 'SELECT', 'COPY', '\r\n'],
  seeds: () => [
    Buffer.concat([encodeCommand(['SELECT', '0']), encodeCommand(['SET', 'a', 'b']), encodeCommand(['DEL', 'a'])]),
    Buffer.concat([
      Buffer.from('#TS:1700000000\r\n'),
      encodeCommand(['MULTI']),
      encodeCommand(['MSET', 'a', '1', 'b', '2']),
      encodeCommand(['EXEC']),
      encodeCommand(['SWAPDB', '0', '1']),
    ]),
  ],
  async open() {
    folder = mkdtempSync(join(tmpdir(), 'firebreak-fuzz-'))
  },
  async close() {
    rmSync(folder, { recursive: true })
  },
  async run(input) {
    const path = join(folder, 'appendonly.aof')
    writeFileSync(path, input)
    const changes = new ChangeReader(1024, () => {})
    const reader = await AofPartReader.open(path, 0)
    try {
      while ((await reader.read((args) => changes.read(args))) === 'more') {}
    } finally {
      await reader.close()
    }
  },
}

export const manifestTarget: FuzzTarget = {
  name: 'aof-manifest',
  words: ['file ', '"', '\\"', ' seq ', ' type i', '\n', '#', ' '],
  seeds: () => [
    Buffer.from('file appendonly.aof.1.base.rdb seq 1 type b\nfile "a\\"b c.aof" seq 2 type i startoffset 4\n# x\n'),
  ],
  run(input) {
    increments(parseManifest(input.toString('utf8')))
  },
}

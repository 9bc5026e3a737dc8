import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { systemTimers } from '@firebreak/core'
import { letTimePass, scale, temporaryFolder, waitFor } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Trouble, type Warning } from '../trouble/trouble.ts'
import { endlessLease } from '../watcher/lease.ts'
import { DiskFolder } from './disk-folder.ts'
import { type DiskReply, DiskTier } from './disk-tier.ts'
import type { DiskTierOptions } from './disk-tier-options.ts'

async function openTier(options: Partial<DiskTierOptions> = {}) {
  const warnings: Warning[] = []
  const path = options.path ?? join(temporaryFolder('disk'), 'tier')
  const tier = new DiskTier({ path, ...options }, new Trouble((warning) => warnings.push(warning)))
  onTestFinished(() => tier.close())
  await waitFor(() => tier.state !== 'checking')
  return { tier, path, warnings }
}

function replyOf(id: string, bytes: Uint8Array): DiskReply & { isEvicted: boolean } {
  return {
    id,
    bytes: bytes.length,
    expiresAt: Number.POSITIVE_INFINITY,
    lease: endlessLease,
    isEvicted: false,
    onEvicted() {
      this.isEvicted = true
    },
  }
}

/** Stores a reply once there is room for it in the queue. */
const put = (tier: DiskTier, reply: DiskReply, bytes: Uint8Array) =>
  waitFor(() => tier.put(reply, bytes), { everyMs: 1 })
const read = (tier: DiskTier, reply: DiskReply) =>
  new Promise<Uint8Array | undefined>((resolve) => tier.read(reply, resolve))
const readUntrusted = (tier: DiskTier, id: string) =>
  new Promise<Uint8Array | undefined>((resolve) => {
    if (!tier.readUntrusted(id, resolve)) resolve(undefined)
  })

const action = fc.record({
  kind: fc.constantFrom('put', 'put', 'put', 'read', 'read', 'remove', 'distrust'),
  id: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'),
  length: fc.constantFrom(0, 1, 500, 3000, 20_000, 90_000),
})

test('returns what a Map would, or nothing if it made room, and stays within its bytes', async () => {
  const maxBytes = 3 * 2 ** 20
  const { tier, path } = await openTier({ maxBytes })
  let found = 0
  let lost = 0
  let serial = 0
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 50, maxLength: 150, size: 'max' }), async (actions) => {
      tier.distrust()
      const model = new Map<string, { reply: ReturnType<typeof replyOf>; bytes: Buffer }>()
      for (const { kind, id, length } of actions) {
        const known = model.get(id)
        if (kind === 'put') {
          const bytes = Buffer.alloc(length, `${++serial} `)
          const reply = replyOf(id, bytes)
          // Refused while too much waits to be written: the earlier value stays.
          if (tier.put(reply, bytes)) model.set(id, { reply, bytes })
        } else if (kind === 'remove') {
          if (known !== undefined) tier.remove(known.reply)
          model.delete(id)
        } else if (kind === 'distrust') {
          tier.distrust()
          model.clear()
        } else if (known !== undefined) {
          const bytes = await read(tier, known.reply)
          if (bytes === undefined) lost++
          else found++
          if (bytes !== undefined) expect(Buffer.compare(bytes, known.bytes)).toBe(0)
        }
        expect(tier.bytes).toBeLessThanOrEqual(maxBytes / 2)
      }
    }),
    { numRuns: scale(20, 300) },
  )
  expect(found).toBeGreaterThan(lost)
  expect(tier.state).toBe('open')
  // LMDB briefly needs more to write a batch; after that pages are reused.
  expect(statSync(join(path, 'replies.mdb')).size).toBeLessThan(maxBytes * 3)
})

test('the file stays within its limit while many times as much goes through it', async () => {
  const maxBytes = 8 * 2 ** 20
  const { tier } = await openTier({ maxBytes })
  for (let batch = 0; batch < scale(60, 400); batch++) {
    for (let index = 0; index < 20; index++) {
      const bytes = Buffer.alloc(2000 + ((batch * 7919 + index * 104_729) % 60_000), batch)
      tier.put(replyOf(`${(batch * 31 + index * 7) % 500}`, bytes), bytes)
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  const last = replyOf('last', Buffer.from('x'))
  await put(tier, last, Buffer.from('x'))
  expect(await read(tier, last)).toEqual(Buffer.from('x'))
  expect(tier.fileBytes).toBeLessThan(maxBytes * 1.5)
  expect(tier.size).toBeGreaterThan(20)
})

test('a distrusted reply is not served, but can still be compared; it goes first when room is needed', async () => {
  const { tier } = await openTier({ maxBytes: 2 ** 20 })
  const bytes = Buffer.alloc(50_000, 'v')
  const old = replyOf('old', bytes)
  tier.put(old, bytes)
  expect(tier.readUntrusted('old', () => {})).toBe(false)
  tier.distrust()
  expect(tier.holds(old)).toBe(false)
  expect(await read(tier, old)).toBeUndefined()
  expect(await readUntrusted(tier, 'old')).toEqual(bytes)
  const replies = Array.from({ length: 8 }, (_, index) => replyOf(`new ${index}`, bytes))
  for (const reply of replies) await put(tier, reply, bytes)
  expect(await readUntrusted(tier, 'old')).toEqual(bytes)
  const more = Array.from({ length: 2 }, (_, index) => replyOf(`more ${index}`, bytes))
  for (const reply of more) await put(tier, reply, bytes)
  expect(await readUntrusted(tier, 'old')).toBeUndefined()
  expect([...replies, ...more].filter((reply) => tier.holds(reply))).toHaveLength(9)
})

test('replies that should survive are there after a restart, untrusted; others are gone', async () => {
  for (const survivesRestart of [true, false]) {
    const bytes = Buffer.alloc(5000, 'v')
    const { tier, path } = await openTier({ survivesRestart })
    tier.put(replyOf('id', bytes), bytes)
    await tier.close()
    expect(existsSync(join(path, 'replies.mdb'))).toBe(survivesRestart)
    const next = (await openTier({ path, survivesRestart })).tier
    expect(next.size).toBe(0)
    expect(await readUntrusted(next, 'id')).toEqual(survivesRestart ? bytes : undefined)
    expect(next.bytes > 0).toBe(survivesRestart)
    await next.close()
  }
})

test('reads during shutdown return nothing, and nothing throws afterwards', async () => {
  const { tier } = await openTier()
  const bytes = Buffer.alloc(5000, 'v')
  const reply = replyOf('id', bytes)
  tier.put(reply, bytes)
  expect(await read(tier, reply)).toEqual(bytes)
  const reads = [read(tier, reply), new Promise((resolve) => setImmediate(() => resolve(read(tier, reply))))]
  const closed = tier.close()
  expect(await Promise.all(reads)).toEqual([undefined, undefined])
  await closed
  // LMDB throws from a timer if it is read after it was closed.
  await letTimePass(10)
})

/** Things that happen to files. */
const damages: Record<string, (file: string) => void | Promise<void>> = {
  'a file of something else': (file) => writeFileSync(file, 'x'.repeat(100_000)),
  'an end that is missing': (file) => truncateSync(file, 40_000),
  'almost nothing left': (file) => truncateSync(file, 100),
  async 'bytes overwritten in the middle'(file) {
    const handle = await open(file, 'r+')
    for (let at = 8192; at < statSync(file).size; at += 4096) await handle.write(Buffer.alloc(4000, 0xff), 0, 4000, at)
    await handle.close()
  },
}

test.each(Object.keys(damages))('%s is reported once, and the process continues without the tier', async (damage) => {
  const { tier, path } = await openTier({ survivesRestart: true })
  for (let index = 0; index < 40; index++) {
    const bytes = Buffer.alloc(5000, index)
    tier.put(replyOf(`id ${index}`, bytes), bytes)
  }
  await tier.close()
  await damages[damage]!(join(path, 'replies.mdb'))
  const broken = await openTier({ path, survivesRestart: true })
  expect(broken.tier.state).toBe('failed')
  expect(broken.warnings.map(({ kind }) => kind)).toEqual(['disk-tier'])
  expect(broken.warnings[0]!.message).toContain(path)
  const reply = replyOf('x', Buffer.from('x'))
  expect(broken.tier.put(reply, Buffer.from('x'))).toBe(false)
  expect(await read(broken.tier, reply)).toBeUndefined()
  await broken.tier.close()
  // The next start gets an empty one.
  const next = await openTier({ path, survivesRestart: true })
  expect(next.tier.state).toBe('open')
  expect(next.tier.bytes).toBe(0)
})

test('takes half of the free disk space, nothing while that is too little, and resumes when there is room', async () => {
  const free = vi.spyOn(DiskFolder.prototype, 'roomBytes', 'get').mockReturnValue(1_500_000)
  onTestFinished(() => free.mockRestore())
  const { tier, warnings } = await openTier({ retryAfterMs: 10 })
  expect(tier.state).toBe('failed')
  await waitFor(() => free.mock.calls.length > 3)
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('the disk has room for less than')])
  const bytes = Buffer.alloc(50_000, 'v')
  expect(tier.put(replyOf('early', bytes), bytes)).toBe(false)
  free.mockReturnValue(4_000_000)
  await waitFor(() => tier.state === 'open')
  for (let index = 0; index < 60; index++) await put(tier, replyOf(String(index), bytes), bytes)
  expect(tier.bytes).toBeLessThanOrEqual(1_000_000)
  expect(tier.bytes).toBeGreaterThan(800_000)
  expect(warnings).toHaveLength(1)
})

test('a folder that cannot be created or is in use is reported, and the tier is off', async () => {
  const { path, tier } = await openTier()
  const second = await openTier({ path })
  expect(second.tier.state).toBe('failed')
  expect(second.warnings[0]!.message).toMatch(/another shield/)
  expect(tier.state).toBe('open')
  const file = join(temporaryFolder('disk'), 'file')
  writeFileSync(file, '')
  const third = await openTier({ path: join(file, 'tier') })
  expect(third.tier.state).toBe('failed')
  expect(third.warnings).toHaveLength(1)
  const held = temporaryFolder('disk')
  writeFileSync(join(held, 'owner'), String(process.ppid))
  expect((await openTier({ path: held })).warnings[0]!.message).toContain(`process ${process.ppid} uses it`)
  // An owner that is gone holds no lock.
  writeFileSync(join(held, 'owner'), '2147483646')
  expect((await openTier({ path: held })).tier.state).toBe('open')
})

test('without the package lmdb the options are refused with a code', () => {
  const missing = () => {
    throw Object.assign(new Error("Cannot find module 'lmdb'"), { code: 'MODULE_NOT_FOUND' })
  }
  const path = join(temporaryFolder('disk'), 'tier')
  expect(() => new DiskTier({ path }, new Trouble(), systemTimers, missing)).toThrow(
    expect.objectContaining({ code: 'FB_DISK_DRIVER_MISSING', message: expect.stringContaining('npm install lmdb') }),
  )
  expect(existsSync(path)).toBe(false)
})

test('invalid bounds are refused', () => {
  const path = temporaryFolder('disk')
  expect(() => new DiskTier({ path: '' }, new Trouble())).toThrow(/diskTier\.path/)
  expect(() => new DiskTier({ path, maxBytes: 10 }, new Trouble())).toThrow(/diskTier\.maxBytes is 10/)
  expect(() => new DiskTier({ path, retryAfterMs: 0 }, new Trouble())).toThrow(/diskTier\.retryAfterMs is 0/)
  expect(readdirSync(path)).toEqual([])
})

import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProxy } from '@firebreak/proxy'
import { temporaryFolder } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage
beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

function askAt(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write('PING\r\n'))
    socket.once('error', reject)
    socket.once('data', (bytes) => {
      resolve(String(bytes))
      socket.destroy()
    })
  })
}

describe('a unix socket', () => {
  test('that a killed proxy has left does not keep the next one from listening', async () => {
    const path = join(temporaryFolder('proxy'), 'proxy.sock')
    const options = JSON.stringify({ upstream: stage.server.url, path })
    const file = fileURLToPath(new URL('./proxy-process.ts', import.meta.url))
    const child = spawn(process.execPath, ['--conditions=firebreak-source', file, options], { stdio: 'pipe' })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    expect(await askAt(path)).toBe('+PONG\r\n')
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
    expect(existsSync(path)).toBe(true)
    await stage.start({ path })
    expect(await askAt(path)).toBe('+PONG\r\n')
  })

  test('that somebody serves is left alone', async () => {
    const path = join(temporaryFolder('proxy'), 'proxy.sock')
    await stage.start({ path })
    await expect(startProxy({ upstream: stage.server.url, path })).rejects.toThrow(/cannot listen: .*EADDRINUSE/)
    expect(await askAt(path)).toBe('+PONG\r\n')
  })

  test('is not made in the place of a file that is none', async () => {
    const path = join(temporaryFolder('proxy'), 'notes.txt')
    writeFileSync(path, 'notes')
    await expect(startProxy({ upstream: stage.server.url, path })).rejects.toThrow(/cannot listen: .*EADDRINUSE/)
    expect(existsSync(path)).toBe(true)
  })
})

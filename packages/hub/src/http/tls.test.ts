import { writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startHub } from '../start-hub.ts'
import { selfSigned } from '../testing/self-signed.ts'

const folder = temporaryFolder('tls')
const [server, stranger] = [selfSigned(), selfSigned()]
const certFile = join(folder, 'cert.pem')
const keyFile = join(folder, 'key.pem')
writeFileSync(certFile, server.cert)
writeFileSync(keyFile, server.key)

function status(url: string, options: Record<string, string>): Promise<number | string> {
  return new Promise((resolve) => {
    get(`${url}/livez`, { ca: server.cert, agent: false, ...options }, (response) => {
      response.resume()
      resolve(response.statusCode!)
    }).on('error', (error) => resolve(error.message))
  })
}

test('a hub with a certificate speaks HTTPS and WSS', async () => {
  const hub = await startHub({ logLevel: 'silent', tls: { certFile, keyFile } })
  expect(hub.url).toMatch(/^https:/)
  expect(await status(hub.url, {})).toBe(200)
  const socket = new WebSocket(`${hub.url.replace('https', 'wss')}/v1/live`, { ca: server.cert })
  let message = ''
  socket.on('message', (data) => (message = String(data)))
  await waitFor(() => message.includes('verdict'))
  socket.close()
  await hub.close()
})

test('with an authority, only callers with its certificate are heard', async () => {
  const hub = await startHub({ logLevel: 'silent', tls: { certFile, keyFile, caFile: certFile } })
  expect(await status(hub.url, { cert: server.cert, key: server.key })).toBe(200)
  expect(await status(hub.url, {})).not.toBe(200)
  expect(await status(hub.url, { cert: stranger.cert, key: stranger.key })).not.toBe(200)
  await hub.close()
})

test('a certificate that is not there is named', async () => {
  const tls = { certFile: join(folder, 'none.pem'), keyFile }
  await expect(startHub({ logLevel: 'silent', tls })).rejects.toMatchObject({
    code: 'FB_HUB_CONFIG',
    field: 'tls.certFile',
  })
})

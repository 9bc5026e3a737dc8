import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { temporaryFolder } from '@firebreak/testkit'

/** TLS in front of a server on loopback, which may be built without it. */
export interface TlsFront {
  readonly port: number
  readonly ca: Buffer
  close(): void
}

/** Starts one under a new certificate for `localhost`. */
export async function startTlsFront(serverPort: number): Promise<TlsFront> {
  const folder = temporaryFolder('tls')
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', ...kind, '-keyout', keyFile, '-out', certFile, ...subject], { stdio: 'ignore' })
  const cert = readFileSync(certFile)
  const front = createServer({ key: readFileSync(keyFile), cert }, (socket) => {
    const behind = connect(serverPort, '127.0.0.1')
    socket.on('error', () => behind.destroy())
    behind.on('error', () => socket.destroy())
    socket.pipe(behind).pipe(socket)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  return { port: (front.address() as AddressInfo).port, ca: cert, close: () => void front.close() }
}

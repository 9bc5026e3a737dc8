import { X509Certificate } from 'node:crypto'
import type { Server, TLSSocket } from 'node:tls'

/** Certificates of a TLS server, as PEM. */
export interface ServerCertificates {
  readonly cert: string | Buffer
  readonly key: string | Buffer
  /** The authorities whose certificates clients must present; undefined: no client certificates. */
  readonly ca?: string | Buffer
}

/**
 * A TLS server whose certificates can be replaced. Node uses new ones for new connections only, so connections of
 * clients whose authority is no longer trusted are ended here.
 */
export class RenewableTls {
  readonly #server: Server
  readonly #sockets = new Set<TLSSocket>()

  constructor(server: Server) {
    this.#server = server
    server.on('secureConnection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Throws if they are unusable; then the previous ones stay. */
  renew(certificates: ServerCertificates): void {
    const { ca } = certificates
    const trusted = ca === undefined ? undefined : certificatesOf(ca)
    // Node accepts a half-written file and then refuses every client.
    if (trusted?.length === 0) throw new Error('the file of authorities contains no certificate')
    this.#server.setSecureContext(certificates)
    if (trusted === undefined) return
    for (const socket of this.#sockets) if (!isOfAny(socket, trusted)) socket.destroy()
  }
}

function certificatesOf(pem: string | Buffer): X509Certificate[] {
  const blocks = pem.toString().match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

/** Whether the client's certificate, or one in its chain, is an authority's or was signed by one. */
function isOfAny(socket: TLSSocket, authorities: readonly X509Certificate[]): boolean {
  let shown = socket.getPeerX509Certificate()
  while (shown !== undefined) {
    const one = shown
    if (authorities.some((authority) => isOf(one, authority))) return true
    const { issuerCertificate } = one
    shown = issuerCertificate?.fingerprint256 === one.fingerprint256 ? undefined : issuerCertificate
  }
  return false
}

function isOf(shown: X509Certificate, authority: X509Certificate): boolean {
  if (shown.fingerprint256 === authority.fingerprint256) return true
  return shown.checkIssued(authority) && shown.verify(authority.publicKey)
}

import { readFileSync } from 'node:fs'

/** TLS files in addition to the authorities that this process trusts. */
export interface ClientTls {
  /** PEM: the authority that signed the centre's certificate. @default Node's (NODE_EXTRA_CA_CERTS adds to them) */
  readonly ca?: string
  /** PEM: a certificate to present to the centre; with `key`. */
  readonly cert?: string
  readonly key?: string
}

/** Reads the PEM files named by a URL's parameters `ca`, `cert` and `key`. */
export function readTlsFiles(parameters: URLSearchParams): ClientTls {
  const read = (name: string) => {
    const file = parameters.get(name)
    return file === null ? {} : { [name]: readFileSync(file, 'utf8') }
  }
  return { ...read('ca'), ...read('cert'), ...read('key') }
}

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A certificate with its key, as files and as text. */
export interface IssuedCertificate {
  readonly certFile: string
  readonly keyFile: string
  readonly cert: string
  readonly key: string
}

/** An authority of a test's own. */
export interface TestAuthority {
  readonly caFile: string
  readonly ca: string
  /** A certificate for a name; `alternatives` as openssl writes them (`DNS:localhost,IP:127.0.0.1`). */
  issue(name: string, alternatives?: string): IssuedCertificate
}

/** Makes an authority whose files lie in `folder`. */
export function makeAuthority(folder: string, name = 'Test authority'): TestAuthority {
  mkdirSync(folder, { recursive: true })
  const [caFile, caKey] = [join(folder, 'ca.pem'), join(folder, 'ca.key')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...curve, '-keyout', caKey, '-out', caFile, '-days', '2', '-subj', `/CN=${name}`)
  let issued = 0
  return {
    caFile,
    ca: readFileSync(caFile, 'utf8'),
    issue(subject, alternatives = 'DNS:localhost,IP:127.0.0.1') {
      const base = join(folder, `${++issued}`)
      const [certFile, keyFile, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) => `${base}.${end}`) as [
        string,
        string,
        string,
        string,
      ]
      writeFileSync(extensions, `subjectAltName=${alternatives}\n`)
      openssl('req', ...curve, '-keyout', keyFile, '-out', request, '-subj', `/CN=${subject}`)
      const signing = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', extensions]
      openssl('x509', '-req', '-in', request, ...signing, '-out', certFile)
      return { certFile, keyFile, cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
    },
  }
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}

import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto'

/** DER: a tag, the length of the content, the content. */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...contents: readonly Uint8Array[]) => der(0x30, ...contents)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const utcTime = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/\D/g, '').slice(2, 14)}Z`))

/** A self-signed certificate for 127.0.0.1, created for each test. */
export function selfSigned(commonName = 'firebreak test'): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(commonName)))))
  const day = 86_400_000
  const validity = sequence(utcTime(new Date(Date.now() - day)), utcTime(new Date(Date.now() + day)))
  const alternativeName = sequence(oid('551d11'), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])))))
  const isAuthority = sequence(oid('551d13'), der(0x04, sequence(der(0x01, Buffer.from([0xff])))))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternativeName, isAuthority)),
  )
  const signature = createSign('sha256').update(body).sign(privateKey)
  const certificate = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  const lines = certificate.toString('base64').match(/.{1,64}/g)!
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

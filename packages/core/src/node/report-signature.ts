import { createHmac, timingSafeEqual } from 'node:crypto'

/** The headers of a NATS message by which a hub knows whose report it is. */
export const signatureHeaders = { key: 'Firebreak-Key', signature: 'Firebreak-Signature' } as const

/** Signs reports that go over a third party: made of the app token, which cannot be got back from it. */
export function reportKeyOf(token: string): string {
  return createHmac('sha256', token).update('firebreak report key').digest('hex')
}

/** Names a report key without giving it away. */
export function reportKeyId(reportKey: string): string {
  return createHmac('sha256', reportKey).update('firebreak report key id').digest('hex').slice(0, 16)
}

export function signReport(reportKey: string, frame: Uint8Array): string {
  return createHmac('sha256', reportKey).update(frame).digest('base64url')
}

export function isSignature(reportKey: string, frame: Uint8Array, signature: string): boolean {
  const wanted = Buffer.from(signReport(reportKey, frame))
  const given = Buffer.from(signature)
  return wanted.length === given.length && timingSafeEqual(wanted, given)
}

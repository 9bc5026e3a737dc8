import { createHmac, timingSafeEqual } from 'node:crypto'

/** The headers of a NATS message that tell a hub who sent the report. */
export const signatureHeaders = { key: 'Firebreak-Key', signature: 'Firebreak-Signature' } as const

/**
 * The key that signs reports sent through a third party, derived from the app token so that the token cannot be
 * recovered.
 */
export function reportKeyOf(token: string): string {
  return createHmac('sha256', token).update('firebreak report key').digest('hex')
}

/** Identifies a report key without revealing it. */
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

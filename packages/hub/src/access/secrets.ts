import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { HubConfigError } from '../errors.ts'

/** Cryptographically random bytes: the runtime's randomness is for decisions and may be a test's. */
export function secretBytes(count: number): Buffer {
  return randomBytes(count)
}

/** A new token: its prefix lets secret scanners recognise it, the rest is 256 random bits. */
export function newToken(): string {
  return `fbt_${secretBytes(32).toString('base64url')}`
}

/** What is kept of a token. Tokens are random, so one hash is enough. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

const placeholder =
  /change[-_ ]?(me|this|it)|replace[-_ ]?(me|this|with)|placeholder|your[-_ ]?(\w+[-_ ])?(token|secret|password)|(insert|put)[-_ ]|fix[-_ ]?me|long[-_ ]random|<[^>]*>|\$\{|\{\{/i
const minDistinct = 6

/** What is wrong with a chosen token, without the token itself; undefined if nothing is. */
export function tokenProblem(token: string): string | undefined {
  if (!/^\S{16,512}$/.test(token)) return 'must be 16 to 512 characters without spaces'
  if (placeholder.test(token) || new Set(token).size < minDistinct) {
    return 'is a placeholder; generate one with: openssl rand -base64 33'
  }
  return undefined
}

/** Refuses a weak token of a service that other machines can reach; the message does not contain it. */
export function checkServiceToken(token: string): void {
  const problem = tokenProblem(token)
  if (problem !== undefined) throw new HubConfigError('token', `token ${problem}`)
}

const costs = { N: 1 << 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }
const keyBytes = 32

/** What is kept of a password: `scrypt$salt$hash`, both base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = secretBytes(16)
  return `scrypt$${salt.toString('base64url')}$${(await derive(password, salt)).toString('base64url')}`
}

/** Runs in Node's thread pool, so a sign-in does not block the hub. */
export async function isPassword(password: string, kept: string): Promise<boolean> {
  const [, salt, hash] = /^scrypt\$([\w-]+)\$([\w-]+)$/.exec(kept) ?? []
  if (salt === undefined || hash === undefined) return false
  const wanted = Buffer.from(hash, 'base64url')
  const given = await derive(password, Buffer.from(salt, 'base64url'))
  return wanted.length === given.length && timingSafeEqual(wanted, given)
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, keyBytes, costs, (error, key) => (error ? reject(error) : resolve(key)))
  })
}

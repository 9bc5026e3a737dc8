import { createHmac } from 'node:crypto'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { keyBytes } from '../keys/key-text.ts'

/** How keys are named outside the process that uses them. Hub, proxies and shields must use the same options. */
export interface KeyRedactionOptions {
  /**
   * `['hash']`: every key is replaced by its hash. Patterns such as `user:*:cart`: in a key that matches one, whatever
   * `*` matches is replaced by its hash; the first match counts, and other keys keep their names. `['off']` or nothing:
   * no redaction.
   */
  readonly redactKeys?: readonly string[]
  /** The secret key of the hashes, at least 16 characters: without it nobody can test guesses. */
  readonly redactSecret?: string
}

/** Maps a key's name to the name used outside; a redacted name maps to itself. */
export type KeyRedaction = (name: string) => string

const minSecretLength = 16
const maxPatterns = 100
const wholeName = /^~[0-9a-f]{32}$/
const partName = /~[0-9a-f]{16}~/g
/** Stands for a part that is already a hash: no key's name can contain it. */
const redacted = '\ud800'

/**
 * Makes the redaction from the settings; undefined if keys keep their names.
 *
 * Hashes are HMAC-SHA256 over the bytes, written as `~` and the first 32 hex digits, or for a part 16 of them between
 * `~`, so that any language can compute them and two processes give a key the same name. The marks make it safe to
 * redact twice, since sensor and hub both do: to the patterns a hash is a single letter, which stays. A key that
 * contains such a mark gains nothing: only the mark is shown. Patterns are literals around `*`, searched one after the
 * other, so that no key costs more than its length for each pattern; a regular expression could be made slow by a key.
 */
export function keyRedaction({ redactKeys = [], redactSecret }: KeyRedactionOptions): KeyRedaction | undefined {
  const patterns = redactKeys.filter((pattern) => pattern !== 'off')
  if (patterns.length === 0) return undefined
  if (redactSecret === undefined || redactSecret.length < minSecretLength) {
    // Whatever was given may be the secret.
    const given = redactSecret === undefined ? 'none' : 'a short text'
    throw new InvalidOptionError('redactSecret', given, `a text of ${minSecretLength} characters or more`)
  }
  const digest = (name: string, length: number) =>
    createHmac('sha256', redactSecret).update(keyBytes(name)).digest('hex').slice(0, length)
  const hashed = (name: string) => (wholeName.test(name) ? name : `~${digest(name, 32)}`)
  if (patterns.includes('hash')) {
    if (patterns.length === 1) return hashed
    throw new InvalidOptionError('redactKeys', patterns.join(), 'hash alone, or patterns without it')
  }
  if (patterns.length > maxPatterns || patterns.some((pattern) => !/^(?=.*\*)[^~]*$/.test(pattern))) {
    throw new InvalidOptionError(
      'redactKeys',
      patterns.join(),
      'off, hash, or up to 100 patterns with a * and without a ~ in each',
    )
  }
  const pieces = patterns.map((pattern) => pattern.split(/\*+/))
  return (name) => {
    // A key that is not text has no parts.
    if (wholeName.test(name) || name.startsWith('\u0000') || !name.isWellFormed()) return hashed(name)
    const marks: string[] = name.match(partName) ?? []
    const marked = marks.length === 0 ? name : name.replaceAll(partName, redacted)
    for (const literal of pieces) {
      const parts = partsOf(marked, literal)
      if (parts === undefined) continue
      // Literals contain no marks; those of the parts follow in order.
      const hide = (part: string) => {
        const whole = part.replaceAll(redacted, () => marks.shift()!)
        return part === '' || part === redacted ? whole : `~${digest(whole, 16)}~`
      }
      return literal.map((text, index) => text + (index < parts.length ? hide(parts[index]!) : '')).join('')
    }
    return name
  }
}

/**
 * What is between the literals, each match as short as possible; undefined if the name does not have them in this
 * order.
 */
function partsOf(name: string, pieces: readonly string[]): readonly string[] | undefined {
  const [first, last] = [pieces[0]!, pieces.at(-1)!]
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return undefined
  const end = name.length - last.length
  const parts: string[] = []
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at)
    if (found === -1 || found + piece.length > end) return undefined
    parts.push(name.slice(at, found))
    at = found + piece.length
  }
  parts.push(name.slice(at, end))
  return parts
}

import { type Setting, text, textList } from './setting.ts'

/** The settings for redacting keys outside the process that uses them; hub and proxies must use the same. */
export const redactionSettings: readonly Setting[] = [
  {
    name: 'redactKeys',
    type: textList,
    placeholder: 'PATTERN,…',
    variables: ['FIREBREAK_REDACT_KEYS'],
    default: 'off',
    summary:
      'hash: replace keys by their hash wherever they are shown, stored or sent; user:*:cart,…: only what * matches; use the same in hub, proxies and shields',
  },
  {
    name: 'redactSecret',
    type: text,
    placeholder: 'SECRET',
    variables: ['FIREBREAK_REDACT_SECRET'],
    isSecret: true,
    default: 'none',
    summary: 'the secret key of these hashes, at least 16 characters; use the same in hub, proxies and shields',
  },
]

import { integerIn, isWord } from '../requests/words.ts'
import { type Identity, identityOf } from '../upstream/identity.ts'

const badName = Buffer.from('-ERR Client names cannot contain spaces, newlines or special characters.\r\n')

/** One option of HELLO, or the error that ends parsing. */
export type HelloOption =
  | { readonly act: 'auth'; readonly username: Buffer; readonly password: Buffer }
  | { readonly act: 'name'; readonly name: string }
  | { readonly act: 'refuse'; readonly reply: Buffer }

/** The contents of a HELLO. */
export interface HelloRequest {
  /** Undefined if it names none or an invalid one: then nothing else is parsed. */
  readonly version: 2 | 3 | undefined
  /** In order; Redis carries each one out before it looks at the next. */
  readonly options: readonly HelloOption[]
  /** True if it is carried out completely or not at all, whatever the server says about its password. */
  readonly isWhole: boolean
  /** The client's identity afterwards; undefined if that does not change. */
  readonly identity: Identity | undefined
  /** Its name afterwards, likewise. */
  readonly name: string | undefined
}

/** Parses HELLO's arguments. */
export function helloOf([proto, ...words]: readonly Uint8Array[]): HelloRequest {
  const number = proto === undefined ? undefined : integerIn(proto)
  const version = number === 2 || number === 3 ? number : undefined
  const options: HelloOption[] = []
  for (let rest = words; rest.length > 0 && options.at(-1)?.act !== 'refuse'; ) {
    const option = optionOf(rest)
    options.push(option)
    rest = rest.slice(option.act === 'auth' ? 3 : 2)
  }
  const acts = options.map(({ act }) => act).join(' ')
  const auth = options.findLast((option) => option.act === 'auth')
  return {
    version,
    options,
    isWhole: version === undefined || ['', 'auth', 'name', 'auth name'].includes(acts),
    identity: auth === undefined ? undefined : identityOf(auth.username, auth.password),
    name: options.findLast((option) => option.act === 'name')?.name,
  }
}

/** True for a valid client name. */
export function isName(name: Uint8Array): boolean {
  return name.every((byte) => byte >= 0x21 && byte <= 0x7e)
}

function optionOf([word, first, second]: readonly Uint8Array[]): HelloOption {
  if (isWord(word!, 'auth') && first !== undefined && second !== undefined)
    return { act: 'auth', username: Buffer.from(first), password: Buffer.from(second) }
  if (isWord(word!, 'setname') && first !== undefined)
    return isName(first)
      ? { act: 'name', name: Buffer.from(first).toString('latin1') }
      : { act: 'refuse', reply: badName }
  const shown = Buffer.from(word!)
    .toString('latin1')
    .split('\0')[0]!
    .replace(/[\r\n]/g, ' ')
  return { act: 'refuse', reply: Buffer.from(`-ERR Syntax error in HELLO option '${shown}'\r\n`, 'latin1') }
}

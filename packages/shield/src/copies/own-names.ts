/**
 * The names of the auxiliary keys next to keys and their copies. All of them are made from bytes: a key need not be
 * text, and one that is not has a name (see `keyName`) whose characters are not its bytes.
 *
 * The suffixes are reserved. They are long on purpose: an application's own key `{user:1}:fb` must not be mistaken for
 * one of ours.
 */
const marker = ':firebreak-marker'
const ownership = ':firebreak-owner'
const newest = ':firebreak-newest'
const version = ':firebreak-version'
const refresher = ':firebreak-refresher'

const longestEnding = Math.max(...[marker, ownership, newest, version, refresher].map(({ length }) => length))
const reserved = new RegExp(`(${marker}|${ownership}|${newest}|${version}|${refresher})$`)

/** The key that vouches for a copy and states its version, on the copy's own node. */
export function markerOf(copy: Uint8Array): Uint8Array {
  return bytesOf(`{${textOf(copy)}}${marker}`)
}

/**
 * The key that says who owns a copy. It outlives the copy, whereas the marker expires soon after its refresher does: a
 * copy without a marker is still ours.
 */
export function ownershipOf(copy: Uint8Array): Uint8Array {
  return bytesOf(`{${textOf(copy)}}${ownership}`)
}

/**
 * The key with the version of the newest picture that a copy held. It lives as long as the copy, longer than the marker,
 * so that an older picture that was delayed is not taken for a newer one.
 */
export function newestOf(copy: Uint8Array): Uint8Array {
  return bytesOf(`{${textOf(copy)}}${newest}`)
}

/** The key with the version counter of a key's pictures. */
export function versionOf(key: Uint8Array): Uint8Array {
  return beside(key, version)
}

/** The key that says which process follows a key. */
export function refresherOf(key: Uint8Array): Uint8Array {
  return beside(key, refresher)
}

/** True for the name of a marker or another auxiliary key. */
export function isReservedName(name: Uint8Array): boolean {
  const end = name.subarray(Math.max(0, name.length - longestEnding))
  return name.includes(openingBrace) && reserved.test(textOf(end))
}

const openingBrace = 0x7b

/**
 * A key next to another, on the same node: a key with a hash tag keeps it, any other key becomes one. (A key with `}`
 * and no tag has no such neighbour on a cluster; Redis then refuses the script, and the key is read directly.)
 */
function beside(key: Uint8Array, ending: string): Uint8Array {
  const text = textOf(key)
  return bytesOf(/^[^{]*\{[^}]+\}/.test(text) ? `${text}${ending}` : `{${text}}${ending}`)
}

// Latin-1 has one character for each byte.
function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

/**
 * What a terminal would interpret instead of showing: control characters (C0, DEL, C1), and those that reverse the
 * direction of a line. A key, a host or a message from outside may contain them.
 */
const obeyed = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
/** The same, except line ends and tabs. */
const obeyedInLines =
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Makes a text safe for a terminal: what it would interpret is written as `\\x1b`. */
export function plainText(text: string): string {
  return text.replace(obeyed, (sign) => {
    const code = sign.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : unicode(sign)
  })
}

/**
 * Makes whole lines safe for a terminal. Escapes are written as in JSON (`\\u001b`), so lines of JSON keep their
 * values.
 */
export function plainLines(text: string): string {
  return text.replace(obeyedInLines, unicode)
}

function unicode(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
}

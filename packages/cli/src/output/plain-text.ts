/**
 * What a terminal would obey instead of show: control characters (C0, DEL, C1), and those that turn the direction of a line
 * around. A key, a host or a message of somebody else's choosing may hold them.
 */
const obeyed = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** A text that a terminal only shows: what it would obey is written as `\\x1b`. */
export function plainText(text: string): string {
  return text.replace(obeyed, (sign) => {
    const code = sign.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

/** What to do about an error of a file, by the system's name of it or SQLite's number. */
const advice: readonly { readonly names: readonly (string | number)[]; readonly text: string }[] = [
  { names: ['ENOSPC', 'EDQUOT', 13], text: 'the disk is full: free some room, or move the file to another disk' },
  { names: ['EFBIG'], text: 'the file has reached the size that it may have (ulimit -f): raise it' },
  { names: ['ENOENT', 'ENOTDIR'], text: 'the folder is missing: create it, and start again where a file was lost' },
  { names: ['EACCES', 'EPERM', 8], text: 'it may not be written to: give this user the right to' },
  { names: ['EROFS'], text: 'the disk is mounted read-only: mount it writable, or choose another folder' },
  { names: [5, 6], text: 'another process has locked the file: end it, or give each its own folder' },
  { names: ['EMFILE', 'ENFILE'], text: 'too many files are open: raise the limit (ulimit -n)' },
  { names: [11, 26], text: 'the file is damaged: restore it from a backup, or move it away to start over' },
  { names: ['EIO', 10], text: 'the disk fails, or has no room: look at it with df and at the kernel’s log' },
  { names: [14], text: 'it cannot be opened: see that the folder is there and may be written to' },
]

/** The message of an error, and what to do about it where it is one of a disk or file. */
export function explainDiskTrouble(error: unknown): string {
  const { message = String(error), code, errcode } = error as { message?: string; code?: unknown; errcode?: unknown }
  // LMDB's errors have their names in the message only; SQLite's numbers may carry more in their upper bytes.
  const number = typeof errcode === 'number' ? errcode & 0xff : undefined
  const found = advice.find(({ names }) =>
    names.some((name) => (typeof name === 'number' ? name === number : code === name || message.includes(name))),
  )
  const full = found === undefined && /no space left/i.test(message) ? advice[0] : found
  return full === undefined ? message : `${message}; ${full.text}`
}

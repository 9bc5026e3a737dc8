/** Advice for a file error, by the system's error name or SQLite's number. */
const advice: readonly { readonly names: readonly (string | number)[]; readonly text: string }[] = [
  { names: ['ENOSPC', 'EDQUOT', 13], text: 'the disk is full: free some room, or move the file to another disk' },
  { names: ['EFBIG'], text: 'the file has reached the maximum file size: raise the limit (ulimit -f)' },
  { names: ['ENOENT', 'ENOTDIR'], text: 'the folder is missing: create it; restart if a file was lost' },
  { names: ['EACCES', 'EPERM', 8], text: 'permission denied: give this user write access' },
  { names: ['EROFS'], text: 'the disk is mounted read-only: mount it writable, or choose another folder' },
  { names: [5, 6], text: 'another process has locked the file: stop it, or give each process its own folder' },
  { names: ['EMFILE', 'ENFILE'], text: 'too many files are open: raise the limit (ulimit -n)' },
  { names: [11, 26], text: 'the file is damaged: restore it from a backup, or move it away to start over' },
  { names: ['EIO', 10], text: 'the disk is failing or full: check df and the kernel log' },
  { names: [14], text: 'the file cannot be opened: check that the folder exists and is writable' },
]

/** The message of an error, plus advice if it is a disk or file error. */
export function explainDiskTrouble(error: unknown): string {
  const { message = String(error), code, errcode } = error as { message?: string; code?: unknown; errcode?: unknown }
  // LMDB's error names appear only in the message; SQLite's numbers may carry extra information in their upper bytes.
  const number = typeof errcode === 'number' ? errcode & 0xff : undefined
  const found = advice.find(({ names }) =>
    names.some((name) => (typeof name === 'number' ? name === number : code === name || message.includes(name))),
  )
  const full = found === undefined && /no space left/i.test(message) ? advice[0] : found
  return full === undefined ? message : `${message}; ${full.text}`
}

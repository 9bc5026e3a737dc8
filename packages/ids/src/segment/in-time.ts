/** The promise's own outcome, or an error after `timeoutMs`; what it gives later goes to `onLate`. */
export async function inTime<T>(
  promise: Promise<T>,
  timeoutMs: number,
  what: string,
  onLate: (value: T) => void = () => {},
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      promise.then(onLate, () => {})
      reject(new Error(`${what} took longer than ${timeoutMs} ms`))
    }, timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

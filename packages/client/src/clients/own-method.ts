/**
 * True if a client's method is the library's own: neither wrapped on the object nor overridden by a class of the
 * application. What the application installed expects to see every call, so those calls are left to the send path.
 */
export function isOwnMethod(client: object, name: string): boolean {
  let deepest: unknown
  for (let owner: object | null = client; owner !== null; owner = Object.getPrototypeOf(owner) as object | null) {
    const own = Object.getOwnPropertyDescriptor(owner, name)
    if (own !== undefined) deepest = own.value
  }
  return deepest !== undefined && (client as Record<string, unknown>)[name] === deepest
}

/** Installs a method of ours on a client; the returned function removes it and restores what was there before. */
export function putMethod(client: object, name: string, method: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(client, name)
  const methods = client as Record<string, unknown>
  methods[name] = method
  return () => {
    // Someone may have wrapped ours since: leave theirs.
    if (methods[name] !== method) return
    if (before === undefined) delete methods[name]
    else Object.defineProperty(client, name, before)
  }
}

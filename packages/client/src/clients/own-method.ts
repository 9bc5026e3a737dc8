/**
 * True where a client's method is the library's own: not wrapped on the object, nor overridden by a class of the
 * application. What the application put there wants to see every call, so the call is left to the send path.
 */
export function isOwnMethod(client: object, name: string): boolean {
  let deepest: unknown
  for (let owner: object | null = client; owner !== null; owner = Object.getPrototypeOf(owner) as object | null) {
    const own = Object.getOwnPropertyDescriptor(owner, name)
    if (own !== undefined) deepest = own.value
  }
  return deepest !== undefined && (client as Record<string, unknown>)[name] === deepest
}

/** Puts a method of ours on a client; the returned function takes it away, and gives back what was there before. */
export function putMethod(client: object, name: string, method: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(client, name)
  const methods = client as Record<string, unknown>
  methods[name] = method
  return () => {
    // Somebody may have wrapped ours since: theirs stays.
    if (methods[name] !== method) return
    if (before === undefined) delete methods[name]
    else Object.defineProperty(client, name, before)
  }
}

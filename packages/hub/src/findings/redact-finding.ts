import { keyText, parseKeyText } from '@firebreak/core'
import type { Finding, FoundKey } from '@firebreak/find'

/**
 * A finding with keys under their outside names; prefixes are parts of names, so they are removed if names are
 * redacted.
 */
export function redactFinding(finding: Finding, outside: (key: string) => string): Finding {
  let isRedacted = false
  const renamed = (keys: readonly FoundKey[]) =>
    keys.map((found) => {
      const name = parseKeyText(found.key) ?? found.key
      const key = outside(name)
      if (key === name) return found
      isRedacted = true
      return { ...found, key: keyText(key) }
    })
  const { prefixes, ...rest } = finding
  const keys = renamed(finding.keys)
  const types = finding.types?.map((type) => ({
    ...type,
    byBytes: renamed(type.byBytes),
    byElements: renamed(type.byElements),
  }))
  return {
    ...rest,
    keys,
    ...(types !== undefined && { types }),
    ...(prefixes !== undefined && !isRedacted && { prefixes }),
  }
}

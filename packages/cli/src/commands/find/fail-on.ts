import type { Finding, FoundKey } from '@firebreak/find'
import { UsageError } from '../../command/command.ts'
import { byteCount } from '../../flags/quantities.ts'

const metrics: Readonly<Record<string, (key: FoundKey) => number | undefined>> = {
  bytes: ({ bytes }) => bytes,
  elements: ({ elements }) => elements,
  ops: ({ accessesPerSecond }) => accessesPerSecond,
  share: ({ share }) => share,
  frequency: ({ frequency }) => frequency,
}

/** A condition of `--fail-on`, such as `bytes>10mb`; returns the names of those that meet it. */
export function parseFailOn(text: string): (finding: Finding) => string[] {
  const match = /^([a-z]+)\s*(>=?)\s*(\S+)$/.exec(text.trim())
  const known = [...Object.keys(metrics), 'skew']
  if (match === null || !known.includes(match[1]!)) {
    throw new UsageError(`--fail-on is "${text}"; write one of ${known.join(', ')}, then > or >=, then a number`)
  }
  const [, name, operator, value] = match
  const limit = byteCount('fail-on', value!)
  const isMet = (figure: number | undefined) =>
    figure !== undefined && (operator === '>' ? figure > limit : figure >= limit)
  if (name === 'skew') return ({ nodes = [] }) => nodes.filter(({ skew }) => isMet(skew)).map(({ node }) => node)
  return (finding) => {
    const keys = [...finding.keys, ...(finding.types ?? []).flatMap((type) => [...type.byBytes, ...type.byElements])]
    return [...new Set(keys.filter((key) => isMet(metrics[name!]!(key))).map(({ key }) => key))]
  }
}

import type { HubView } from '@firebreak/core'

/** What a hub tells of itself on the page of the fleet, and to the other hubs of its store. */
export type OwnFigures = Pick<
  HubView,
  'version' | 'startedAt' | 'memoryBytes' | 'busy' | 'reportsPerSecond' | 'refusedReports'
>

/** Among a hub's totals, which are numbers by name: the figures under names of their own, the version as a name. */
const figurePrefix = 'hub\u0000'
const versionPrefix = 'version\u0000'
const names = ['startedAt', 'memoryBytes', 'busy', 'reportsPerSecond', 'refusedReports'] as const

export function figureTotals({ version, ...figures }: OwnFigures): Record<string, number> {
  return {
    ...(version !== undefined && { [`${versionPrefix}${version}`]: 1 }),
    ...Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${figurePrefix}${name}`, value])),
  }
}

/** The figures in another hub's totals; none of a hub of an earlier version. */
export function figuresIn(totals: Readonly<Record<string, number>>): OwnFigures {
  const version = Object.keys(totals).find((name) => name.startsWith(versionPrefix))
  return {
    ...(version !== undefined && { version: version.slice(versionPrefix.length) }),
    ...Object.fromEntries(
      names.flatMap((name) => {
        const value = totals[`${figurePrefix}${name}`]
        return value === undefined ? [] : [[name, value] as const]
      }),
    ),
  }
}

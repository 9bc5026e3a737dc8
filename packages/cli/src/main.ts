#!/usr/bin/env node
// The version is checked before anything of ours is loaded: an old Node would fail on the first module with an obscure
// error.
const needed = [22, 13] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

/** Hub and proxy are optional dependencies: if Node is too old for them, the package still provides the library. */
function missingParts(): string[] {
  return ['@firebreak/hub', '@firebreak/proxy'].filter((name) => {
    try {
      import.meta.resolve(name)
      return false
    } catch {
      return true
    }
  })
}

function problem(): string | undefined {
  if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
    return (
      `The firebreak command needs Node ${needed.join('.')} or newer; this is Node ${process.versions.node}. ` +
      'Run it with a newer Node, here or on another machine. Applications that call protect() can stay on Node 20.19 or newer.'
    )
  }
  const missing = missingParts()
  if (missing.length === 0) return undefined
  return (
    `firebreak was installed without ${missing.join(' and ')}: by a Node older than ${needed.join('.')}, or with ` +
    '--omit=optional. Install it again with this Node: npm install firebreak'
  )
}

const found = problem()
if (found !== undefined) {
  process.stderr.write(`${found}\n`)
  process.exitCode = 1
} else {
  // Files that they write (stores, ids, positions, tables) are private; a proxy's socket may be for others.
  if (['audit', 'backup', 'hub', 'ids', 'restore', 'token', 'up'].includes(process.argv[2] ?? '')) process.umask(0o077)
  const { main } = await import('./command/main-command.ts')
  process.exitCode = await main()
}

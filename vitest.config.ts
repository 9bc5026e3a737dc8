import { defineConfig } from 'vitest/config'

// Our rooms from source; everything else as Node itself would find it.
const conditions = ['firebreak-source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts', 'examples/*/src/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    execArgv: ['--conditions=firebreak-source', '--disable-warning=ExperimentalWarning', '--expose-gc'],
    // A reporter that ends with the counts, one file a line on the way.
    reporters: ['default'],
  },
})

import { defineConfig } from 'vitest/config'

// Our rooms from source; everything else as Node itself would find it.
const conditions = ['firebreak-source', 'node']
/** The page's JSX, a test that loads modules twice, and a dependency whose own sources Node would not load. */
const throughVite = [
  'packages/console/src/**/*.test.ts',
  'packages/core/src/resp/encode-command.test.ts',
  'test/packages/packages.test.ts',
]

/** These fill two cores by themselves, or measure what others beside them would change: they run one after the other. */
const alone = [
  'test/console/**/*.test.ts',
  'test/security/floods.test.ts',
  'test/hub/alone.test.ts',
  'test/hub/nats.test.ts',
  'test/proxy/strategies.test.ts',
]
/** Which of the two parts of `npm test` this is; without it all files are at hand, to be chosen by their names. */
const part = process.env['FIREBREAK_TESTS'] as 'alone' | 'others' | undefined
const units = ['packages/*/src/**/*.test.ts']
const files = ['test/**/*.test.ts', 'bench/**/*.test.ts', 'examples/*/src/**/*.test.ts']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    pool: 'forks',
    maxWorkers: part === 'alone' ? 2 : 4,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    execArgv: ['--conditions=firebreak-source', '--disable-warning=ExperimentalWarning', '--expose-gc'],
    // A reporter that ends with the counts, one file a line on the way.
    reporters: ['default'],
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: part === 'alone' ? [] : units,
          exclude: throughVite,
          // They share the modules that they load, which takes longer than they run.
          isolate: false,
          experimental: { viteModuleRunner: false },
        },
      },
      {
        extends: true,
        test: {
          name: 'rooms',
          include: part === 'alone' ? alone : files,
          exclude: part === 'others' ? [...throughVite, ...units, ...alone] : [...throughVite, ...units],
          // Node loads our sources as they are, faster than through Vite.
          experimental: { viteModuleRunner: false },
        },
      },
      { extends: true, test: { name: 'through vite', include: part === 'alone' ? [] : throughVite } },
    ],
  },
})

/** A block that the tests do not run, and why. */
interface Excused {
  readonly page: string
  /** Something that only this block has. */
  readonly holds: string
  readonly why: string
}

/** Every other block of TypeScript, JavaScript and shell in the pages is run as it stands, with the tests' addresses. */
export const excused: readonly Excused[] = [
  ...[
    ['README.md', 'npm start ', 'test/cli/first-hour runs what npm start runs; npm test runs this'],
    ['docs/guides/console.md', 'npm start ', 'as in README.md; test/console/incident plays the incident'],
    ['CONTRIBUTING.md', 'npm', 'runs the tests themselves'],
    ['CONTRIBUTING.md', 'npx vitest', 'runs the tests themselves'],
    ['docs/guides/deploy.md', 'docker build', 'deploy/docker/try-image.sh builds and starts the image'],
    ['docs/guides/deploy.md', 'docker compose -f', 'needs Docker; test/deploy checks the file'],
    ['docs/guides/deploy.md', 'kubectl create secret', 'needs a cluster'],
    [
      'docs/guides/deploy.md',
      'helm install',
      'needs a cluster; deploy/helm/try-chart.sh renders the chart with these values',
    ],
    ['docs/guides/deploy.md', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'test/cli/otlp runs both with a collector'],
    ['docs/guides/scale.md', 'bench -- scale', 'a benchmark; bench/ has its quick form'],
    ['docs/guides/simulation.md', 'npm run simulate', 'minutes of simulation; test/simulation runs each kind'],
    ['packages/centre/README.md', 'openCentre', 'names hosts of a reader; packages/centre tests each kind'],
    ['docs/guides/servers.md', 'test:servers', 'runs the tests themselves, on servers that a reader builds'],
    ['docs/guides/suites.md', 'suites', 'needs checkouts of other projects'],
    ['docs/guides/ids.md', 'new IdClient', 'names hosts of a reader; packages/ids tests the client'],
    ['docs/guides/ids.md', 'SnowflakeNode.start', 'needs ZooKeeper and MySQL; test/ids starts both'],
    ['docs/guides/limits.md', 'limitKoa(', 'four frameworks at once; packages/limits runs each'],
  ].map(([page, holds, why]) => ({ page: page!, holds: holds!, why: why! })),
  ...[
    'npm install --global',
    'runuser -u firebreak',
    'systemctl daemon-reload',
    'token create --app shop',
    'journalctl',
  ].map((holds) => ({
    page: 'docs/guides/systemd.md',
    holds,
    why: 'needs systemd and root; test/docs/systemd checks it',
  })),
]

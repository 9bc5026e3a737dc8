/** Example bodies, by method and path; the API document shows them, and a test checks each against its schema. */
export const bodyExamples: Readonly<Record<string, unknown>> = {
  'PUT /v1/keys/:cluster/:key/action': { action: 'limit', limit: 500, forMs: 600_000 },
  'POST /v1/keys/:cluster/:key/inspection': { value: false },
  'PUT /v1/rules/:id': { prefix: 'product_', threshold: 1000, strategy: 'LocalCache' },
  'POST /v1/rules/:id/rollout': { percent: 10, steps: [25, 50, 100], stepMs: 600_000 },
  'POST /v1/rules/dry-run': { prefix: 'product_', threshold: 500, strategy: 'LocalCache' },
  'POST /v1/rules/:id/dry-run': { prefix: 'product_', threshold: 500, strategy: 'LocalCache' },
  'POST /v1/rules/rollback': { version: 12 },
  'POST /v1/prewarm': { keys: ['product_100..120'], redisClusterId: 'main', at: '19:58', forMs: 3_600_000 },
  'PUT /v1/history/settings': {
    maxBytesPerDay: 268_435_456,
    keepMs: { second: 3_600_000, tenSeconds: 86_400_000, minute: 604_800_000 },
  },
  'PUT /v1/forecast/settings': { mode: 'do', leadMs: 300_000, timeZone: 'Europe/Berlin' },
  'POST /v1/alarms': {
    serviceId: 'shop',
    hostId: 'host-1',
    alarms: [{ room: 'sale', code: 'store-down', message: 'orders cannot be stored' }],
  },
  'PUT /v1/alarms/:id/silence': { forMs: 3_600_000, why: 'known, mended tomorrow' },
  'PUT /v1/alert-routes/:name': { shape: 'slack', url: 'https://hooks.example.com/T0/B0', severity: 'critical' },
  'POST /v1/finders': { kind: 'big', redisClusterId: 'main' },
  'POST /v1/switch': { isOff: true },
  'POST /v1/tokens': { kind: 'app', name: 'shop', services: ['shop-*'], clusters: ['main'] },
  'POST /v1/tokens/:id/rotate': { graceMs: 86_400_000 },
  'POST /v1/barred': { id: 'shop/host-7/4242', why: 'reports what it cannot have counted' },
  'POST /v1/reports': '# 1767225600000,1767225600100,shop,host-1\n# main\nproduct_1:4455,product_2:467\n',
}

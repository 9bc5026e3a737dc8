import type { CommandEntry } from '../command/command.ts'

/** Every command, in the order of the help. */
export const commands: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'Everything at once: hub, console, proxy, and a Redis unless you name one',
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'hub',
    summary: 'A hub with its console: collects reports, decides, delivers',
    load: async () => (await import('./hub.ts')).hub,
  },
  {
    name: 'proxy',
    summary: 'A proxy in front of a Redis, a Redis Cluster or Sentinels: hot keys for every language',
    load: async () => (await import('./proxy.ts')).proxy,
  },
  {
    name: 'config',
    summary: 'What a hub or a proxy would run with, and where each setting comes from',
    load: async () => (await import('./config.ts')).config,
  },
  {
    name: 'top',
    summary: 'The hottest keys, live in the terminal',
    load: async () => (await import('./top.ts')).top,
  },
  {
    name: 'keys',
    summary: 'The hottest keys known to the hub, as a table or data',
    load: async () => (await import('./keys.ts')).keys,
  },
  {
    name: 'report',
    summary: 'What was hot in a day or a week, and how much load Redis was spared',
    load: async () => (await import('./report.ts')).report,
  },
  {
    name: 'hosts',
    summary: 'The live processes that report to the hub',
    load: async () => (await import('./hosts.ts')).hosts,
  },
  {
    name: 'rules',
    summary: 'The rules of the hub: list, show, apply from a file, remove',
    load: async () => (await import('./rules.ts')).rules,
  },
  {
    name: 'autopilot',
    summary: 'How loaded Redis nodes are, and what rules without a threshold do about it',
    load: async () => (await import('./autopilot.ts')).autopilot,
  },
  {
    name: 'forecast',
    summary: 'Recurring heat: when, how likely, and whether keys are warmed in advance',
    load: async () => (await import('./forecast.ts')).forecast,
  },
  {
    name: 'token',
    summary: 'Tokens of sensors and users: create, list, rotate, revoke',
    load: async () => (await import('./token.ts')).token,
  },
  {
    name: 'audit',
    summary: 'Who changed what, and whether that record is intact',
    load: async () => (await import('./audit.ts')).audit,
  },
  {
    name: 'prewarm',
    summary: 'Make named keys hot before the sale opens, now or at a time',
    load: async () => (await import('./prewarm.ts')).prewarm,
  },
  {
    name: 'find',
    summary: 'Find hot and big keys on any Redis, right now',
    load: async () => (await import('./find/find.ts')).find,
  },
  {
    name: 'drill',
    summary: 'Make a key hot on several real clients, and measure every step of what follows',
    load: async () => (await import('./drill.ts')).drill,
  },
  {
    name: 'off',
    summary: 'The kill switch: turn every shield into a plain pass-through, fleet-wide within a second',
    load: async () => (await import('./switch.ts')).off,
  },
  {
    name: 'on',
    summary: 'Protect again after "firebreak off"',
    load: async () => (await import('./switch.ts')).on,
  },
  {
    name: 'export',
    summary: 'Everything the hub knows as one JSON object: for a ticket, a backup, a diff',
    load: async () => (await import('./export.ts')).exportCommand,
  },
  {
    name: 'backup',
    summary: 'Write what a hub keeps (rules, policies, tokens, history, audit) to a file',
    load: async () => (await import('./backup.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'Read a backup into an empty store, of the same kind or the other',
    load: async () => (await import('./backup.ts')).restore,
  },
  {
    name: 'limits',
    summary: 'The rate-limit rule service on its own; check or convert a policy',
    load: async () => (await import('./limits.ts')).limitsCommand,
  },
  {
    name: 'ids',
    summary: 'Issue unique ids over HTTP and RESP',
    load: async () => (await import('./ids/ids.ts')).ids,
  },
  {
    name: 'sale',
    summary: 'Orders of a sale that could not be stored: list, replay, discard',
    load: async () => (await import('./sale/sale.ts')).sale,
  },
  {
    name: 'completion',
    summary: 'A script that completes firebreak in bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionCommand(commands),
  },
  {
    name: 'man',
    summary: 'The manual page',
    load: async () => (await import('./man.ts')).manCommand(commands),
  },
]

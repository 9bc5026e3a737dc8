import type { CommandEntry } from '../command/command.ts'

/** Every command, in the order of the help. */
export const commands: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'Everything at once: hub, console, a proxy, and a Redis where none is named',
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'hub',
    summary: 'A hub with its console: collects reports, decides, delivers',
    load: async () => (await import('./hub.ts')).hub,
  },
  {
    name: 'proxy',
    summary: 'A proxy before a Redis, a Redis Cluster or Sentinels: hot keys for every language',
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
    summary: 'The hottest keys that the hub knows, once, as a table or data',
    load: async () => (await import('./keys.ts')).keys,
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
    name: 'token',
    summary: 'Tokens of sensors and people: make, list, replace, revoke',
    load: async () => (await import('./token.ts')).token,
  },
  {
    name: 'prewarm',
    summary: 'Make named keys hot before the sale opens, now or at a time',
    load: async () => (await import('./prewarm.ts')).prewarm,
  },
  {
    name: 'find',
    summary: 'Hot and big keys on any Redis, now',
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
    name: 'limits',
    summary: 'The rate-limit rule service alone; check or convert a policy',
    load: async () => (await import('./limits.ts')).limitsCommand,
  },
  {
    name: 'ids',
    summary: 'Give unique ids over HTTP and RESP',
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

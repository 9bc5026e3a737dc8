type Variables = Readonly<Record<string, string | undefined>>

/**
 * Names of the variables that Kubernetes gives every container for each service of its namespace: for a service called
 * `firebreak-hub` these are `FIREBREAK_HUB_SERVICE_HOST`, `FIREBREAK_HUB_PORT_7070_TCP` and so on. Nobody set them, so
 * they do not count as settings, known or unknown. One of them, `FIREBREAK_HUB_PORT=tcp://10.0.0.1:7070`, has the name
 * of a setting: it is Kubernetes' only if its value is an address.
 */
export function kubernetesVariables(env: Variables): ReadonlySet<string> {
  const names = new Set<string>()
  for (const host of Object.keys(env)) {
    const service = /^(.+)_SERVICE_HOST$/.exec(host)?.[1]
    if (service === undefined || env[`${service}_SERVICE_PORT`] === undefined) continue
    for (const [name, value] of Object.entries(env)) {
      if (!name.startsWith(`${service}_`)) continue
      const rest = name.slice(service.length + 1)
      const isOurs = rest === 'PORT' ? /^(tcp|udp|sctp):\/\//.test(value ?? '') : injected.test(rest)
      if (isOurs) names.add(name)
    }
  }
  return names
}

const injected = /^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/

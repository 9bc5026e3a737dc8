/**
 * Names of one process as people read and write them: `service/host/process`. A slash in any but the last is written `%2F`,
 * or a process of the service `shop` on the host `api/h` would be taken for one of `shop/api` on `h`, whose token it has not.
 */
export function processName(...names: readonly string[]): string {
  return names
    .map((name, index) => (index === names.length - 1 ? name : name.replaceAll('%', '%25').replaceAll('/', '%2F')))
    .join('/')
}

export { AlarmReporter, type AlarmReporterOptions, type AlarmRoom } from './alarm-reporter.ts'
export { certificateNames } from './certificate-names.ts'
export {
  boundHttpServer,
  type HttpBounds,
  httpBoundDefaults,
  httpServerOptions,
  leavesLargeBody,
} from './http-bounds.ts'
export { KafkaSockets, kafkaClientOptions } from './kafka-client.ts'
export { type KeyRedaction, type KeyRedactionOptions, keyRedaction } from './key-redaction.ts'
export { newPrivateFile } from './new-private-file.ts'
export { nodePipe, type SocketOptions, type SocketPlace, socketPipe } from './node-pipe.ts'
export { tooOldNode } from './node-version.ts'
export { openRespClient } from './open-resp-client.ts'
export { PasswordGuard, type PasswordGuardOptions } from './password-guard.ts'
export { privateFileProblem, readSecretFile, writePrivateFile } from './private-file.ts'
export { RenewableTls, type ServerCertificates } from './renewable-tls.ts'
export { isSignature, reportKeyId, reportKeyOf, signatureHeaders, signReport } from './report-signature.ts'
export { type WatchedFiles, watchFiles } from './watch-files.ts'
export { whenUnlocked } from './when-unlocked.ts'

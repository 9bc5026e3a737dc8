export type { DetectionRule, Detector, OpenDetector } from './detection/detector.ts'
export { HubDetector, type ReplayedHub, type ReplayedLife } from './detection/hub-detector.ts'
export { type DetectionOptions, type DetectionResult, replayDetection } from './detection/replay-detection.ts'
export { TestHub, testRule } from './hub/test-hub.ts'
export { FaultProxy, type Faults } from './net/fault-proxy.ts'
export { freePort, freePorts } from './net/free-port.ts'
export { type MemoryPipe, memoryPipe } from './net/memory-pipe.ts'
export { type GuardedChild, sourceArgs, startChild, startSource, temporaryFolder } from './process/child.ts'
export { FakedClock } from './process/faked-clock.ts'
export { uncaughtDuring } from './process/uncaught-during.ts'
export { type IssuedCertificate, makeAuthority, type TestAuthority } from './servers/certificates.ts'
export { type EtcdServer, type EtcdServerOptions, startEtcd } from './servers/etcd-server.ts'
export { type KafkaBroker, startKafka } from './servers/kafka-broker.ts'
export { type MariadbServer, type MariadbServerOptions, startMariadb } from './servers/mariadb-server.ts'
export { moveSlot } from './servers/move-slot.ts'
export { type NatsServer, type NatsServerOptions, startNats } from './servers/nats-server.ts'
export {
  type CollectedRequest,
  type CollectorAnswer,
  type OtlpCollector,
  startOtlpCollector,
} from './servers/otlp-collector.ts'
export { type PackageRegistry, startPackageRegistry } from './servers/package-registry.ts'
export { type PostgresServer, type PostgresServerOptions, startPostgres } from './servers/postgres-server.ts'
export { type RedisSentinel, startSentinel } from './servers/redis-sentinel.ts'
export {
  type RedisCluster,
  type RedisServer,
  type RedisServerOptions,
  redisCli,
  redisKind,
  redisProgram,
  startCluster,
  startClusterOfOne,
  startRedis,
} from './servers/redis-server.ts'
export {
  answersRefusedAuth,
  type CapabilityName,
  capabilities,
  hasCapability,
  isAtLeast,
  parseServerKind,
  type ServerKind,
  serverKindOf,
} from './servers/server-kind.ts'
export { startZooKeeper, type ZooKeeperServer, type ZooKeeperServerOptions } from './servers/zookeeper-server.ts'
export { Chance } from './simulation/chance.ts'
export { EventLog } from './simulation/event-log.ts'
export {
  type Fault,
  type FaultChoice,
  type FaultHandler,
  type FaultKinds,
  FaultPlayer,
  type FaultSchedule,
  faultText,
  randomSchedule,
} from './simulation/fault-schedule.ts'
export { type KernelSpeed, kernelSpeedText, measureKernel } from './simulation/kernel-speed.ts'
export { PipeDuplex } from './simulation/pipe-duplex.ts'
export { NetworkError, PipeEnd } from './simulation/pipe-end.ts'
export { type FaultyProcess, processFaults } from './simulation/process-faults.ts'
export { RedisLinkError, type RedisLinkOptions, ReplyError } from './simulation/redis-link.ts'
export {
  type PlayResult,
  runSeeds,
  type SeedFailure,
  type SeedOutcome,
  type SeedRuns,
} from './simulation/run-seeds.ts'
export { type ShrunkSchedule, shrinkSchedule } from './simulation/shrink-schedule.ts'
export { SimulatedProcess, type SimulatedProcessOptions } from './simulation/simulated-process.ts'
export { type PipelineOutcome, SimulatedRedis } from './simulation/simulated-redis.ts'
export { SimulatedSubscriber } from './simulation/simulated-subscriber.ts'
export { SimulatedWorld, type SimulatedWorldOptions } from './simulation/simulated-world.ts'
export type { ValkeyPicture } from './simulation/valkey-instance.ts'
export { type Acceptor, VirtualNetwork, type VirtualNetworkOptions } from './simulation/virtual-network.ts'
export { VirtualValkey, type VirtualValkeyOptions } from './simulation/virtual-valkey.ts'
export { FakeClock } from './time/fake-clock.ts'
export { type FakeRuntime, fakeRuntime, seededRandom } from './time/fake-runtime.ts'
export { isFullRun, scale } from './time/scale.ts'
export { letTimePass, type WaitForOptions, waitFor } from './time/wait-for.ts'
export { type RestlessOptions, restlessTrace } from './traces/restless-trace.ts'
export { loadTrace, type Trace, traceNames, zipfTrace } from './traces/trace.ts'

export { boundHttpServer, type HttpBounds, httpServerOptions, leavesLargeBody } from './http-bounds.ts'
export { nodePipe, type SocketOptions, type SocketPlace, socketPipe } from './node-pipe.ts'
export { openRespClient } from './open-resp-client.ts'

import type { SensorChannel } from '@firebreak/hub'
import type { HubTransport } from '@firebreak/shield'
import type { PipeEnd, SimulatedProcess, VirtualNetwork } from '@firebreak/testkit'

/** How a simulated process reaches hubs: framed connections of the virtual network, by the host and port of the URL. */
export function simulatedHubs(process: SimulatedProcess, network: VirtualNetwork): HubTransport {
  return {
    hasHttp: false,
    open({ sensorUrl }, _token, owner) {
      const end = network.connect(process, new URL(sensorUrl).host, { isFramed: true })
      // Like a WebSocket's handshake: a hub that accepts the connection and stays silent is given up.
      const handshake = process.runtime.timers.setTimeout(() => end.destroy(), 2000)
      end.onConnect = () => {
        handshake.cancel()
        owner.onOpen()
      }
      end.onData = (bytes) => owner.onMessage(bytes, true)
      end.onClose = (error) => {
        handshake.cancel()
        owner.onClose(error)
      }
      return {
        send: (frame) => void end.write(frame),
        get bufferedBytes() {
          return end.queuedBytes
        },
        close: () => end.end(),
        terminate: () => end.destroy(),
      }
    },
  }
}

/** A hub's end of such a connection. */
export function sensorChannel(end: PipeEnd): SensorChannel {
  return {
    send: (frame) => void end.write(frame),
    get bufferedBytes() {
      return end.queuedBytes
    },
    onFrame: (listener) => void (end.onData = listener),
    onClose: (listener) => void (end.onClose = () => listener()),
    close: () => end.end(),
  }
}

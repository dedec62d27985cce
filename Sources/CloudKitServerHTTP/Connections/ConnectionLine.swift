import CloudKitServer
import CloudKitWebServices
import Foundation
import NIOCore
import NIOFoundationCompat

/// Passes a task's reply back to its connection.
struct ConnectionLine: Sendable {
  /// The bytes written to the socket at once: large assets must not be copied completely.
  static let pieceSize = 262_144

  private let loop: any EventLoop
  private let handler: NIOLoopBound<ConnectionHandler>
  private let exchange: NIOLoopBound<Exchange>

  init(_ handler: ConnectionHandler, _ exchange: Exchange, _ loop: any EventLoop) {
    self.loop = loop
    self.handler = NIOLoopBound(handler, eventLoop: loop)
    self.exchange = NIOLoopBound(exchange, eventLoop: loop)
  }

  func answer(_ response: StreamedResponse) {
    loop.execute { handler.value.finish(exchange.value, response) }
  }

  func checked(_ refusal: WebServiceResponse?) {
    loop.execute { handler.value.finishCheck(of: exchange.value, refusal) }
  }

  func listen(_ stream: EventStream) {
    loop.execute { handler.value.listen(stream, exchange.value) }
  }

  /// Sends a body in pieces, each after the socket has accepted the previous one.
  func send(_ body: StreamedResponse.Body, isLast: Bool) async {
    do {
      switch body {
      case .whole(let data):
        var rest = data[...]
        while !rest.isEmpty {
          try await write(rest.prefix(Self.pieceSize))
          rest = rest.dropFirst(Self.pieceSize)
        }
      case .stream(_, let read): try await read { try await write($0) }
      }
      loop.execute { handler.value.end(exchange.value, isLast: isLast) }
    } catch {
      loop.execute { handler.value.breakOff(exchange.value) }
    }
  }

  private func write(_ piece: Data) async throws {
    let bytes = ByteBuffer(data: piece)
    try await loop.flatSubmit {
      handler.value.write(bytes, exchange.value)
        ?? loop.makeFailedFuture(ChannelError.ioOnClosedChannel)
    }.get()
  }
}

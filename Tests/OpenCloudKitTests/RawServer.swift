import Foundation
import OpenCloudKit
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server that answers each request with given bytes, valid HTTP or not.
final class RawServer: Sendable {
  /// The reply to one request.
  struct Answer: Sendable {
    var bytes: Data
    /// Whether the connection is closed after it.
    var hangsUp = true

    /// An HTTP reply with the right or another Content-Length.
    init(status: Int = 200, _ body: String, length: Int? = nil, hangsUp: Bool = true) {
      let head =
        "HTTP/1.1 \(status) Answer\r\nContent-Type: application/json\r\n"
        + "Content-Length: \(length ?? body.utf8.count)\r\n\r\n"
      bytes = Data((head + body).utf8)
      self.hangsUp = hangsUp
    }

    init(raw: String, hangsUp: Bool = true) {
      bytes = Data(raw.utf8)
      self.hangsUp = hangsUp
    }
  }

  private struct State {
    var answers: [Answer] = []
    var requestCount = 0
    var connections: Set<Int32> = []
    var isOver = false
  }

  private let listener: LoopbackListener
  private let state = Mutex(State())

  /// The number of requests so far.
  var requestCount: Int { state.withLock { $0.requestCount } }

  /// `answers`: one for each request; the last one is repeated.
  init(_ answers: Answer...) throws {
    listener = try LoopbackListener()
    state.withLock { $0.answers = answers }
    Thread.detachNewThread { [self] in accept() }
  }

  /// A client of this server.
  func container(retries: RetryPolicy = .never) -> CKContainer {
    listener.container(identifier: "iCloud.raw", retries: retries)
  }

  func stop() {
    state.withLock { state in
      state.isOver = true
      for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
    }
    listener.stop()
  }

  private func accept() {
    while true {
      let connection = listener.nextConnection()
      guard connection >= 0, !state.withLock({ $0.isOver }) else { return }
      state.withLock { _ = $0.connections.insert(connection) }
      Thread.detachNewThread { [self] in
        while readRequest(connection), answer(connection) {}
        state.withLock { _ = $0.connections.remove(connection) }
        close(connection)
      }
    }
  }

  /// Reads one request to the end of its body; false if the client closed the connection.
  private func readRequest(_ connection: Int32) -> Bool {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return false }
      bytes += buffer[0..<count]
      let text = String(decoding: bytes, as: UTF8.self)
      guard let end = text.range(of: "\r\n\r\n") else { continue }
      let head = text[..<end.lowerBound].lowercased()
      let length = head.components(separatedBy: "content-length: ").dropFirst().first
        .flatMap { Int($0.prefix { $0.isNumber }) }
      if text[end.upperBound...].utf8.count >= length ?? 0 { return true }
    }
  }

  private func answer(_ connection: Int32) -> Bool {
    let answer = state.withLock { state -> Answer? in
      state.requestCount += 1
      return state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first
    }
    guard let answer else { return false }
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    answer.bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = send(
          connection,
          bytes.baseAddress?.advanced(by: sent),
          bytes.count - sent,
          flags
        )
        guard count > 0 else { return }
        sent += count
      }
    }
    return !answer.hangsUp
  }
}

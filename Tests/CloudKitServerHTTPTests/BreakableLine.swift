import Foundation
import Glibc
import Synchronization

/// A TCP proxy between clients and a server on this machine, which can be interrupted.
final class BreakableLine: Sendable {
  private struct State {
    var target: UInt16 = 0
    var sockets: Set<Int32> = []
    /// The bytes of replies that are still forwarded.
    var budget: Int?
    var isOver = false
  }

  struct Broken: Error {}

  private let listener: Int32
  private let state = Mutex(State())
  /// The port to which clients connect.
  let port: UInt16

  var url: String { "http://127.0.0.1:\(port)" }

  init() throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(listener, pointer, size) == 0 && listen(listener, 16) == 0
          && getsockname(listener, pointer, &size) == 0
      }
    }
    guard isListening else { throw Broken() }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in accept() }
  }

  /// Forwards to another port from now on.
  func lead(to port: Int) {
    state.withLock { $0.target = UInt16(truncatingIfNeeded: port) }
  }

  /// Closes every open connection.
  func cut() {
    state.withLock { state in
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Closes every connection after `count` more bytes of replies.
  func cut(afterBytes count: Int) {
    state.withLock { $0.budget = count }
  }

  /// Whether the bytes to be forwarded were forwarded.
  var wasCut: Bool { state.withLock { $0.budget == nil } }

  func stop() {
    state.withLock { $0.isOver = true }
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    cut()
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private func accept() {
    while true {
      let client = Glibc.accept(listener, nil, nil)
      guard client >= 0, !state.withLock({ $0.isOver }) else { return }
      let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = Self.address(state.withLock { $0.target })
      let isConnected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      guard isConnected else {
        close(client)
        close(server)
        continue
      }
      state.withLock { $0.sockets.formUnion([client, server]) }
      Thread.detachNewThread { [self] in
        let requests = DispatchGroup()
        requests.enter()
        Thread.detachNewThread { [self] in
          pump(from: client, to: server, isReply: false)
          requests.leave()
        }
        pump(from: server, to: client, isReply: true)
        requests.wait()
        state.withLock { $0.sockets.subtract([client, server]) }
        close(client)
        close(server)
      }
    }
  }

  private func pump(from source: Int32, to sink: Int32, isReply: Bool) {
    defer {
      shutdown(source, Int32(SHUT_RDWR))
      shutdown(sink, Int32(SHUT_RDWR))
    }
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = recv(source, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      let (allowed, isLast) = isReply ? spend(count) : (count, false)
      var sent = 0
      while sent < allowed {
        let part = buffer.withUnsafeBytes { bytes in
          send(
            sink,
            bytes.baseAddress?.advanced(by: sent),
            allowed - sent,
            Int32(MSG_NOSIGNAL)
          )
        }
        guard part > 0 else { return }
        sent += part
      }
      if isLast {
        cut()
        return
      }
    }
  }

  /// How many of the bytes are forwarded, and whether the connection is closed after them.
  private func spend(_ count: Int) -> (allowed: Int, isLast: Bool) {
    state.withLock { state in
      guard let budget = state.budget else { return (count, false) }
      state.budget = budget > count ? budget - count : nil
      return (min(count, budget), budget <= count)
    }
  }
}

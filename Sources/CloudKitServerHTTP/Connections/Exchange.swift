import CloudKitServer
import NIOCore
import NIOHTTP1

/// A request on a connection and what has become of it; it stays on the connection's event loop.
final class Exchange {
  /// What an answer needs of the request's head.
  let incoming: IncomingRequest
  let version: HTTPVersion
  let isKeptAlive: Bool
  /// Bytes of the body as announced.
  let announced: Int
  /// Bytes that the body may have.
  let limit: Int
  /// Whose share of the process's buffers the body and the answer are part of.
  let site: String?
  /// The client waits for leave to send its body.
  let isExpectant: Bool
  let start = ContinuousClock().now

  /// The body so far, of requests that are read whole.
  var body = ByteBuffer()
  /// Bytes taken of the process's buffers.
  var buffered = 0
  /// Bytes of the answer taken of the process's room for answers.
  private var heldReply = 0
  /// Bytes that had come when the pace was checked last; nil: nothing checks it yet.
  var pace: Int?
  /// Whether the credential of the request was checked, because its body is large.
  enum CredentialCheck {
    case notNeeded
    case isRunning
    case passed
  }

  var credentialCheck = CredentialCheck.notNeeded
  /// Bytes of the body that have come.
  var received = 0
  /// All of the request is here.
  var isReceived = false
  /// Its outcome stands in the log and the figures.
  var isNoted = false
  /// What finds the answer.
  var task: Task<Void, Never>?
  /// Where a body goes that is not kept in memory.
  var upload: UploadStream.Source?
  /// An answer that came before the whole request had.
  var early: StreamedResponse?

  init(_ incoming: IncomingRequest, _ head: HTTPRequestHead) {
    self.incoming = incoming
    limit = incoming.bodyLimit
    site = SenderAddress(incoming.request.clientAddress)?.site
    version = head.version
    isKeptAlive = head.isKeepAlive
    announced = incoming.request.headers["content-length"].flatMap { Int($0) } ?? 0
    isExpectant = incoming.request.headers["expect"] != nil
  }

  /// Whether the body has so many bytes that the credential has to be checked now.
  func needsCheck(of bytes: Int) -> Bool {
    credentialCheck == .notNeeded && incoming.kind != .transfer
      && bytes > incoming.uncheckedBytes && limit > incoming.uncheckedBytes
  }

  /// Keeps a piece of the body, up to its limit; false where the process has no room for it.
  func keep(_ part: ByteBuffer, _ budget: BufferBudget) -> Bool {
    guard received <= limit else {
      // Clients read the answer only after they have sent what they began to send, so what is too
      // large is let in and dropped rather than cut off.
      drop(budget)
      return true
    }
    guard budget.take(part.readableBytes, for: site) else {
      drop(budget)
      return false
    }
    buffered += part.readableBytes
    guard body.readableBytes > 0 || part.readableBytes < announced else {
      body = part
      return true
    }
    if body.capacity == 0 { body.reserveCapacity(min(announced, limit, Self.reserve)) }
    body.writeImmutableBuffer(part)
    return true
  }

  /// Forgets the body.
  func drop(_ budget: BufferBudget) {
    body = ByteBuffer()
    release(budget)
  }

  /// Gives back what the body has taken of the process's buffers.
  func release(_ budget: BufferBudget) {
    budget.release(buffered, for: site)
    buffered = 0
  }

  /// Takes room for an answer until the socket has taken it; false where the process has none.
  ///
  /// A short one needs no room: it costs no more than its connection. Of a stream one piece is in
  /// memory at a time.
  func hold(_ response: StreamedResponse, _ budget: BufferBudget) -> Bool {
    let bytes =
      switch response.body {
      case .whole(let data): data.count
      case .stream(let length, _):
        length.map { Int(min($0, Int64(ConnectionLine.pieceSize))) } ?? ConnectionLine.pieceSize
      }
    guard bytes > Self.shortReply, !incoming.isHead else { return true }
    guard budget.take(bytes, for: site) else { return false }
    heldReply = bytes
    return true
  }

  /// Gives back the room of the answer.
  func releaseReply(_ budget: BufferBudget) {
    budget.release(heldReply, for: site)
    heldReply = 0
  }

  /// Bytes of an answer that is held without being counted.
  private static let shortReply = 1 << 14
  /// Bytes taken on a client's word alone.
  private static let reserve = 1 << 16
}

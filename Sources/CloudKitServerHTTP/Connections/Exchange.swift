import CloudKitServer
import CloudKitWebServices
import NIOCore
import NIOHTTP1

/// A request on a connection and the state of its reply; used only on the connection's event loop.
final class Exchange {
  /// Counts the requests of the connection.
  let number: Int
  /// The request's head.
  private(set) var incoming: IncomingRequest
  let version: HTTPVersion
  /// Whether further requests may follow on the connection.
  let isKeptAlive: Bool
  /// The body's size in the request's head, in bytes.
  let announced: Int
  /// The largest body, in bytes.
  let limit: Int
  /// The site that the buffers of this request and its response are charged to.
  let site: String?
  /// The client waits for leave to send its body.
  let isExpectant: Bool
  let start = ContinuousClock().now

  /// The budget in which a large head is counted, and its bytes there.
  private var heldHead: (budget: BufferBudget, bytes: Int)?

  /// The received body, of requests that are read into memory.
  var body = ByteBuffer()
  /// The bytes reserved in the budget of request bodies.
  var buffered = 0
  /// The bytes reserved in the budget of replies.
  private var heldReply = 0
  /// The received bytes when the rate was last checked; nil before the first check.
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
  /// Whether the whole request was received.
  var isReceived = false
  /// Whether its outcome was logged and counted.
  var isNoted = false
  /// The task that produces the reply.
  var task: Task<Void, Never>?
  /// What becomes of the pieces of the body that are received.
  enum BodyUse {
    /// They are kept in memory.
    case kept
    /// A reader receives them.
    case streamed(UploadStream.Source)
    /// They are discarded. The reply, which is ready already, is sent after the end of the request.
    case discarded(StreamedResponse)
    /// They are discarded. The reply is being sent.
    case answered
  }

  var bodyUse = BodyUse.kept

  init(_ incoming: IncomingRequest, _ head: HTTPRequestHead, number: Int) {
    self.number = number
    self.incoming = incoming
    limit = incoming.bodyLimit
    site = SenderAddress(incoming.request.clientAddress)?.site
    version = head.version
    isKeptAlive = head.isKeepAlive && !head.asksForAnotherProtocol
    // A number that `Int` does not hold is over every limit.
    announced = incoming.request.headers["content-length"].map { Int($0) ?? .max } ?? 0
    isExpectant = head.awaitsContinue
  }

  deinit { releaseHeldHead() }

  /// The reader of a streamed body.
  var upload: UploadStream.Source? {
    if case .streamed(let upload) = bodyUse { upload } else { nil }
  }

  /// Reserves the bytes of a head that is not small until the exchange ends; false if the budget is
  /// used up.
  ///
  /// Its headers are freed then: the refusal needs none.
  func hold(_ head: HTTPRequestHead, _ budget: BufferBudget) -> Bool {
    let bytes = head.headers.reduce(head.uri.utf8.count) {
      $0 + $1.name.utf8.count + $1.value.utf8.count
    }
    guard bytes > Self.smallHead else { return true }
    guard budget.take(bytes, for: site) else {
      incoming.request.headers = [:]
      return false
    }
    heldHead = (budget, bytes)
    return true
  }

  /// Frees the request's head, when it has been read and logged and the exchange lasts for days.
  func releaseHead() {
    incoming.request.headers = [:]
    incoming.request.path = ""
    releaseHeldHead()
  }

  /// Returns the bytes reserved for the head.
  func releaseHeldHead() {
    if let heldHead { heldHead.budget.release(heldHead.bytes, for: site) }
    heldHead = nil
  }

  /// Whether a body of `bytes` bytes requires the check of the credential now.
  func needsCheck(of bytes: Int) -> Bool {
    credentialCheck == .notNeeded && incoming.kind != .transfer
      && bytes > incoming.uncheckedBytes && limit > incoming.uncheckedBytes
  }

  /// Keeps a piece of the body, up to its limit; false where the process has no room for it.
  func keep(_ part: ByteBuffer, _ budget: BufferBudget) -> Bool {
    guard received <= limit else {
      // Clients read the reply only after they have sent the whole body, so a body that is too
      // large is read and discarded rather than interrupted.
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

  /// Discards the body.
  func drop(_ budget: BufferBudget) {
    body = ByteBuffer()
    release(budget)
  }

  /// Returns the bytes that the body has reserved in the budget.
  func release(_ budget: BufferBudget) {
    budget.release(buffered, for: site)
    buffered = 0
  }

  /// Reserves bytes for a reply until the socket has accepted it; returns false if the budget is
  /// used up.
  ///
  /// A short reply reserves nothing, because it costs no more than its connection. Of a stream one
  /// piece is in memory at a time.
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

  /// Returns the bytes reserved for the reply.
  func releaseReply(_ budget: BufferBudget) {
    budget.release(heldReply, for: site)
    heldReply = 0
  }

  /// The bytes of a head that need no reservation: it costs no more than its connection.
  private static let smallHead = 4096
  /// The bytes of a reply that need no reservation.
  private static let shortReply = 1 << 14
  /// The bytes allocated because of a client's `Content-Length` alone.
  private static let reserve = 1 << 16
}

import CloudKitServer
import CloudKitWebServices

/// A request as it came over a connection.
struct IncomingRequest: Sendable {
  /// How its body is taken in and its answer given.
  enum Kind: Sendable {
    /// Both in one piece.
    case whole
    /// Its answer may take a minute: it ends when the client goes or the server stops.
    case poll
    /// Its body must not be in memory as a whole.
    case transfer
    /// It asks for a stream of events.
    case events
  }

  /// The body comes later.
  var request: WebServiceRequest
  var kind: Kind
  /// Only the head of the answer is wanted.
  var isHead: Bool
  /// The other end of the connection: the client, or a proxy before this server.
  var peer: String?

  /// The path without its query.
  var plainPath: Substring { request.path.prefix { $0 != "?" } }
}

import CloudKitServer
import CloudKitWebServices

/// A request as it came over a connection.
struct IncomingRequest: Sendable {
  /// The body comes later.
  var request: WebServiceRequest
  var route: Route
  /// How its body is taken in and its reply is given; `whole` where the server has no other way.
  var kind: RouteRules.Exchange
  /// Bytes that its body may have.
  var bodyLimit: Int
  /// Bytes of its body that are let in before the credential of the request has been checked.
  var uncheckedBytes: Int
  /// Nothing is written for it, so that its work ends when its client has left.
  var endsWithClient: Bool
  /// Only the head of the answer is wanted.
  var isHead: Bool
  /// The other end of the connection: the client, or a proxy before this server.
  var peer: String?
}

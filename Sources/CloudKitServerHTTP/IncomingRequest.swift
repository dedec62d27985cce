import CloudKitServer
import CloudKitWebServices

/// A request of a connection.
struct IncomingRequest: Sendable {
  /// The request without its body, which follows.
  var request: WebServiceRequest
  var route: Route
  /// How its body is received and its reply is sent; `whole` if the server has no other way.
  var kind: RouteRules.Exchange
  /// The largest size of its body, in bytes.
  var bodyLimit: Int
  /// The bytes of its body that are accepted before the request's credential has been checked.
  var uncheckedBytes: Int
  /// Nothing is written for it, so that its work ends when its client has left.
  var endsWithClient: Bool
  /// Whether only the head of the reply is sent.
  var isHead: Bool
  /// The address of the other end of the connection: the client, or a proxy.
  var peer: String?
}

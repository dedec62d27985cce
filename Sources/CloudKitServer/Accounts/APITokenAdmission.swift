import CloudKitWebServices
import Foundation

/// The containers that an API token is for.
package enum APITokenScope: Hashable, Sendable {
  /// Any container of the token's environment, created on first use.
  case everyContainer
  case container(String)

  /// The scope of a stored row, whose column is null for every container.
  init(column: String?) {
    self = column.map(APITokenScope.container) ?? .everyContainer
  }

  /// The value of the row's column, and of the administrators' interface.
  package var column: String? {
    switch self {
    case .everyContainer: nil
    case .container(let name): name
    }
  }

  /// Whether a token of this scope can be used where one of the other is asked for.
  func covers(_ other: APITokenScope) -> Bool {
    switch self {
    case .everyContainer: true
    case .container: self == other
    }
  }
}

/// What a request requires of its API token: the one place where a token admits a request.
///
/// A caller names all three parts, so that it states which of them it does not check, and why.
struct APITokenAdmission {
  enum Container {
    case requested(String)
    /// The user token is bound to a container, which the caller compares once it has read it.
    case ofUserToken
  }

  enum Environment {
    case requested(ContainerEnvironment)
    /// A sign-in: the user token that it results in is valid in both environments.
    case both
  }

  enum Origin {
    /// A data request of a page, or of a client without an origin: a token restricts the pages that
    /// use it if it lists origins.
    case restricted(String?)
    /// A request that contains a password or acts on an account: without a list of origins, only
    /// pages that ``StoredAPIToken/allows(_:server:)`` trusts may send it.
    case trusted(String?, server: String)
    /// A page of this server: the origin that gets the user token is checked when it is handed over.
    case ofHandover
    /// A program without a browser.
    case ofProgram
  }

  var container: Container
  var environment: Environment
  var origin: Origin

  /// Throws the first part that the token does not admit.
  func check(_ token: StoredAPIToken) throws(APITokenRefusal) {
    switch container {
    case .requested(let name):
      guard token.scope.covers(.container(name)) else { throw .container }
    case .ofUserToken: break
    }
    switch environment {
    case .requested(let environment):
      guard token.environment == environment else { throw .environment }
    case .both: break
    }
    if let refused = origin.refused(by: token) { throw .origin(refused) }
  }

  /// Whether the token exists and admits the request, for callers that answer every refusal alike.
  func admits(_ token: StoredAPIToken) -> Bool {
    do {
      try check(token)
      return true
    } catch {
      return false
    }
  }
}

extension APITokenAdmission.Origin {
  /// The origin, if the token does not allow it.
  func refused(by token: StoredAPIToken) -> String? {
    switch self {
    case .restricted(let origin):
      guard let origin, !token.allowedOrigins.isEmpty, !token.allowedOrigins.contains(origin)
      else { return nil }
      return origin
    case .trusted(let origin, let server):
      guard let origin, !token.allows(origin, server: server) else { return nil }
      return origin
    case .ofHandover, .ofProgram: return nil
    }
  }
}

/// Why an API token does not admit a request.
enum APITokenRefusal: Error, Hashable {
  case container
  case environment
  /// Pages of the origin may not use the token.
  case origin(String)
}

extension StoredAPIToken {
  /// Whether pages of an origin may receive user tokens and send passwords with this API token: the
  /// origins that it lists or, without a list, pages of the server itself and, in development, of
  /// the developer's machine.
  ///
  /// In production any program on a user's machine could serve such a page.
  func allows(_ origin: String, server: String) -> Bool {
    if !allowedOrigins.isEmpty { return allowedOrigins.contains(origin) }
    if origin == server { return true }
    guard environment == .development, let host = URLComponents(string: origin)?.host
    else { return false }
    return LoopbackHost.contains(host)
  }
}

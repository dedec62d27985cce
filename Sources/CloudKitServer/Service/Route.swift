import CloudKitWebServices

/// The handler of a request's path.
///
/// This is the one list of paths that the server answers. Routing, body limits, cross-origin
/// replies, host checks, labels of metrics and the redaction of logged paths all read ``rules``: a
/// new path does not compile without each of them.
package enum Route: Hashable, Sendable {
  /// A documented endpoint, `/database/1/…` or `/device/1/…`.
  case api(WebServicePath, Endpoint)
  /// A path below `/database` or `/device` that names no endpoint.
  case unknownEndpoint
  /// Any other path, by its first part.
  case section(Section)
  /// The call of the admin API whose reply is streamed.
  case backupStream
  case unknown

  /// The paths beside the documented endpoints, by their first part.
  package enum Section: String, CaseIterable, Sendable {
    // Pages that users open.
    case activate
    case deleteAccount = "delete-account"
    case forgotPassword = "forgot-password"
    case myAccount = "my-account"
    case resetPassword = "reset-password"
    case share
    case signIn = "sign-in"
    case signUp = "sign-up"
    case verifyAddress = "verify-address"
    // Calls of apps and of administrators.
    case account
    case admin
    // Paths that are capabilities themselves.
    case accountData = "account-data"
    case assets
    case events
    case webcourier
    // Pages of the HTTP adapter.
    case landing = ""
    case health
    case healthz
    case metrics
    case ready
    case readyz

    /// The path of the section: pages, mails and URLs in replies are made of it.
    package var path: String { "/" + rawValue }
  }

  package init(_ target: RequestTarget) {
    switch target.first {
    case "database", "device":
      guard let path = WebServicePath(path: target.path), let endpoint = path.endpoint else {
        self = .unknownEndpoint
        return
      }
      self = .api(path, endpoint)
    case Section.admin.rawValue where target.path == AdminEndpoint.backup(.stream).path:
      self = .backupStream
    case let first:
      self = Section(rawValue: first).map { .section($0) } ?? .unknown
    }
  }

  /// Reads a path with or without a query.
  package init(path: String) {
    self.init(RequestTarget(String(path.prefix(before: "?"))))
  }
}

/// The rules for all requests of one route, regardless of their outcome.
package struct RouteRules: Hashable, Sendable {
  /// How the body is received and the reply is sent.
  package enum Exchange: Sendable {
    /// Both in memory.
    case whole
    /// The reply may take as long as a long poll; it ends when the client disconnects or the server
    /// stops.
    case poll
    /// The body is streamed to the asset store and is never in memory as a whole.
    case transfer
    /// A `GET` opens a stream of events.
    case events
  }

  /// The origins whose pages may read a reply.
  package enum Origins: Sendable {
    /// The origins of the request's API token.
    case ofToken
    /// Any: the URL itself is the capability.
    case any
    case none
  }

  /// The largest body; ``ServiceLimits`` has the figures.
  package enum Body: Sendable {
    /// Forms of pages, calls about accounts.
    case form
    case administration
    /// Records to save.
    case records
    /// Any other call of an endpoint.
    case request
    /// A file that is streamed.
    case file
  }

  package var exchange = Exchange.whole
  package var origins = Origins.none
  package var body: Body
  /// A page on which a user types a password or grants access: served only under the server's own
  /// names.
  package var isPage = false
  /// Served by the listener of the administration alone, where there is one.
  package var isOfAdministration = false
  /// Counted for the sender's address before anything is read: it needs no user.
  package var isRatedByAddress = false
  /// Answered while the server stops, so that clients are notified of it.
  package var isAnsweredWhileStopping = false
  /// An answer to a GET uses something up, a notification or a link: a HEAD does not stand for one.
  package var isUsedUp = false
  /// How many parts of the path a log may show, where a later part is a right in itself.
  package var shownParts: Int?
  /// The value of the label `endpoint` of metrics; the set of labels is bounded.
  package var label: String
}

extension Route {
  /// Whether a request of the route writes nothing.
  package var isRead: Bool {
    if case .api(_, let endpoint) = self { endpoint.rules.isRead } else { false }
  }

  package var rules: RouteRules {
    switch self {
    case .api(_, let endpoint):
      RouteRules(origins: .ofToken, body: endpoint.rules.body, label: endpoint.rawValue)
    case .unknownEndpoint: RouteRules(origins: .ofToken, body: .form, label: "other")
    case .section(let section): section.rules
    case .backupStream:
      RouteRules(
        exchange: .transfer,
        body: .form,
        isOfAdministration: true,
        label: Section.admin.rawValue
      )
    case .unknown: RouteRules(body: .form, label: "other")
    }
  }
}

extension Route.Section {
  package var rules: RouteRules {
    switch self {
    case .activate, .deleteAccount, .forgotPassword, .myAccount, .resetPassword, .signIn, .signUp,
      .verifyAddress:
      RouteRules(body: .form, isPage: true, isRatedByAddress: true, label: rawValue)
    case .share:
      RouteRules(body: .form, isPage: true, isRatedByAddress: true, shownParts: 1, label: rawValue)
    case .account:
      RouteRules(origins: .ofToken, body: .form, isRatedByAddress: true, label: rawValue)
    case .admin: RouteRules(body: .administration, isOfAdministration: true, label: rawValue)
    case .accountData:
      RouteRules(
        exchange: .transfer,
        body: .form,
        isUsedUp: true,
        shownParts: 1,
        label: rawValue
      )
    case .assets:
      RouteRules(
        exchange: .transfer,
        origins: .any,
        body: .file,
        shownParts: 2,
        label: rawValue
      )
    case .events:
      RouteRules(
        exchange: .events,
        origins: .any,
        body: .form,
        isUsedUp: true,
        shownParts: 1,
        label: rawValue
      )
    case .webcourier:
      RouteRules(
        exchange: .poll,
        origins: .any,
        body: .form,
        isAnsweredWhileStopping: true,
        isUsedUp: true,
        shownParts: 1,
        label: rawValue
      )
    case .metrics: RouteRules(body: .form, isOfAdministration: true, label: "other")
    case .landing, .health, .healthz, .ready, .readyz: RouteRules(body: .form, label: "other")
    }
  }
}

extension ServiceLimits {
  /// The largest body of a route, in bytes.
  package func bytes(_ body: RouteRules.Body) -> Int {
    switch body {
    case .form: formSize
    case .administration: administrationSize
    case .records: recordsRequestSize
    case .request: requestSize
    case .file: assetSize + Self.multipartRoom
    }
  }

  /// Bytes of a multipart form around its file.
  private static let multipartRoom = 1_048_576
}
